/* --steps-from: the recorder's side; see tee.h. The helper itself is tee_helper.c. */
#include "record/tee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/tee_helper.h"

#define FINISH_MS 10000

struct stream {
	int in;      /* the helper reads the job's output here */
	int out;     /* the job's new standard output or error; -1: not watched */
	int control; /* to the helper; -1: none */
};

struct tee {
	struct stream stream[2]; /* of standard output, standard error */
	bool joined;             /* the first one carries both */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A terminal in front of the terminal fd: raw, of the same size. */
static int open_terminal(int fd, struct stream *s)
{
	char name[64];
	struct termios mode;
	struct winsize size;
	s->in = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (s->in < 0)
		return -errno;
	if (grantpt(s->in) || unlockpt(s->in) || ptsname_r(s->in, name, sizeof(name)))
		return -errno;
	s->out = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (s->out < 0 || tcgetattr(s->out, &mode))
		return -errno;
	cfmakeraw(&mode);
	if (tcsetattr(s->out, TCSANOW, &mode))
		return -errno;
	if (!ioctl(fd, TIOCGWINSZ, &size))
		ioctl(s->in, TIOCSWINSZ, &size);
	return 0;
}

static int open_pipe(struct stream *s)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	s->in = ends[0];
	s->out = ends[1];
	return 0;
}

static void drop_stream(struct stream *s)
{
	close_fd(&s->in);
	close_fd(&s->out);
	close_fd(&s->control);
}

static int open_stream(int fd, struct stream *s)
{
	*s = (struct stream){ -1, -1, -1 };
	int flags = fcntl(fd, F_GETFD);
	if (flags < 0 || (flags & FD_CLOEXEC)) /* closed, for the job: it shall find it so */
		return -EBADF;
	int rc = isatty(fd) ? open_terminal(fd, s) : -ENOTTY;
	if (rc) {
		drop_stream(s);
		rc = open_pipe(s);
	}
	return rc;
}

/* Do both descriptors lead to the same place? */
static bool same_place(int a, int b)
{
	struct stat x, y;
	if (fstat(a, &x) || fstat(b, &y))
		return false;
	return x.st_dev == y.st_dev && x.st_ino == y.st_ino && x.st_rdev == y.st_rdev;
}

/*
 * Start the helper of one stream as a grandchild, so that it is nobody's child here. Fails without a helper.
 */
static int start_helper(int fd, struct stream *s, const regex_t *regex, const char *source,
			const char *dir)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid_t pid = fork();
	if (!pid) {
		pid_t helper = fork();
		if (helper)
			_exit(helper < 0);
		struct tee_helper h = {
			.in = s->in, .out = fd, .control = pair[1], .regex = regex, .source = source
		};
		tee_helper_run(&h, dir);
	}
	close(pair[1]);
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || status) {
		close(pair[0]);
		return -EAGAIN;
	}
	s->control = pair[0];
	return 0;
}

int tee_prepare(const char *regex, const char *dir, struct tee **ret, struct err *e)
{
	char why[256], *source = NULL;
	regex_t compiled;
	int rc = regcomp(&compiled, regex, REG_EXTENDED);
	if (rc) {
		regerror(rc, &compiled, why, sizeof(why));
		return err_set(e, EINVAL, "--steps-from: '%s' is no regular expression: %s", regex,
			       why);
	}
	struct tee *t = calloc(1, sizeof(*t));
	if (!t || asprintf(&source, "regex '%s'", regex) < 0) {
		free(t);
		regfree(&compiled);
		return err_set(e, ENOMEM, "--steps-from: out of memory");
	}
	t->joined = same_place(STDOUT_FILENO, STDERR_FILENO);
	for (int i = 0; i < 2; i++) {
		struct stream *s = &t->stream[i];
		*s = (struct stream){ -1, -1, -1 };
		if (!*dir || (i && t->joined))
			continue;
		int fd = i ? STDERR_FILENO : STDOUT_FILENO;
		if (open_stream(fd, s) || start_helper(fd, s, &compiled, source, dir))
			drop_stream(s);
		close_fd(&s->in);
	}
	free(source);
	regfree(&compiled);
	if (!*dir) {
		free(t);
		t = NULL;
	}
	*ret = t;
	return 0;
}

int tee_stdout(const struct tee *t)
{
	return t->stream[0].out;
}

int tee_stderr(const struct tee *t)
{
	return t->stream[t->joined ? 0 : 1].out;
}

void tee_parent_after_fork(struct tee *t)
{
	close_fd(&t->stream[0].out);
	close_fd(&t->stream[1].out);
}

/* Ask the helper to say when nothing is left to forward, and wait for it, or for its end. */
static void wait_until_forwarded(struct stream *s, uint64_t deadline_ns)
{
	char c = 'f';
	if (s->control < 0 || send(s->control, &c, 1, MSG_NOSIGNAL) != 1)
		return;
	struct pollfd p = { .fd = s->control, .events = POLLIN };
	for (;;) {
		uint64_t now = clock_mono_ns();
		int left = now < deadline_ns ? (int)((deadline_ns - now) / NS_PER_MS) + 1 : 0;
		int rc = poll(&p, 1, left);
		if (rc >= 0 || errno != EINTR)
			break;
	}
}

void tee_finish(struct tee *t)
{
	if (!t)
		return;
	tee_parent_after_fork(t);
	uint64_t deadline = clock_mono_ns() + FINISH_MS * NS_PER_MS;
	for (int i = 0; i < 2; i++) {
		wait_until_forwarded(&t->stream[i], deadline);
		drop_stream(&t->stream[i]);
	}
	free(t);
}
