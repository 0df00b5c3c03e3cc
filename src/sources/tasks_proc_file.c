/* Files and directories of /proc, with descriptors that are kept while they pay; see tasks_proc.h. */
#include "sources/tasks_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

#define KEPT_MOST   8192 /* each costs the kernel some KB */
#define FDS_FOR_ALL 128  /* left to the rest of the program */

size_t proc_fd_limit(void)
{
	struct rlimit lim;
	if (getrlimit(RLIMIT_NOFILE, &lim))
		return 0;
	if (lim.rlim_cur < lim.rlim_max) {
		struct rlimit more = { lim.rlim_max, lim.rlim_max };
		if (!setrlimit(RLIMIT_NOFILE, &more))
			lim = more;
	}
	size_t room = lim.rlim_cur > FDS_FOR_ALL ? (lim.rlim_cur - FDS_FOR_ALL) / 4 * 3 : 0;
	return room < KEPT_MOST ? room : KEPT_MOST;
}

void proc_close_fd(struct proc_reader *r, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	r->kept--;
}

void proc_close_thread(struct proc_reader *r, struct task_thread *thread)
{
	for (int i = 0; i < PROC_THREAD_FILES; i++)
		proc_close_fd(r, &thread->fd[i]);
}

void proc_close_task(struct proc_reader *r, struct task *task)
{
	struct proc_task *p = task->reader;
	for (int i = 0; p && i < PROC_FILES; i++)
		proc_close_fd(r, &p->fd[i]);
	for (size_t i = 0; i < task->nlisted; i++)
		proc_close_thread(r, &task->threads[i]);
}

static int open_file(struct proc_reader *r, pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	if (tid)
		snprintf(path, sizeof(path), "%d/task/%d/%s", (int)pid, (int)tid, name);
	else
		snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	int fd = openat(r->root, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == EMFILE || errno == ENFILE) {
		r->shed = true;
		r->kept_max = r->kept / 2;
		errno = EMFILE;
	}
	return -errno;
}

/* The descriptor was opened for one read: keep it if that is wanted and there is room. */
static void settle_fd(struct proc_reader *r, int *fd, bool keep, int opened)
{
	if (keep && r->kept < r->kept_max) {
		*fd = opened;
		r->kept++;
	} else {
		close(opened);
	}
}

ssize_t proc_read(struct proc_reader *r, int *fd, bool keep, pid_t pid, pid_t tid, const char *name)
{
	if (*fd >= 0) {
		ssize_t n = io_pread_text(*fd, r->text, sizeof(r->text));
		if (n < 0)
			proc_close_fd(r, fd);
		return n;
	}
	int opened = open_file(r, pid, tid, name);
	if (opened < 0)
		return opened;
	ssize_t n = io_pread_text(opened, r->text, sizeof(r->text));
	settle_fd(r, fd, keep && n >= 0, opened);
	return n;
}

static int add_pid(struct pid_list *list, pid_t pid)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 64;
		pid_t *pids = realloc(list->pids, cap * sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		list->pids = pids;
		list->cap = cap;
	}
	list->pids[list->n++] = pid;
	return 0;
}

static int need_big(struct proc_reader *r, size_t cap)
{
	if (r->big_cap >= cap)
		return 0;
	char *big = realloc(r->big, cap);
	if (!big)
		return -ENOMEM;
	r->big = big;
	r->big_cap = cap;
	return 0;
}

/* The kernel's directory entry, as the system call gives it. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

int proc_list(struct proc_reader *r, const char *path, struct pid_list *list)
{
	int rc = need_big(r, 32768);
	int fd = rc ? -1 : openat(r->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list->n = 0;
	if (fd < 0)
		return rc ? rc : -errno;
	long n = 0;
	while (!rc && (n = syscall(SYS_getdents64, fd, r->big, r->big_cap)) > 0) {
		for (long at = 0; at < n && !rc;) {
			const struct entry *e = (const struct entry *)(const void *)(r->big + at);
			const char *name = e->name;
			uint64_t pid;
			at += e->len;
			if (io_parse_u64(&name, &pid) && !*name)
				rc = add_pid(list, (pid_t)pid);
		}
	}
	if (n < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int proc_children(struct proc_reader *r, int *fd, bool keep, pid_t pid, pid_t tid)
{
	int opened = *fd >= 0 ? *fd : open_file(r, pid, tid, "children");
	if (opened < 0)
		return opened;
	size_t len = 0;
	ssize_t n = 0;
	int rc;
	do {
		rc = need_big(r, len + 4096 + 1);
		if (!rc)
			n = pread(opened, r->big + len, r->big_cap - 1 - len, (off_t)len);
		len += !rc && n > 0 ? (size_t)n : 0;
	} while (!rc && n > 0);
	if (*fd < 0)
		settle_fd(r, fd, keep, opened);
	if (rc || !r->big)
		return rc;
	r->big[len] = 0;
	pid_t child;
	for (const char *p = r->big; !rc && task_parse_child(&p, &child);)
		rc = add_pid(&r->found, child);
	return rc;
}
