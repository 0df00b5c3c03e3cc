/*
 * A recording of a run that never was, the same each time, for tests that need to know what is in it:
 *
 *   make_recording [--ticks N] [--interval-ms N] [--processes N] [--live] [--unfinished] OUT.spot
 *
 * One host with 4 CPUs, a job with N (3) processes of which the last ends half-way, 120 ticks of 1 s from
 * t = 1000 s, a step of 80 ms every 100 ms whose input wait is 20 ms, two epochs, a checkpoint, collector
 * pauses, a mark whose name needs quoting, a series that could not be read for 10 ticks, and a notice.
 *   At tick i: host cpu.user is i * 1.5 s, job cpu.user i * 1 s, its memory.rss 100 MB + i * 1 MB, ...
 * --live stamps with the real clock and ticks in real time; --unfinished leaves the recording as kill -9 would.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "recording/recording.h"

#define CPUS          4
#define PROCESSES_MAX 10000
#define MB            1000000LL

struct options {
	uint64_t ticks, interval_ms, processes;
	bool live, unfinished;
	const char *path;
};

struct made {
	struct rec_writer *w;
	uint64_t t0, interval_ns;
	uint32_t host, job;
	uint32_t cpu_user[CPUS], cpu_idle[CPUS];
	uint32_t host_user, host_idle, host_total, host_available, temperature;
	uint32_t job_user, job_system, job_allowed, job_rss, job_read, job_written, job_processes,
		job_delay;
	uint32_t process[PROCESSES_MAX], process_user[PROCESSES_MAX], process_rss[PROCESSES_MAX],
		process_threads[PROCESSES_MAX];
	uint32_t step, epoch, checkpoint, gc, mark, mark_name;
	uint64_t processes;
};

static void check(int rc, const struct err *e)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "make_recording: %s\n", e && e->text[0] ? e->text : strerror(-rc));
	exit(1);
}

static uint32_t entity(struct made *m, enum entity_kind kind, uint32_t parent, const char *name,
		       int64_t key)
{
	uint32_t id;
	check(rec_entity(m->w, kind, parent, name, key, m->t0, &id), NULL);
	return id;
}

static uint32_t series(struct made *m, uint32_t of, enum metric_id metric, const char *source)
{
	uint32_t id;
	check(rec_series(m->w, of, metric, source, &id), NULL);
	return id;
}

static uint32_t track(struct made *m, uint32_t of, enum track_kind kind)
{
	uint32_t id;
	check(rec_track(m->w, of, kind, &id), NULL);
	return id;
}

static void make_host(struct made *m)
{
	m->host = entity(m, ENTITY_HOST, 0, "testhost", 0);
	m->host_user = series(m, m->host, METRIC_CPU_USER, "/proc/stat");
	m->host_idle = series(m, m->host, METRIC_CPU_IDLE, "/proc/stat");
	m->host_total = series(m, m->host, METRIC_MEMORY_TOTAL, "/proc/meminfo");
	m->host_available = series(m, m->host, METRIC_MEMORY_AVAILABLE, "/proc/meminfo");
	for (int i = 0; i < CPUS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "cpu%d", i);
		uint32_t cpu = entity(m, ENTITY_CPU, m->host, name, i);
		m->cpu_user[i] = series(m, cpu, METRIC_CPU_USER, "/proc/stat");
		m->cpu_idle[i] = series(m, cpu, METRIC_CPU_IDLE, "/proc/stat");
	}
	uint32_t sensor = entity(m, ENTITY_SENSOR, m->host, "chip, \"package\"", 0);
	m->temperature = series(m, sensor, METRIC_TEMPERATURE, "hwmon");
}

static void make_job(struct made *m)
{
	m->job = entity(m, ENTITY_JOB, m->host, "python3 train.py", 4001);
	m->job_user = series(m, m->job, METRIC_CPU_USER, "/proc/PID/stat");
	m->job_system = series(m, m->job, METRIC_CPU_SYSTEM, "/proc/PID/stat");
	m->job_delay = series(m, m->job, METRIC_CPU_RUN_DELAY, "/proc/PID/schedstat");
	m->job_allowed = series(m, m->job, METRIC_CPU_ALLOWED, "affinity");
	m->job_rss = series(m, m->job, METRIC_MEMORY_RSS, "/proc/PID/stat");
	m->job_read = series(m, m->job, METRIC_IO_READ, "/proc/PID/io");
	m->job_written = series(m, m->job, METRIC_IO_WRITTEN, "/proc/PID/io");
	m->job_processes = series(m, m->job, METRIC_SCHED_PROCESSES, "/proc");
	for (uint64_t i = 0; i < m->processes; i++) {
		const char *name = i == 0 ? "python3" : "pt_data_worker";
		uint32_t p = entity(m, ENTITY_PROCESS, m->job, name, 4001 + (int64_t)i);
		m->process[i] = p;
		m->process_user[i] = series(m, p, METRIC_CPU_USER, "/proc/PID/stat");
		m->process_rss[i] = series(m, p, METRIC_MEMORY_RSS, "/proc/PID/stat");
		m->process_threads[i] = series(m, p, METRIC_SCHED_THREADS, "/proc/PID/stat");
	}
	rec_entity_attrs(m->w, m->process[0],
			 "{\"cmdline\": \"python3 train.py --name \\\"a,b\\\"\"}");
	m->step = track(m, m->process[0], TRACK_STEP);
	m->epoch = track(m, m->process[0], TRACK_EPOCH);
	m->checkpoint = track(m, m->process[0], TRACK_CHECKPOINT);
	m->gc = track(m, m->process[0], TRACK_GC);
	m->mark = track(m, m->process[0], TRACK_MARK);
	const char *name = "learning rate, \"halved\"";
	check(rec_string(m->w, name, strlen(name), &m->mark_name), NULL);
}

static void set_facts(struct made *m, const struct options *o)
{
	static const char *const facts[][2] = {
		{ "command", "[\"python3\", \"train.py\"]" },
		{ "command_line", "python3 train.py" },
		{ "cwd", "/home/user" },
		{ "host", "testhost" },
		{ "user", "user" },
		{ "kernel", "Linux 6.1.0" },
		{ "cpu_model", "Test CPU" },
		{ "spotter_version", SPOTTER_VERSION },
		{ "steps_source", "torch hook" },
		{ "task_reader", "proc" },
		{ "gpu.reason", "no GPU found" },
		{ "fact.torch", "1.13.0" },
		{ "fact.loader.workers", "2" },
	};
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		rec_set(m->w, facts[i][0], facts[i][1]);
	rec_setf(m->w, "interval_ns", "%" PRIu64, m->interval_ns);
	rec_set(m->w, "state", "running");
	rec_setf(m->w, "start_mono_ns", "%" PRIu64, m->t0);
	if (!o->live)
		return;
	/* Field 22 of /proc/self/stat, so that readers find this process alive. */
	char stat[1024];
	unsigned long long start = 0;
	const char *p = io_read_text(-1, "/proc/self/stat", stat, sizeof(stat)) > 0
				? strrchr(stat, ')')
				: NULL;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		start = strtoull(p, NULL, 10);
	rec_setf(m->w, "recorder_pid", "%d", (int)getpid());
	rec_setf(m->w, "recorder_start", "%llu", start);
}

static void put_tick(struct made *m, uint64_t i, uint64_t ticks)
{
	int64_t s = (int64_t)(i * m->interval_ns);
	for (int c = 0; c < CPUS; c++) {
		rec_put_i64(m->w, m->cpu_user[c], s / 8 * (c + 1));
		rec_put_i64(m->w, m->cpu_idle[c], s - s / 8 * (c + 1));
	}
	rec_put_i64(m->w, m->host_user, s / 2 * 3);
	rec_put_i64(m->w, m->host_idle, s * 4 - s / 2 * 3);
	rec_put_i64(m->w, m->host_total, 16000 * MB);
	rec_put_i64(m->w, m->host_available, 12000 * MB - (int64_t)i * MB);
	if (i >= 50 && i < 60)
		rec_gap(m->w, m->temperature, "no permission");
	else
		rec_put_f64(m->w, m->temperature, 40 + 0.1 * (double)(i % 7));
	rec_put_i64(m->w, m->job_user, s);
	rec_put_i64(m->w, m->job_system, s / 10);
	rec_put_i64(m->w, m->job_delay, s / 100);
	rec_put_f64(m->w, m->job_allowed, 4);
	rec_put_i64(m->w, m->job_rss, 100 * MB + (int64_t)i * MB);
	rec_put_i64(m->w, m->job_read, (int64_t)i * 3 * MB);
	rec_put_i64(m->w, m->job_written, (int64_t)i * 12345);
	uint64_t there = m->processes - (i >= ticks / 2 && m->processes > 1);
	rec_put_i64(m->w, m->job_processes, (int64_t)there);
	for (uint64_t p = 0; p < there; p++) {
		rec_put_i64(m->w, m->process_user[p], s / (int64_t)(1 << (p < 20 ? p + 1 : 20)));
		rec_put_i64(m->w, m->process_rss[p], (50 - 10 * (int64_t)(p % 5)) * MB);
		rec_put_i64(m->w, m->process_threads[p], p ? 1 : 8);
	}
}

static void put_events(struct made *m, uint64_t i, uint64_t ticks)
{
	int64_t t = (int64_t)(m->t0 + i * m->interval_ns);
	int64_t unit = (int64_t)m->interval_ns / 100;
	for (int64_t k = 0; k < 10; k++) {
		int64_t index = (int64_t)i * 10 + k;
		int64_t row[] = {
			t + k * 10 * unit, 8 * unit,       index,
			index % 10 == 9,   i >= ticks / 2, index % 100 == 99 ? REC_NONE : 64,
			2 * unit
		};
		check(rec_events(m->w, m->step, row, 1), NULL);
	}
	if (i == ticks / 2) {
		int64_t checkpoint[] = { t, 50 * unit, 12 * MB };
		int64_t mark[] = { t, 0, m->mark_name, 42 };
		check(rec_events(m->w, m->checkpoint, checkpoint, 1), NULL);
		check(rec_events(m->w, m->mark, mark, 1), NULL);
	}
	if (i % 20 == 5) {
		int64_t gc[] = { t + unit, unit / 2, (int64_t)(i / 20) % 3, 100 };
		check(rec_events(m->w, m->gc, gc, 1), NULL);
	}
	if (i + 1 == ticks / 2 || i + 1 == ticks) {
		int64_t half = (int64_t)(ticks / 2 * m->interval_ns);
		int64_t number = i + 1 == ticks;
		int64_t row[] = { (int64_t)m->t0 + number * half, half, number, 0 };
		check(rec_events(m->w, m->epoch, row, 1), NULL);
	}
}

/* The last process ends half-way. */
static void end_process(struct made *m, uint64_t t_ns)
{
	if (m->processes < 2)
		return;
	uint64_t last = m->processes - 1;
	rec_entity_end(m->w, m->process[last], t_ns);
	rec_series_end(m->w, m->process_user[last]);
	rec_series_end(m->w, m->process_rss[last]);
	rec_series_end(m->w, m->process_threads[last]);
	rec_notice(m->w, t_ns, m->process[last], "process", "a loader worker ended",
		   "{\"exit_code\": 0}");
}

static void sleep_until(uint64_t t_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(t_ns / NS_PER_S),
			       .tv_nsec = (long)(t_ns % NS_PER_S) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void make(struct made *m, const struct options *o)
{
	struct err e = { 0 };
	m->interval_ns = o->interval_ms * NS_PER_MS;
	m->processes = o->processes;
	m->t0 = o->live ? clock_mono_ns() : 1000 * NS_PER_S;
	struct rec_options options = { .size = sizeof(options), .flush_ns = 100 * NS_PER_MS };
	check(rec_create(o->path, &options, &m->w, &e), &e);
	set_facts(m, o);
	make_host(m);
	make_job(m);
	for (uint64_t i = 0; i < o->ticks; i++) {
		uint64_t t = m->t0 + i * m->interval_ns;
		if (o->live)
			sleep_until(t);
		rec_tick_begin(m->w, t);
		put_tick(m, i, o->ticks);
		put_events(m, i, o->ticks);
		if (i == o->ticks / 2)
			end_process(m, t);
		check(rec_tick_end(m->w, &e), &e);
		if (o->live)
			check(rec_flush(m->w, &e), &e);
	}
	if (o->unfinished) {
		check(rec_flush(m->w, &e), &e);
		_exit(0);
	}
	rec_set(m->w, "exit_code", "0");
	rec_setf(m->w, "end_mono_ns", "%" PRIu64, m->t0 + (o->ticks - 1) * m->interval_ns);
	rec_set(m->w, "state", "finished");
	struct rec_finding finding = { "input-bound", "warning", "each step waits for its data",
				       "[{\"text\": \"input wait\", \"value\": 0.25}]",
				       "num_workers=4" };
	rec_findings(m->w, &finding, 1);
	check(rec_close(m->w, &e), &e);
}

static bool parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		uint64_t *number = !strcmp(argv[i], "--ticks")         ? &o->ticks
				   : !strcmp(argv[i], "--interval-ms") ? &o->interval_ms
				   : !strcmp(argv[i], "--processes")   ? &o->processes
								       : NULL;
		if (number && i + 1 < argc)
			*number = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--live"))
			o->live = true;
		else if (!strcmp(argv[i], "--unfinished"))
			o->unfinished = true;
		else if (argv[i][0] != '-' && !o->path)
			o->path = argv[i];
		else
			return false;
	}
	return o->path && o->ticks >= 2 && o->interval_ms && o->processes &&
	       o->processes <= PROCESSES_MAX;
}

int main(int argc, char **argv)
{
	static struct made made;
	struct options o = { .ticks = 120, .interval_ms = 1000, .processes = 3 };
	if (!parse(argc, argv, &o)) {
		fprintf(stderr,
			"usage: make_recording [--ticks N] [--interval-ms N] [--processes N] "
			"[--live] [--unfinished] OUT.spot\n");
		return 2;
	}
	make(&made, &o);
	return 0;
}
