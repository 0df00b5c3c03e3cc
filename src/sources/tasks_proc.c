/*
 * The task reader over /proc; see tasks.h and tasks_proc.h.
 *
 * A process that did not run since the last pass can have changed nothing but its memory, so its CPU clock is
 * asked first (a third of the price of any file, no permission needed), and only who ran is read: then with
 * descriptors that are kept as long as it keeps running. The same clocks give CPU time to the nanosecond, where
 * /proc/PID/stat counts in 10 ms. Sleepers' memory is looked at now and then.
 */
#include "sources/tasks_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define KEEP_QUIET  30       /* passes after which a sleeper's descriptors are closed */
#define SLEEPER_JOB 16       /* a sleeper's memory is read in one of so many passes */
#define SLEEPER     64       /* ... if it is not of the job */
#define SLOW_NS     NS_PER_S /* the expensive files are read at most so often */
#define FULL_PASSES 10

/* A process's CPU clocks, as clock_getcpuclockid() makes them: all, user, and both as the timer ticks. */
enum { CLOCK_TICKS_ALL, CLOCK_TICKS_USER, CLOCK_RUNTIME };

static bool cpu_clock(pid_t pid, unsigned which, uint64_t *ret_ns)
{
	struct timespec t;
	if (clock_gettime((clockid_t)(~(unsigned)pid << 3 | which), &t))
		return false;
	*ret_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	return true;
}

static void set_io(struct task *task, const struct task_io *io)
{
	proc_set(task, TASK_READ, io->read);
	proc_set(task, TASK_WRITTEN, io->written);
	proc_set(task, TASK_DISK_READ, io->disk_read);
	proc_set(task, TASK_DISK_WRITTEN, io->disk_written);
}

static void set_reaped(struct task *task, int what, uint64_t value)
{
	task->reaped[what] = value < INT64_MAX ? (int64_t)value : INT64_MAX;
	task->reaped_have |= 1u << what;
}

/* -------------------------------------------------------------------------------- the files of one */

static int read_stat(struct proc_reader *r, struct task *task, struct proc_task *p, bool keep)
{
	struct task_stat s;
	ssize_t n = proc_read(r, &p->fd[PROC_STAT], keep, task->pid, 0, "stat");
	if (n < 0)
		return (int)n;
	/* Of a process that is just being reaped the kernel says 0 threads, and 0 of all else. */
	if (!task_parse_stat(r->text, &s) || !s.nthreads || (p->known && s.start != task->start))
		return -ESRCH;
	task->start = s.start;
	task->ppid = s.ppid;
	task->state = s.state;
	task->kernel = s.kernel;
	task->nthreads = (int64_t)s.nthreads;
	if (strcmp(task->comm, s.comm)) {
		task->renamed = p->known;
		memcpy(task->comm, s.comm, sizeof(task->comm));
	}
	int64_t user = (int64_t)s.user * TASK_TICK_NS, system = (int64_t)s.system * TASK_TICK_NS;
	proc_set(task, TASK_USER,
		 (uint64_t)(user > task->own[TASK_USER] ? user : task->own[TASK_USER]));
	proc_set(task, TASK_SYSTEM,
		 (uint64_t)(system > task->own[TASK_SYSTEM] ? system : task->own[TASK_SYSTEM]));
	proc_set(task, TASK_MINOR_FAULTS, s.minor_faults);
	proc_set(task, TASK_MAJOR_FAULTS, s.major_faults);
	set_reaped(task, TASK_USER, s.reaped_user * TASK_TICK_NS);
	set_reaped(task, TASK_SYSTEM, s.reaped_system * TASK_TICK_NS);
	set_reaped(task, TASK_MINOR_FAULTS, s.reaped_minor_faults);
	set_reaped(task, TASK_MAJOR_FAULTS, s.reaped_major_faults);
	return 0;
}

/* CPU time to the ns, where the clocks are to be had. */
static void refine_cpu(struct task *task, uint64_t runtime)
{
	uint64_t ticks, user_ticks;
	if (!cpu_clock(task->pid, CLOCK_TICKS_ALL, &ticks) ||
	    !cpu_clock(task->pid, CLOCK_TICKS_USER, &user_ticks) || user_ticks > ticks)
		return;
	task_split_cpu(user_ticks, ticks - user_ticks, runtime, &task->own[TASK_USER],
		       &task->own[TASK_SYSTEM]);
}

/* A thread that still has the memory: the main one lets go of it when it ends. */
static pid_t memory_holder(const struct task *task)
{
	if (task->state != 'Z' || task->nthreads < 2)
		return 0;
	for (size_t i = 0; i < task->nlisted; i++)
		if (task->threads[i].tid != task->pid)
			return task->threads[i].tid;
	return 0;
}

static void read_memory(struct proc_reader *r, struct task *task, struct proc_task *p, bool keep)
{
	uint64_t pages;
	int once = -1;
	if (task->kernel)
		return;
	pid_t holder = memory_holder(task);
	ssize_t n = proc_read(r, holder ? &once : &p->fd[PROC_STATM], keep && !holder, task->pid,
			      holder, "statm");
	if (n <= 0 || !task_parse_statm(r->text, &pages))
		return;
	task->rss = (int64_t)(pages * (uint64_t)sysconf(_SC_PAGESIZE));
	task->have |= TASK_HAS_RSS;
	task->fresh |= TASK_HAS_RSS;
}

static void read_io(struct proc_reader *r, struct task *task, struct proc_task *p, bool keep)
{
	struct task_io io;
	if (task->denied & TASK_HAS_IO && !r->slow)
		return;
	ssize_t n = proc_read(r, &p->fd[PROC_IO], keep, task->pid, 0, "io");
	task->denied &= ~(unsigned)TASK_HAS_IO;
	if (n == -EACCES || n == -EPERM)
		task->denied |= TASK_HAS_IO;
	if (n <= 0 || !task_parse_io(r->text, &io))
		return;
	set_io(task, &io);
}

/* ------------------------------------------------------------------------------------- a process */

/* It slept: all that was read still holds, but for its memory, which others may take away. */
static void check_sleeper(struct proc_reader *r, struct task_table *t, struct proc_entry *e)
{
	struct task_status s;
	int once = -1;
	pid_t holder = memory_holder(e->task);
	if (e->task->kernel ||
	    proc_read(r, &once, false, e->pid, holder ? holder : e->pid, "status") <= 0)
		return;
	task_parse_status(r->text, &s);
	proc_take_status(e->task, &s);
	if (s.have_memory)
		e->task->rss = (int64_t)s.rss;
	task_changed(t, e->task);
}

static void sleeps(struct proc_reader *r, struct task_table *t, struct proc_entry *e)
{
	uint32_t turn = e->job ? SLEEPER_JOB : SLEEPER;
	if (!e->quiet)
		((struct proc_task *)e->task->reader)->active = 0;
	if (e->quiet == KEEP_QUIET)
		proc_close_task(r, e->task);
	if (e->quiet <= KEEP_QUIET)
		e->quiet++;
	if ((t->pass + (uint32_t)e->pid) % turn == 0)
		check_sleeper(r, t, e);
}

/* Read all of it. False: it is gone. */
static bool read_task(struct proc_reader *r, struct task_table *t, struct task *task,
		      const uint64_t *clock)
{
	struct proc_task *p = task->reader;
	bool keep = p->active > 0, slow = r->slow;
	task->fresh = 0;
	int rc = read_stat(r, task, p, keep);
	if (rc && !(rc == -EMFILE && p->known))
		return false;
	if (clock)
		refine_cpu(task, *clock);
	r->slow |= !p->known;
	proc_read_threads(r, t, task, keep);
	read_memory(r, task, p, keep);
	read_io(r, task, p, keep);
	r->slow = slow;
	p->known = true;
	p->active++;
	p->walks = 2;
	task_changed(t, task);
	return true;
}

/* Bring one up to date. False: it is gone. */
static bool refresh(struct proc_reader *r, struct task_table *t, struct proc_entry *e)
{
	uint64_t clock = 0;
	bool have_clock = r->clocks && cpu_clock(e->pid, CLOCK_RUNTIME, &clock);
	bool read = e->fresh || (e->behind && r->slow) || (r->full && e->task->stale) || r->shed;
	if (have_clock && clock == e->clock && !read) {
		sleeps(r, t, e);
		return true;
	}
	if (e->task->gone)
		return false;
	if (r->shed)
		proc_close_task(r, e->task);
	e->quiet = 0;
	if (!read_task(r, t, e->task, have_clock ? &clock : NULL))
		return false;
	e->clock = clock;
	e->behind = !r->slow && !e->fresh;
	e->fresh = e->task->stale = false;
	return true;
}

static void refresh_all(struct proc_reader *r, struct task_table *t)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct proc_entry *e = &r->list[i];
		if (refresh(r, t, e)) {
			r->list[kept++] = *e;
			continue;
		}
		((struct proc_task *)e->task->reader)->listed = false;
		task_gone(t, e->task); /* its pid may be found again, as somebody else's */
	}
	r->n = kept;
	r->shed = false;
}

/* From now on this reader watches it. */
static int adopt(struct proc_reader *r, struct task *task)
{
	struct proc_task *p = calloc(1, sizeof(*p));
	if (p && r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 64;
		struct proc_entry *list = realloc(r->list, cap * sizeof(*list));
		if (!list) {
			free(p);
			return -ENOMEM;
		}
		r->list = list;
		r->cap = cap;
	}
	if (!p)
		return -ENOMEM;
	for (int i = 0; i < PROC_FILES; i++)
		p->fd[i] = -1;
	p->listed = true;
	task->reader = p;
	r->list[r->n++] = (struct proc_entry){
		.task = task, .pid = task->pid, .job = task->job, .fresh = true
	};
	return 0;
}

static bool belongs_to_job(const struct proc_reader *r, const struct task_table *t, pid_t pid,
			   pid_t ppid)
{
	const struct task *parent = task_find(t, ppid);
	if (pid == r->config.recorder_pid)
		return false;
	return pid == r->config.job_pid || (ppid && ppid == r->config.recorder_pid) ||
	       (parent && parent->job);
}

struct task *proc_meet(struct proc_reader *r, struct task_table *t, pid_t pid)
{
	struct task_stat s;
	int once = -1;
	if (proc_read(r, &once, false, pid, 0, "stat") <= 0 || !task_parse_stat(r->text, &s))
		return NULL;
	bool job = belongs_to_job(r, t, pid, s.ppid);
	if (!job && !r->config.all)
		return NULL;
	struct task *task = task_add(t, pid, s.start);
	if (!task)
		return NULL;
	task->job = job;
	if (!adopt(r, task) && refresh(r, t, &r->list[r->n - 1]))
		return task;
	if (task->reader) {
		((struct proc_task *)task->reader)->listed = false;
		r->n--;
	}
	task_gone(t, task);
	return NULL;
}

/* ------------------------------------------------------------------------------------- the reader */

static int probe(const struct tasks_config *config, struct buf *why)
{
	char text[4096], path[256];
	snprintf(path, sizeof(path), "%s/self/stat", config->proc_root);
	ssize_t n = io_read_text(AT_FDCWD, path, text, sizeof(text));
	if (n < 0) {
		buf_addf(why, "%s cannot be read (%s); mount proc", path, strerror((int)-n));
		return (int)n;
	}
	buf_addf(why, "%s is readable", config->proc_root);
	return 0;
}

static uint32_t passes_in(uint64_t ns, uint64_t interval_ns)
{
	uint64_t n = interval_ns ? (ns + interval_ns - 1) / interval_ns : 1;
	return n < 1 ? 1 : n > 100000 ? 100000 : (uint32_t)n;
}

static void close_reader(void *state)
{
	struct proc_reader *r = state;
	proc_close_fd(r, &r->own_children);
	if (r->loadavg >= 0)
		close(r->loadavg);
	if (r->root >= 0)
		close(r->root);
	map_free(&r->strangers);
	free(r->big);
	free(r->list);
	free(r->found.pids);
	free(r->threads.pids);
	free(r);
}

static int open_reader(const struct tasks_config *config, void **ret_state, struct err *e)
{
	struct proc_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, ENOMEM, "out of memory");
	r->config = *config;
	r->loadavg = r->own_children = -1;
	r->root = open(config->proc_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->root < 0) {
		int rc =
			err_set(e, errno, "cannot open %s: %s", config->proc_root, strerror(errno));
		close_reader(r);
		return rc;
	}
	uint64_t now;
	r->loadavg = openat(r->root, "loadavg", O_RDONLY | O_CLOEXEC);
	r->clocks = !strcmp(config->proc_root, "/proc") &&
		    cpu_clock(getpid(), CLOCK_RUNTIME, &now) && now;
	r->children = true;
	r->schedstat = !faccessat(r->root, "self/schedstat", R_OK, 0);
	r->slow_every = passes_in(SLOW_NS, config->interval_ns);
	r->full_every = passes_in(5 * NS_PER_S, config->interval_ns);
	if (r->full_every < FULL_PASSES)
		r->full_every = FULL_PASSES;
	r->kept_max = proc_fd_limit();
	map_init(&r->strangers);
	*ret_state = r;
	return 0;
}

static int read_all(void *state, struct task_table *t)
{
	struct proc_reader *r = state;
	bool first = !t->n;
	r->slow = first || t->pass % r->slow_every == 0;
	r->full = first || t->pass % r->full_every == 0;
	refresh_all(r, t);
	if (first && r->config.job_pid)
		proc_meet(r, t, r->config.job_pid);
	proc_find(r, t);
	return 0;
}

static void forget(void *state, struct task *task)
{
	struct proc_reader *r = state;
	struct proc_task *p = task->reader;
	size_t kept = 0;
	proc_close_task(r, task);
	for (size_t i = 0; p && p->listed && i < r->n; i++)
		if (r->list[i].task != task)
			r->list[kept++] = r->list[i];
	if (p && p->listed)
		r->n = kept;
	free(p);
	task->reader = NULL;
}

int task_read_zombie(const char *proc_root, struct task *task)
{
	char path[256], text[4096];
	struct task_stat s;
	struct task_io io;
	uint64_t run, delay, runs;
	snprintf(path, sizeof(path), "%s/%d", proc_root, (int)task->pid);
	int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!task->have && io_read_text(dir, "stat", text, sizeof(text)) > 0 &&
	    task_parse_stat(text, &s)) {
		task->start = s.start;
		task->ppid = s.ppid;
		memcpy(task->comm, s.comm, sizeof(task->comm));
	}
	if (io_read_text(dir, "io", text, sizeof(text)) > 0 && task_parse_io(text, &io))
		set_io(task, &io);
	if (io_read_text(dir, "schedstat", text, sizeof(text)) > 0 &&
	    task_parse_schedstat(text, &run, &delay, &runs) &&
	    (int64_t)delay > task->own[TASK_RUN_DELAY])
		proc_set(task, TASK_RUN_DELAY, delay);
	close(dir);
	return 0;
}

const struct task_reader task_reader_proc = {
	.name = "proc",
	.help = "the files of /proc",
	.probe = probe,
	.open = open_reader,
	.read = read_all,
	.forget = forget,
	.close = close_reader,
};
