/* Loading the BPF task iterator; see tasks_bpf_load.h. */
#include "sources/tasks_bpf_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/embed.h"
#include "base/io.h"
#include "sources/bpf/task_iter.h"
#include "sources/tasks_parse.h"

#define LOAD_MOST_S 5

extern const struct embedded_file task_iter_files[];

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* How deep our pid namespace is: the program numbers processes as we do. */
static unsigned own_pid_level(const struct tasks_config *config)
{
	char text[4096], path[256];
	struct task_status s = { 0 };
	snprintf(path, sizeof(path), "%s/self/status", config->proc_root);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) > 0)
		task_parse_status(text, &s);
	return s.pid_level;
}

static int set_constants(struct bpf_object *o, const struct tasks_config *config)
{
	struct task_iter_constants constants = {
		.recorder = (unsigned)config->recorder_pid,
		.job = (unsigned)config->job_pid,
		.pid_level = own_pid_level(config),
		.all = config->all,
	};
	struct bpf_map *map = bpf_object__find_map_by_name(o, ".rodata");
	return map ? bpf_map__set_initial_value(map, &constants, sizeof(constants)) : -EINVAL;
}

static int load(const struct tasks_config *config, struct tasks_bpf_fds *ret)
{
	libbpf_set_print(quiet);
	struct bpf_object *o =
		bpf_object__open_mem(task_iter_files->data, task_iter_files->len, NULL);
	if (!o)
		return -errno;
	int rc = set_constants(o, config);
	if (!rc)
		rc = bpf_object__load(o);
	if (rc)
		return rc;
	struct bpf_program *program = bpf_object__find_program_by_name(o, "task_iter");
	struct bpf_map *members = bpf_object__find_map_by_name(o, "members");
	struct bpf_map *pass = bpf_object__find_map_by_name(o, "pass");
	if (!program || !members || !pass)
		return -EINVAL;
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	if (!link)
		return errno ? -errno : -EINVAL;
	*ret = (struct tasks_bpf_fds){ bpf_link__fd(link), bpf_map__fd(members),
				       bpf_map__fd(pass) };
	return 0;
}

/* ---------------------------------------------------------------------------- from child to parent */

union fds {
	struct cmsghdr head; /* for its alignment */
	char room[CMSG_SPACE(sizeof(struct tasks_bpf_fds))];
};

static void send_result(int socket, int rc, const struct tasks_bpf_fds *fds)
{
	union fds control = { .room = { 0 } };
	struct iovec io = { &rc, sizeof(rc) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	if (!rc) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(*fds));
		memcpy(CMSG_DATA(c), fds, sizeof(*fds));
	}
	sendmsg(socket, &m, MSG_NOSIGNAL);
}

static int receive_result(int socket, struct tasks_bpf_fds *ret)
{
	union fds control = { .room = { 0 } };
	int rc = 0;
	struct iovec io = { &rc, sizeof(rc) };
	struct msghdr m = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t n;
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (n != (ssize_t)sizeof(rc))
		return -ECHILD;
	if (rc)
		return rc;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(*ret)))
		return -EMFILE;
	memcpy(ret, CMSG_DATA(c), sizeof(*ret));
	return 0;
}

static int load_in_child(const struct tasks_config *config, struct tasks_bpf_fds *ret,
			 uint64_t *ret_cpu_ns)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	struct timeval limit = { .tv_sec = LOAD_MOST_S };
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	pid_t pid = fork();
	if (!pid) {
		struct tasks_bpf_fds fds;
		int rc = load(config, &fds);
		send_result(pair[1], rc, &fds);
		_exit(0);
	}
	int rc = -errno;
	close(pair[1]);
	if (pid > 0) {
		rc = receive_result(pair[0], ret);
		if (rc == -ETIMEDOUT)
			kill(pid, SIGKILL);
		struct rusage ru = { 0 };
		while (wait4(pid, NULL, 0, &ru) < 0 && errno == EINTR)
			;
		*ret_cpu_ns = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NS_PER_S +
			      (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NS_PER_US;
	}
	close(pair[0]);
	return rc;
}

void tasks_bpf_close(struct tasks_bpf_fds *fds)
{
	int *each[] = { &fds->link, &fds->members, &fds->pass };
	for (int i = 0; i < 3; i++) {
		if (*each[i] >= 0)
			close(*each[i]);
		*each[i] = -1;
	}
}

int tasks_bpf_load(const struct tasks_config *config, struct tasks_bpf_fds *ret,
		   uint64_t *ret_cpu_ns, struct err *e)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return err_set(e, ENOTSUP,
			       "/sys/kernel/btf/vmlinux is not there: the kernel was built without "
			       "type information (CONFIG_DEBUG_INFO_BTF)");
	int rc = load_in_child(config, ret, ret_cpu_ns);
	if (rc == -EPERM || rc == -EACCES)
		return err_set(e, -rc,
			       "the kernel refuses BPF programs: root, or CAP_BPF and CAP_PERFMON, "
			       "is needed");
	if (rc)
		return err_set(e, -rc, "the BPF task iterator could not be loaded: %s",
			       strerror(-rc));
	return 0;
}
