/*
 * What one sample of the job source costs, at the pace of real time (so that caches are as cold as they are in
 * use): CPU of reading and putting, and CPU of the whole process with what the recording takes. The job
 * is so many children that sleep.
 *
 *   bench-tasks READER job|all CHILDREN TICKS INTERVAL_MS FOLDER
 *
 * Prints: us per sample (mean, median, least), us per sample of the whole process, peak memory in kB, samples put.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "recording/recording.h"
#include "sources/jobset.h"
#include "sources/sources.h"

static uint64_t cpu_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static pid_t start_children(int n)
{
	pid_t first = 0;
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		first = first ? first : pid;
	}
	return first;
}

struct totals {
	uint64_t sum, whole;
	uint64_t *each;
	int n;
};

static void run(void *state, struct rec_writer *w, int ticks, uint64_t interval_ns,
		struct totals *ret)
{
	uint64_t next = clock_mono_ns(), since = 0;
	for (int i = 0; i < ticks + 2;
	     i++) { /* the first two meet everybody, and are not counted */
		struct timespec until = { (time_t)(next / NS_PER_S), (long)(next % NS_PER_S) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		if (i == 2)
			since = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
		uint64_t before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
		rec_tick_begin(w, clock_mono_ns());
		source_job.sample(state, clock_mono_ns());
		uint64_t took = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		rec_tick_end(w, NULL);
		if (i >= 2)
			ret->each[ret->n++] = took;
		ret->sum += i >= 2 ? took : 0;
		next += interval_ns;
	}
	ret->whole = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - since;
	qsort(ret->each, (size_t)ret->n, sizeof(*ret->each), by_value);
}

int main(int argc, char **argv)
{
	struct err e = { .text = "" };
	struct jobset jobset = { 0 };
	struct rec_options options = { .size = sizeof(options) };
	char status[4096];
	uint64_t kb = 0;
	void *state = NULL;
	char path[4096];
	if (argc < 7)
		return 2;
	int ticks = atoi(argv[4]);
	struct totals t = { .each = calloc((size_t)ticks, sizeof(uint64_t)) };
	struct source_env env = {
		.proc_root = "/proc",
		.sys_root = "/sys",
		.interval_ns = (uint64_t)atoi(argv[5]) * NS_PER_MS,
		.job_pid = start_children(atoi(argv[3])),
		.recorder_pid = getpid(),
		.jobset = &jobset,
		.all_processes = !strcmp(argv[2], "all"),
		.task_reader = argv[1],
	};
	usleep(100000);
	snprintf(path, sizeof(path), "%s/bench-tasks-%d.spot", argv[6], (int)getpid());
	if (!t.each || rec_create(path, &options, &env.w, &e) ||
	    rec_entity(env.w, ENTITY_HOST, 0, "host", 0, 1, &env.host) ||
	    rec_entity(env.w, ENTITY_JOB, env.host, "bench", env.job_pid, 1, &env.job) ||
	    source_job.open(&env, &state, &e)) {
		fprintf(stderr, "bench-tasks: %s\n", e.text);
		return 1;
	}
	run(state, env.w, ticks, env.interval_ns, &t);
	if (io_read_text(AT_FDCWD, "/proc/self/status", status, sizeof(status)) > 0)
		io_find_u64(status, "VmHWM:", &kb);
	struct rec_writer_stats stats;
	rec_writer_stats(env.w, &stats);
	printf("%.1f %.1f %.1f %.1f %llu %.0f\n", (double)t.sum / ticks / 1e3,
	       (double)t.each[t.n / 2] / 1e3, (double)t.each[0] / 1e3,
	       (double)t.whole / ticks / 1e3, (unsigned long long)kb,
	       (double)stats.samples / (ticks + 2));
	fflush(stdout);
	source_job.close(state);
	rec_close(env.w, NULL);
	unlink(path);
	return 0;
}
