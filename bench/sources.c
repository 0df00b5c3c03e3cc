/*
 * What one sample of each source costs: CPU of the recorder's thread per tick, puts into a real recording
 * included, with the time of the ticks made up as 1 Hz (so what is read every 2 s is paid half). The job is
 * this process itself.
 *
 *   bench-sources [TICKS [FOLDER]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/recording.h"
#include "sources/jobset.h"
#include "sources/source.h"

static uint64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(const struct source *source, struct source_env *env, uint64_t *t_ns, int ticks)
{
	struct err e = { .text = "" };
	void *state = NULL;
	double *us = calloc((size_t)ticks, sizeof(*us)), sum = 0;
	uint64_t opening = cpu_ns();
	if (!us || source->open(env, &state, &e)) {
		printf("%-15s -          -       -        %.60s\n", source->name, e.text);
		free(us);
		return;
	}
	opening = cpu_ns() - opening;
	for (int i = 0; i < ticks; i++) {
		*t_ns += NS_PER_S;
		rec_tick_begin(env->w, *t_ns);
		uint64_t before = cpu_ns();
		source->sample(state, *t_ns);
		us[i] = (double)(cpu_ns() - before) / 1e3;
		sum += us[i];
		rec_tick_end(env->w, &e);
	}
	source->close(state);
	qsort(us, (size_t)ticks, sizeof(*us), by_value);
	printf("%-15s %-10.2f %-7.2f %-8.2f %.2f\n", source->name, sum / ticks, us[ticks / 2],
	       us[ticks * 99 / 100], (double)opening / 1e3);
	free(us);
}

int main(int argc, char **argv)
{
	int ticks = argc > 1 ? atoi(argv[1]) : 2000;
	const char *folder = argc > 2 ? argv[2] : "/dev/shm";
	char path[4096];
	struct err e = { .text = "" };
	struct jobset jobset = { 0 };
	struct rec_options options = { .size = sizeof(options) };
	struct source_env env = { .proc_root = "/proc",
				  .sys_root = "/sys",
				  .interval_ns = NS_PER_S,
				  .job_pid = getpid(),
				  .recorder_pid = getpid(),
				  .jobset = &jobset,
				  .task_reader = "auto" };
	uint64_t t_ns = clock_mono_ns();
	snprintf(path, sizeof(path), "%s/bench-sources-%d.spot", folder, (int)getpid());
	if (ticks < 1 || rec_create(path, &options, &env.w, &e)) {
		fprintf(stderr, "bench-sources: %s\n", e.text);
		return 1;
	}
	rec_entity(env.w, ENTITY_HOST, 0, "host", 0, t_ns, &env.host);
	rec_entity(env.w, ENTITY_JOB, env.host, "bench", getpid(), t_ns, &env.job);
	printf("%d ticks as of 1 Hz; us of CPU per sample\n", ticks);
	printf("%-15s %-10s %-7s %-8s %s\n", "source", "mean", "p50", "p99", "open");
	for (const struct source *const *s = sources; *s; s++)
		measure(*s, &env, &t_ns, ticks);
	map_free(&jobset.pids);
	int rc = rec_close(env.w, &e);
	unlink(path);
	return rc ? 1 : 0;
}
