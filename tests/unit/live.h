/*
 * Live processes for tests of what reads processes: each does what its function says, tells that it is ready, and
 * then sleeps until it is ended. All die with the test.
 */
#ifndef SPOTTER_TESTS_LIVE_H
#define SPOTTER_TESTS_LIVE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

struct live {
	pid_t pid;
	int ready; /* descriptor on which it says that it is */
};

static inline uint64_t live_cpu_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Use so much CPU time in this thread, now and then in the kernel. */
static inline void live_burn_ms(unsigned ms)
{
	uint64_t until = live_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ull;
	volatile unsigned x = 0;
	while (live_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 1000; i++)
			x += (unsigned)i;
	(void)x;
}

/* Allocate and touch; never freed. */
static inline void live_touch(size_t bytes)
{
	volatile char *p = malloc(bytes);
	for (size_t i = 0; p && i < bytes; i += 4096)
		p[i] = 1;
}

/* Write so many bytes to a file that has no name, and read them back. */
static inline void live_write_read(size_t bytes)
{
	static char block[65536];
	char path[] = "/tmp/spotter-live-XXXXXX";
	int fd = mkstemp(path);
	unlink(path);
	for (size_t n = 0; n < bytes; n += sizeof(block))
		if (write(fd, block, sizeof(block)) < 0)
			abort();
	for (size_t n = 0; n < bytes; n += sizeof(block))
		if (pread(fd, block, sizeof(block), (off_t)n) < 0)
			abort();
	close(fd);
}

static inline void *live_sleep(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static inline void live_say_ready(int fd)
{
	if (write(fd, "r", 1) != 1)
		_exit(1);
}

/* Start a child that runs what(arg); wait until it is done with it and sleeps. */
static inline struct live live_start(void (*what)(void *), void *arg)
{
	struct live l;
	int fds[2];
	char c;
	if (pipe2(fds, O_CLOEXEC))
		abort();
	l.pid = fork();
	if (!l.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		if (what)
			what(arg);
		live_say_ready(fds[1]);
		live_sleep(NULL);
	}
	close(fds[1]);
	l.ready = fds[0];
	if (read(l.ready, &c, 1) != 1)
		abort();
	return l;
}

static inline void live_end(struct live *l)
{
	if (l->pid > 0) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
		close(l->ready);
	}
	l->pid = 0;
}

/* Until pid is asleep (or a zombie): its counters then stand still. */
static inline void live_wait_asleep(pid_t pid)
{
	char path[64], text[512];
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		if (io_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
			return;
		const char *p = strrchr(text, ')');
		if (p && (p[2] == 'S' || p[2] == 'Z'))
			return;
		usleep(1000);
	}
}

#endif
