/*
 * Synthetic recordings for tests of analyses and reports: a run of which every number is known, made
 * through the writer's own interface. A test starts from `synthetic_healthy`, bends what it is about, and writes.
 */
#ifndef SPOTTER_TESTS_SYNTHETIC_H
#define SPOTTER_TESTS_SYNTHETIC_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "recording/recording.h"

#define SYN_T0 (1000 * NS_PER_S)

struct synthetic {
	int seconds;                                  /* of ticks, one per second */
	double cores, cores_allowed, delay, others;   /* cores; delay: cores waited for */
	double rss_mb, rss_mb_per_s, limit_mb;        /* limit 0: none but the host's */
	double disk_read_mb_s, io_some, io_read_mb_s; /* io_some: share of PSI */
	double swap_mb_s, memory_some, faults_s;      /* faults_s: major faults of the job per s */
	double step_ms, wait_share;                   /* 0 ms: no steps */
	int slow_every; /* every n-th step takes slow_factor; 0: none */
	double slow_factor;
	int checkpoint_every; /* steps; each takes checkpoint_ms of its step */
	double checkpoint_ms;
	int gc_every;
	double gc_ms;
	int workers;
	int processes;         /* 0: one */
	double pss_mb;         /* 0: not known */
	int gpu;               /* 1: one GPU; 2: and the job uses it */
	const char *exit_code; /* NULL: none */
	const char *signal;    /* NULL: none */
	bool unfinished;       /* the recorder was killed */
	bool no_job_metrics;
	const char *command;
};

static inline struct synthetic synthetic_healthy(void)
{
	return (struct synthetic){
		.seconds = 60,
		.cores = 1.0,
		.cores_allowed = 2,
		.delay = 0.005,
		.others = 0.02,
		.rss_mb = 400,
		.io_read_mb_s = 0.2,
		.step_ms = 50,
		.wait_share = 0.04,
		.slow_factor = 1,
		.exit_code = "0",
		.command = "python3 train.py --epochs 5",
	};
}

enum {
	SYN_USER,
	SYN_SYSTEM,
	SYN_DELAY,
	SYN_ALLOWED,
	SYN_RSS,
	SYN_PSS,
	SYN_LIMIT,
	SYN_READ,
	SYN_WRITTEN,
	SYN_DISK_READ,
	SYN_DISK_WRITTEN,
	SYN_THREADS,
	SYN_PROCESSES,
	SYN_FAULTS,
	SYN_JOB,
	SYN_H_USER = SYN_JOB,
	SYN_H_SYSTEM,
	SYN_H_IDLE,
	SYN_H_IOWAIT,
	SYN_H_COUNT,
	SYN_H_RUNNABLE,
	SYN_H_TOTAL,
	SYN_H_AVAILABLE,
	SYN_H_SWAP_IN,
	SYN_H_SWAP_OUT,
	SYN_H_IO_SOME,
	SYN_H_MEM_SOME,
	SYN__COUNT
};

static inline uint64_t syn_at(double s)
{
	return SYN_T0 + (uint64_t)(s * 1e9);
}

static inline void syn_put(struct rec_writer *w, uint32_t id, enum metric_id m, double v)
{
	if (id == UINT32_MAX)
		return;
	if (metrics[m].type == METRIC_F64)
		rec_put_f64(w, id, v);
	else
		rec_put_i64(w, id, (int64_t)v);
}

static inline void syn_ticks(struct rec_writer *w, const struct synthetic *s, uint32_t host,
			     uint32_t job, uint32_t gpu)
{
	static const enum metric_id ids[SYN__COUNT] = {
		METRIC_CPU_USER,         METRIC_CPU_SYSTEM,
		METRIC_CPU_RUN_DELAY,    METRIC_CPU_ALLOWED,
		METRIC_MEMORY_RSS,       METRIC_MEMORY_PSS,
		METRIC_MEMORY_LIMIT,     METRIC_IO_READ,
		METRIC_IO_WRITTEN,       METRIC_IO_DISK_READ,
		METRIC_IO_DISK_WRITTEN,  METRIC_SCHED_THREADS,
		METRIC_SCHED_PROCESSES,  METRIC_MEMORY_FAULTS_MAJOR,
		METRIC_CPU_USER,         METRIC_CPU_SYSTEM,
		METRIC_CPU_IDLE,         METRIC_CPU_IOWAIT,
		METRIC_CPU_COUNT,        METRIC_SCHED_RUNNABLE,
		METRIC_MEMORY_TOTAL,     METRIC_MEMORY_AVAILABLE,
		METRIC_SWAP_IN,          METRIC_SWAP_OUT,
		METRIC_PRESSURE_IO_SOME, METRIC_PRESSURE_MEMORY_SOME,
	};
	static const enum metric_id gpu_ids[] = { METRIC_GPU_UTILIZATION, METRIC_MEMORY_USED,
						  METRIC_MEMORY_TOTAL, METRIC_GPU_PROCESSES,
						  METRIC_GPU_JOB_PROCESSES };
	uint32_t series[SYN__COUNT], gpu_series[5];
	for (int i = 0; i < SYN__COUNT; i++) {
		series[i] = UINT32_MAX;
		if ((i < SYN_JOB && s->no_job_metrics) || (i == SYN_LIMIT && !s->limit_mb) ||
		    (i == SYN_PSS && !s->pss_mb))
			continue;
		assert_int_equal(
			rec_series(w, i < SYN_JOB ? job : host, ids[i], "synthetic", &series[i]),
			0);
	}
	for (int i = 0; i < 5 && gpu; i++)
		assert_int_equal(rec_series(w, gpu, gpu_ids[i], "nvml", &gpu_series[i]), 0);
	for (int k = 0; k <= s->seconds; k++) {
		double t = k;
		const double v[SYN__COUNT] = {
			[SYN_USER] = t * s->cores * 0.9e9,
			[SYN_SYSTEM] = t * s->cores * 0.1e9,
			[SYN_DELAY] = t * s->delay * 1e9,
			[SYN_ALLOWED] = s->cores_allowed,
			/* A little noise that does not rise: allocators breathe. */
			[SYN_RSS] = (s->rss_mb + s->rss_mb_per_s * t + (k * 7 % 5) * 0.1) * 1e6,
			[SYN_LIMIT] = s->limit_mb * 1e6,
			[SYN_READ] = t * s->io_read_mb_s * 1e6,
			[SYN_WRITTEN] = t * 1e3,
			[SYN_DISK_READ] = t * s->disk_read_mb_s * 1e6,
			[SYN_FAULTS] = t * s->faults_s,
			[SYN_THREADS] = 4,
			[SYN_PROCESSES] = s->processes ? s->processes : 1,
			[SYN_PSS] = s->pss_mb * 1e6,
			[SYN_H_USER] = t * (s->cores + s->others) * 0.9e9,
			[SYN_H_SYSTEM] = t * (s->cores + s->others) * 0.1e9,
			[SYN_H_IDLE] = t * 0.5e9,
			[SYN_H_COUNT] = 2,
			[SYN_H_RUNNABLE] = 1,
			[SYN_H_TOTAL] = 24e9,
			[SYN_H_AVAILABLE] = 20e9,
			[SYN_H_SWAP_IN] = t * s->swap_mb_s * 1e6,
			[SYN_H_SWAP_OUT] = t * s->swap_mb_s * 1e6,
			[SYN_H_IO_SOME] = t * s->io_some * 1e9,
			[SYN_H_MEM_SOME] = t * s->memory_some * 1e9,
		};
		rec_tick_begin(w, syn_at(t));
		for (int i = 0; i < SYN__COUNT; i++)
			syn_put(w, series[i], ids[i], v[i]);
		const double g[5] = { s->gpu == 2 ? 0.8 : 0, 1e9, 80e9, s->gpu == 2, s->gpu == 2 };
		for (int i = 0; i < 5 && gpu; i++)
			syn_put(w, gpu_series[i], gpu_ids[i], g[i]);
		assert_int_equal(rec_tick_end(w, NULL), 0);
	}
}

/* Steps fill the time from 2 s to 2 s before the end. */
static inline void syn_steps(struct rec_writer *w, const struct synthetic *s, uint32_t process)
{
	uint32_t steps, checkpoints, gc;
	assert_int_equal(rec_track(w, process, TRACK_STEP, &steps), 0);
	assert_int_equal(rec_track(w, process, TRACK_CHECKPOINT, &checkpoints), 0);
	assert_int_equal(rec_track(w, process, TRACK_GC, &gc), 0);
	int64_t t = (int64_t)syn_at(2), end = (int64_t)syn_at(s->seconds - 2);
	for (int64_t i = 0; t < end; i++) {
		/* Some noise of 4 %, without chance. */
		double ms = s->step_ms * (1 + 0.01 * (double)(i * 7 % 9 - 4));
		double pause = 0, wait = ms * s->wait_share;
		int64_t start = t + (int64_t)(ms * 0.5e6);
		if (s->slow_every && i % s->slow_every == s->slow_every - 1)
			ms *= s->slow_factor;
		if (s->checkpoint_every && i % s->checkpoint_every == s->checkpoint_every - 1) {
			int64_t row[] = { start, (int64_t)(s->checkpoint_ms * 1e6), 5000000 };
			assert_int_equal(rec_events(w, checkpoints, row, 1), 0);
			pause += s->checkpoint_ms;
		}
		if (s->gc_every && i % s->gc_every == s->gc_every - 1) {
			int64_t row[] = { start, (int64_t)(s->gc_ms * 1e6), 2, 0 };
			assert_int_equal(rec_events(w, gc, row, 1), 0);
			pause += s->gc_ms;
		}
		int64_t dur = (int64_t)((ms + pause) * 1e6);
		int64_t row[] = { t, dur, i, 0, i / 100, 64, (int64_t)(wait * 1e6) };
		assert_int_equal(rec_events(w, steps, row, 1), 0);
		t += dur;
	}
}

static inline void syn_facts(struct rec_writer *w, const struct synthetic *s)
{
	rec_set(w, "command_line", s->command);
	rec_set(w, "interval_ns", "1000000000");
	rec_set(w, "state", s->unfinished ? "running" : "finished");
	rec_set(w, "recorder_pid", "999999999");
	rec_set(w, "recorder_start", "1");
	rec_setf(w, "start_mono_ns", "%llu", (unsigned long long)SYN_T0);
	rec_set(w, "start_real_ns", "1790000000000000000");
	if (!s->unfinished)
		rec_setf(w, "end_mono_ns", "%llu", (unsigned long long)syn_at(s->seconds));
	if (s->exit_code)
		rec_set(w, "exit_code", s->exit_code);
	if (s->signal)
		rec_set(w, "signal", s->signal);
	if (s->step_ms > 0) {
		rec_set(w, "steps_source", "torch hook");
		rec_setf(w, "fact.loader.workers", "%d", s->workers);
	}
	if (!s->gpu)
		rec_set(w, "gpu.reason", "no NVIDIA, AMD or Intel GPU was found");
	rec_set(w, "self.cpu_ns", "240000000");
	rec_set(w, "self.peak_rss_bytes", "9000000");
	rec_set(w, "self.job_cost_ns", "6000000");
	rec_set(w, "self.lost_records", "0");
	rec_set(w, "spotter_version", "test");
}

static inline void syn_write(const struct synthetic *s, const char *path)
{
	struct rec_writer *w;
	struct err e = { 0 };
	uint32_t host, job, process, gpu = 0;
	int rc = rec_create(path, NULL, &w, &e);
	if (rc)
		print_message("%s\n", e.text);
	assert_int_equal(rc, 0);
	syn_facts(w, s);
	assert_int_equal(rec_entity(w, ENTITY_HOST, 0, "testhost", 0, SYN_T0, &host), 0);
	assert_int_equal(rec_entity(w, ENTITY_JOB, host, "python3", 4242, SYN_T0, &job), 0);
	assert_int_equal(rec_entity(w, ENTITY_PROCESS, job, "python3", 4242, SYN_T0, &process), 0);
	if (s->gpu)
		assert_int_equal(rec_entity(w, ENTITY_GPU, host, "H200", 0, SYN_T0, &gpu), 0);
	syn_ticks(w, s, host, job, gpu);
	if (s->step_ms > 0)
		syn_steps(w, s, process);
	rc = s->unfinished ? rec_flush(w, &e) : rec_close(w, &e);
	if (rc)
		print_message("%s\n", e.text);
	assert_int_equal(rc, 0);
}

/* Write it to path (which must not exist). An unfinished one is written by a process that then dies. */
static inline void synthetic_write(const struct synthetic *s, const char *path)
{
	int status;
	if (!s->unfinished) {
		syn_write(s, path);
		return;
	}
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		syn_write(s, path);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A fresh path in a temporary directory; both are removed by synthetic_remove. */
static inline void synthetic_path(char *path, size_t cap)
{
	char dir[64] = "/tmp/spotter-test-XXXXXX";
	assert_non_null(mkdtemp(dir));
	snprintf(path, cap, "%s/run.spot", dir);
}

static inline void synthetic_remove(const char *path)
{
	char name[256];
	static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
	snprintf(name, sizeof(name), "%s", path);
	*strrchr(name, '/') = 0;
	rmdir(name);
}

#endif
