/*
 * What a recording costs: CPU per sample appended, bytes per sample at rest, time for a chart;
 * beside one SQLite row per sample and a table of MLflow's shape, in the same run. Values are made
 * up beforehand, after what /proc shows: counters in clock ticks, memory in pages, noise in ns,
 * much that stands still.
 *
 *   bench-recording [FOLDER]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "recording/recording.h"

enum { SERIES = 160 };

struct load {
	const char *name;
	bool busy;
	uint64_t interval_ns;
	unsigned ticks;
};

static const struct load loads[] = {
	{ "busy, 10 Hz, 1 h", true, 100 * NS_PER_MS, 36000 },
	{ "idle, 10 Hz, 1 h", false, 100 * NS_PER_MS, 36000 },
	{ "busy, 1 Hz, 2 h", true, NS_PER_S, 7200 },
	{ "idle, 1 Hz, 2 h", false, NS_PER_S, 7200 },
	{ "busy, 1 kHz, 30 s", true, NS_PER_MS, 30000 },
};

static uint64_t random_state = 88172645463325252ULL;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static double uniform(void)
{
	return (double)(random_u64() >> 11) * 0x1p-53;
}

/* About normal, mean 0, deviation 1. */
static double noise(void)
{
	return uniform() + uniform() + uniform() + uniform() + uniform() + uniform() - 3;
}

/* What kinds of series a host with a job has, and how many of each. */
enum shape { TICKS, STATE, PAGES, STILL, STALL, BYTES, COUNT, DECIMAL, DELAY, FAULTS };
static const struct {
	enum shape shape;
	enum metric_id metric;
	int n;
} shapes[] = {
	{ TICKS, METRIC_CPU_USER, 44 },         { STATE, METRIC_CPU_IDLE, 6 },
	{ PAGES, METRIC_MEMORY_FREE, 22 },      { STILL, METRIC_MEMORY_TOTAL, 30 },
	{ STALL, METRIC_PRESSURE_CPU_SOME, 6 }, { BYTES, METRIC_IO_READ, 18 },
	{ COUNT, METRIC_SCHED_RUNNABLE, 10 },   { DECIMAL, METRIC_SCHED_LOAD1, 6 },
	{ DELAY, METRIC_CPU_RUN_DELAY, 8 },     { FAULTS, METRIC_MEMORY_FAULTS_MINOR, 10 },
};

/* The next value of one series; state is its level so far. */
static double next(enum shape shape, bool busy, double seconds, double *state, double *phase)
{
	double share = busy ? 0.5 + 0.4 * sin(*phase += 0.01 * uniform()) : 0.004;
	double before = *state;
	switch (shape) {
	case TICKS: /* CPU time in steps of 10 ms */
		*state += share * seconds * 1e9 * (1 + 0.1 * noise());
		return floor(fmax(*state, before) / 1e7) * 1e7;
	case STATE:
		*state += (1 - share) * seconds * 1e9;
		return floor(*state / 1e7) * 1e7;
	case PAGES:
		if (uniform() < (busy ? 0.9 : 0.05))
			*state += floor(noise() * (busy ? 300 : 3)) * 4096;
		return *state;
	case STILL:
		return 1 << 30;
	case STALL: /* in us */
		if (uniform() < (busy ? 0.6 : 0.01))
			*state += floor(uniform() * 2000) * 1000;
		return *state;
	case BYTES:
		if (uniform() < (busy ? 0.3 : 0.02))
			*state += floor(uniform() * 65536);
		return *state;
	case COUNT:
		return floor(2 + share * 3 * uniform());
	case DECIMAL:
		*state = *state * 0.98 + share * 2 * 0.02;
		return floor(*state * 100) / 100;
	case DELAY: /* in ns */
		if (uniform() < (busy ? 0.8 : 0.02))
			*state += floor(uniform() * 400000);
		return *state;
	case FAULTS:
		*state += floor(uniform() * (busy ? 900 * seconds : 1.01));
		return *state;
	}
	return 0;
}

/* All values of a load, tick after tick. */
static int64_t *make_values(const struct load *l, enum metric_id *metric)
{
	int64_t *v = malloc(sizeof(*v) * SERIES * l->ticks);
	size_t s = 0;
	for (size_t k = 0; v && k < sizeof(shapes) / sizeof(*shapes); k++) {
		for (int i = 0; i < shapes[k].n && s < SERIES; i++, s++) {
			double state = shapes[k].shape == PAGES ? 1e9 - fmod(1e9, 4096) : 0,
			       phase = uniform() * 6;
			metric[s] = shapes[k].metric;
			for (unsigned t = 0; t < l->ticks; t++) {
				double x = next(shapes[k].shape, l->busy,
						(double)l->interval_ns / 1e9, &state, &phase);
				int64_t *at = &v[(size_t)t * SERIES + s];
				if (metrics[metric[s]].type == METRIC_F64)
					memcpy(at, &x, sizeof(x));
				else
					*at = (int64_t)x;
			}
		}
	}
	return v;
}

static uint64_t *make_times(const struct load *l)
{
	uint64_t *t = malloc(sizeof(*t) * l->ticks);
	for (unsigned i = 0; t && i < l->ticks; i++)
		t[i] = 1000 * NS_PER_S + i * l->interval_ns +
		       (uint64_t)(30000 + fabs(noise()) * 20000);
	return t;
}

static void die(const char *what)
{
	fprintf(stderr, "bench-recording: %s\n", what);
	exit(1);
}

static uint64_t file_size(const char *path)
{
	struct stat s;
	return stat(path, &s) ? 0 : (uint64_t)s.st_size;
}

static long rss_kb(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * 4;
}

struct result {
	double samples, cpu_s, bytes;
};

static void show(const char *what, const struct result *r)
{
	printf("  %-28s %10.2f M/s  %9.0f ns  %9.2f bytes\n", what, r->samples / r->cpu_s / 1e6,
	       r->cpu_s * 1e9 / r->samples, r->bytes / r->samples);
}

/* -------------------------------------------------------------------------- spotter's recording */

static void charts(const char *path)
{
	struct rec_reader *r;
	struct err e;
	if (rec_open(path, &r, &e))
		die(e.text);
	const struct rec_series_info *s;
	size_t n = rec_serieses(r, &s);
	uint64_t t0 = rec_t0(r), t1 = rec_t1(r) + 1;
	static const size_t buckets[] = { 20, 60, 200 };
	for (size_t k = 0; k < sizeof(buckets) / sizeof(*buckets); k++) {
		struct rec_bucket b[200];
		uint64_t start = 0;
		for (int round = 0; round < 2; round++) { /* the first one warms the caches */
			start = clock_self_cpu_ns();
			for (size_t i = 0; i < n; i++)
				if (rec_chart(r, s[i].id, t0, t1, buckets[k], b, &e))
					die(e.text);
		}
		printf("  chart of the whole run, %3zu buckets: %.3f ms\n", buckets[k],
		       (double)(clock_self_cpu_ns() - start) / (double)n / 1e6);
	}
	uint64_t start = clock_self_cpu_ns(), points = 0;
	for (size_t i = 0; i < n; i++) {
		struct rec_points p;
		if (rec_read(r, s[i].id, 0, UINT64_MAX, &p, &e))
			die(e.text);
		points += p.n;
		rec_points_free(&p);
	}
	printf("  all samples read: %.1f M/s\n",
	       (double)points / (double)(clock_self_cpu_ns() - start) * 1e3);
	rec_reader_free(r);
}

static void record(const char *folder, const struct load *l, const enum metric_id *metric,
		   const int64_t *v, const uint64_t *t, struct result *ret)
{
	char path[4096];
	struct rec_writer *w;
	struct err e;
	uint32_t host, ids[SERIES];
	snprintf(path, sizeof(path), "%s/bench.spot", folder);
	long before = rss_kb();
	if (rec_create(path, NULL, &w, &e))
		die(e.text);
	rec_entity(w, ENTITY_HOST, 0, "host", 0, t[0], &host);
	for (int s = 0; s < SERIES; s++) {
		uint32_t process;
		rec_entity(w, ENTITY_PROCESS, host, "python3", s, t[0], &process);
		rec_series(w, process, metric[s], "/proc/PID/stat", &ids[s]);
	}
	uint64_t start = clock_self_cpu_ns();
	for (unsigned i = 0; i < l->ticks; i++, v += SERIES) {
		rec_tick_begin(w, t[i]);
		for (int s = 0; s < SERIES; s++)
			rec_put_i64(w, ids[s], v[s]);
		if (rec_tick_end(w, &e))
			die(e.text);
	}
	long held = rss_kb() - before;
	if (rec_close(w, &e))
		die(e.text);
	ret->cpu_s = (double)(clock_self_cpu_ns() - start) / 1e9;
	ret->samples = (double)l->ticks * SERIES;
	ret->bytes = (double)file_size(path);
	printf("%s: %d series, %.2f M samples, memory of the writer %ld kB\n", l->name, SERIES,
	       ret->samples / 1e6, held);
	show("spotter", ret);
	charts(path);
	unlink(path);
}

/* ----------------------------------------------------------------------------------- the others */

static void must(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
}

struct peer {
	const char *name, *schema, *insert;
	void (*bind)(sqlite3_stmt *st, int series, uint64_t t, double v);
	unsigned ticks; /* at most */
};

static void bind_row(sqlite3_stmt *st, int series, uint64_t t, double v)
{
	sqlite3_bind_int(st, 1, series);
	sqlite3_bind_int64(st, 2, (int64_t)t);
	sqlite3_bind_double(st, 3, v);
}

static void bind_mlflow(sqlite3_stmt *st, int series, uint64_t t, double v)
{
	char key[64];
	snprintf(key, sizeof(key), "system/metric_of_series_%d", series);
	sqlite3_bind_text(st, 1, key, -1, SQLITE_TRANSIENT);
	sqlite3_bind_double(st, 2, v);
	sqlite3_bind_int64(st, 3, (int64_t)(t / NS_PER_MS));
	sqlite3_bind_text(st, 4, "0123456789abcdef0123456789abcdef", -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 5, (int64_t)(t / NS_PER_MS));
}

static const struct peer peers[] = {
	{ "one SQLite row per sample", "CREATE TABLE sample(series INT, t INT, v REAL);",
	  "INSERT INTO sample VALUES(?1,?2,?3)", bind_row, 3600 },
	{ "a table of MLflow's shape",
	  "CREATE TABLE metrics(key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT "
	  "NOT NULL,"
	  " run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT 0 NOT NULL, is_nan BOOLEAN DEFAULT "
	  "0 NOT NULL,"
	  " CONSTRAINT metric_pk PRIMARY KEY(key, timestamp, step, run_uuid, value, is_nan));"
	  "CREATE INDEX index_metrics_run_uuid_key_timestamp ON metrics(run_uuid, key, timestamp);",
	  "INSERT INTO metrics VALUES(?1,?2,?3,?4,?5,0)", bind_mlflow, 900 },
};

static void peer(const char *folder, const struct peer *p, const struct load *l, const int64_t *v,
		 const uint64_t *t)
{
	char path[4096];
	sqlite3 *db;
	sqlite3_stmt *st;
	unsigned ticks = l->ticks < p->ticks ? l->ticks : p->ticks;
	snprintf(path, sizeof(path), "%s/bench.db", folder);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	must(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
	must(db, p->schema);
	sqlite3_prepare_v2(db, p->insert, -1, &st, NULL);
	uint64_t start = clock_self_cpu_ns();
	for (unsigned i = 0; i < ticks; i++, v += SERIES) {
		if (i % 5 == 0)
			must(db, "BEGIN");
		for (int s = 0; s < SERIES; s++) {
			p->bind(st, s, t[i], (double)v[s]);
			sqlite3_step(st);
			sqlite3_reset(st);
		}
		if (i % 5 == 4 || i + 1 == ticks)
			must(db, "COMMIT");
	}
	sqlite3_finalize(st);
	must(db, "PRAGMA journal_mode=DELETE");
	struct result r = { .samples = (double)ticks * SERIES,
			    .cpu_s = (double)(clock_self_cpu_ns() - start) / 1e9,
			    .bytes = (double)file_size(path) };
	sqlite3_close(db);
	unlink(path);
	show(p->name, &r);
}

static int run(const char *folder, const struct load *l)
{
	enum metric_id metric[SERIES];
	struct result r;
	int64_t *v = make_values(l, metric);
	uint64_t *t = make_times(l);
	if (!v || !t)
		die("out of memory");
	record(folder, l, metric, v, t, &r);
	for (size_t k = 0; k < sizeof(peers) / sizeof(*peers); k++)
		peer(folder, &peers[k], l, v, t);
	free(v);
	free(t);
	return 0;
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : "/tmp";
	printf("CPU time per sample appended (begin, puts, end, flushes, close) and bytes at "
	       "rest\n");
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
		int status;
		fflush(stdout);
		pid_t pid = fork(); /* each in a process of its own, for its memory */
		if (!pid)
			exit(run(folder, &loads[i]));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			die("a load failed");
	}
	return 0;
}
