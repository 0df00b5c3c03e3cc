/* The helper process behind --steps-from; see tee_helper.h. */
#include "record/tee_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { FD_IN, FD_OUT, FD_CONTROL, FD_COUNT };

/* ------------------------------------------------------------------------------------------ lines */

/* The number in line[from..to), or -1: digits only, as many as fit. */
static int64_t number(const char *line, regoff_t from, regoff_t to)
{
	int64_t value = 0;
	if (from < 0 || from == to || to - from > 18)
		return -1;
	for (regoff_t i = from; i < to; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		value = value * 10 + (line[i] - '0');
	}
	return value;
}

static void look_at_line(struct tee_matcher *m, uint64_t now_ns)
{
	regmatch_t at[2] = { { .rm_so = 0, .rm_eo = (regoff_t)m->len }, { -1, -1 } };
	m->line[m->len] = '\0'; /* REG_STARTEND needs none; sanitizers read up to one */
	if (regexec(m->regex, m->line, 2, at, REG_STARTEND))
		return;
	int64_t index = m->regex->re_nsub ? number(m->line, at[1].rm_so, at[1].rm_eo) : -1;
	uint64_t begin = m->last_ns ? m->last_ns : now_ns;
	struct wire_record r = {
		.t_ns = begin,
		.dur_ns = now_ns - begin,
		.kind = WIRE_STEP,
		.arg = { index >= 0 ? index : m->count, 0, WIRE_NONE, WIRE_NONE, WIRE_NONE },
	};
	if (m->ring)
		ring_writer_put(m->ring, &r);
	m->last_ns = now_ns;
	m->count++;
}

/* Where the line ends: the first '\n' or '\r', or NULL. */
static const char *line_end(const char *data, size_t n)
{
	const char *nl = memchr(data, '\n', n);
	const char *cr = memchr(data, '\r', nl ? (size_t)(nl - data) : n);
	return cr ? cr : nl;
}

void tee_matcher_add(struct tee_matcher *m, const char *data, size_t n, uint64_t now_ns)
{
	while (n) {
		const char *end = line_end(data, n);
		size_t part = end ? (size_t)(end - data) : n;
		size_t fits = part < TEE_LINE_MAX - m->len ? part : TEE_LINE_MAX - m->len;
		memcpy(m->line + m->len, data, fits);
		m->len += fits;
		if (end)
			tee_matcher_end(m, now_ns);
		part += end != NULL;
		data += part;
		n -= part;
	}
}

void tee_matcher_end(struct tee_matcher *m, uint64_t now_ns)
{
	if (m->len)
		look_at_line(m, now_ns);
	m->len = 0;
}

/* ---------------------------------------------------------------------------------------- process */

static volatile sig_atomic_t resized;

static void on_resize(int sig)
{
	(void)sig;
	resized = 1;
}

/* Nothing that is sent to the job's process group may end or stop the flow of its output. */
static void settle_signals(void)
{
	struct sigaction sa = { .sa_handler = on_resize };
	sigset_t mask;
	sigaction(SIGWINCH, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigfillset(&mask);
	sigdelset(&mask, SIGWINCH);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Keep only our three descriptors, as 0, 1, 2; whatever else the recorder had open is not ours. */
static bool settle_descriptors(const struct tee_helper *h)
{
	int from[FD_COUNT] = { h->in, h->out, h->control };
	for (int i = 0; i < FD_COUNT; i++) {
		from[i] = fcntl(from[i], F_DUPFD, FD_COUNT);
		if (from[i] < 0)
			return false;
	}
	for (int i = 0; i < FD_COUNT; i++)
		dup2(from[i], i);
	if (syscall(SYS_close_range, FD_COUNT, ~0U, 0)) /* before Linux 5.9 */
		for (int fd = FD_COUNT; fd < 1024; fd++)
			close(fd);
	return true;
}

static void pass_on_size(void)
{
	struct winsize size;
	resized = 0;
	if (!ioctl(FD_OUT, TIOCGWINSZ, &size))
		ioctl(FD_IN, TIOCSWINSZ, &size);
}

static bool forward(const char *data, size_t n)
{
	while (n) {
		ssize_t k = write(FD_OUT, data, n);
		if (k >= 0) {
			data += k;
			n -= (size_t)k;
		} else if (errno == EAGAIN) {
			struct pollfd p = { .fd = FD_OUT, .events = POLLOUT };
			poll(&p, 1, 1000);
		} else if (errno != EINTR) {
			return false;
		}
		if (resized)
			pass_on_size();
	}
	return true;
}

/* Wait for output. The recorder's question is answered when there is none left. False: nothing will come. */
static bool wait_for_output(bool *asked)
{
	struct pollfd p[] = { { .fd = FD_IN, .events = POLLIN },
			      { .fd = FD_CONTROL, .events = POLLIN } };
	for (;;) {
		if (resized)
			pass_on_size();
		p[1].fd = *asked ? -1 : FD_CONTROL;
		int n = poll(p, 2, -1);
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0 && p[0].revents)
			return true;
		if (n > 0 && p[1].revents) { /* and no output */
			char c;
			*asked = true;
			if (recv(FD_CONTROL, &c, 1, MSG_DONTWAIT) == 1)
				send(FD_CONTROL, &c, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			close(FD_CONTROL);
		}
	}
}

static void copy(struct tee_matcher *m)
{
	static char data[65536];
	bool asked = false;
	while (wait_for_output(&asked)) {
		ssize_t n = read(FD_IN, data, sizeof(data));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0) /* all writers closed; of a terminal that is EIO */
			break;
		uint64_t now = clock_mono_ns();
		if (!forward(data, (size_t)n))
			break;
		tee_matcher_add(m, data, (size_t)n, now);
	}
	tee_matcher_end(m, clock_mono_ns());
}

_Noreturn void tee_helper_run(const struct tee_helper *h, const char *dir)
{
	static struct tee_matcher matcher;
	struct ring_writer ring = { 0 };
	matcher.regex = h->regex;
	prctl(PR_SET_NAME, "spotter-output");
	settle_signals();
	if (!settle_descriptors(h))
		_exit(1);
	if (!ring_writer_open(&ring, dir, 0, 0, h->source))
		matcher.ring = &ring;
	copy(&matcher);
	_exit(0);
}
