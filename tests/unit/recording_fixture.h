/*
 * What the tests of the recording share: a folder of its own for each test, and a small run whose
 * every value is a function of series and tick, so that any part of a file can be checked.
 */
#ifndef SPOTTER_TESTS_RECORDING_FIXTURE_H
#define SPOTTER_TESTS_RECORDING_FIXTURE_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "recording/recording.h"

#define S  NS_PER_S
#define MS NS_PER_MS

struct fixture {
	char folder[64], path[512];
	struct err e;
};

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	/* In memory where possible: the disk is not what is tested. */
	snprintf(f->folder, sizeof(f->folder), "%s/spotter-rec-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/run.spot", f->folder);
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char path[640];
		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		unlink(path);
	}
	int rc = rmdir(f->folder);
	free(f);
	return rc;
}

static inline struct rec_writer *create(struct fixture *f, const struct rec_options *o)
{
	struct rec_writer *w = NULL;
	if (rec_create(f->path, o, &w, &f->e))
		fail_msg("%s", f->e.text);
	return w;
}

static inline struct rec_reader *open_it(struct fixture *f)
{
	struct rec_reader *r = NULL;
	if (rec_open(f->path, &r, &f->e))
		fail_msg("%s", f->e.text);
	return r;
}

static inline bool exists(const struct fixture *f, const char *suffix)
{
	char path[640];
	snprintf(path, sizeof(path), "%s%s", f->path, suffix);
	return !access(path, F_OK);
}

/* What series k holds at tick i; every third series has holes, series 2 is of doubles. */
static inline bool expected(unsigned k, unsigned i, int64_t *ret)
{
	if (k % 3 == 1 && (i / 7) % 2)
		return false;
	*ret = k % 2 ? (int64_t)i * 10000000 * k : (int64_t)((i * 2654435761u) % 1000) * 4096;
	return true;
}

static inline double as_load(int64_t v)
{
	return (double)(v % 1000) / 100;
}

enum { NSERIES = 5 };
static const enum metric_id ids[NSERIES] = { METRIC_MEMORY_FREE, METRIC_CPU_USER,
					     METRIC_SCHED_LOAD1, METRIC_CPU_SYSTEM,
					     METRIC_MEMORY_CACHED };

static inline void add_ticks(struct rec_writer *w, const uint32_t *series, unsigned from,
			     unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		rec_tick_begin(w, S + i * 100 * MS + i % 3);
		for (unsigned k = 0; k < NSERIES; k++) {
			int64_t v;
			if (!expected(k, i, &v))
				continue;
			if (k == 2)
				rec_put_f64(w, series[k], as_load(v));
			else
				rec_put_i64(w, series[k], v);
		}
		assert_int_equal(rec_tick_end(w, NULL), 0);
	}
}

static inline void make_series(struct rec_writer *w, uint32_t *series)
{
	uint32_t host;
	assert_int_equal(rec_entity(w, ENTITY_HOST, 0, "node1", 0, S, &host), 0);
	for (unsigned k = 0; k < NSERIES; k++)
		assert_int_equal(rec_series(w, host, ids[k], "/proc/test", &series[k]), 0);
}

static inline void check_series(struct rec_reader *r, unsigned k, uint32_t id, unsigned from,
				unsigned to)
{
	struct rec_points p;
	struct err e;
	assert_int_equal(rec_read(r, id, S + from * 100 * MS, S + to * 100 * MS, &p, &e), 0);
	size_t n = 0;
	for (unsigned i = from; i < to; i++) {
		int64_t v;
		if (!expected(k, i, &v))
			continue;
		assert_true(n < p.n);
		assert_int_equal(p.t_ns[n], S + i * 100 * MS + i % 3);
		if (k == 2) {
			assert_null(p.i);
			assert_true(p.v[n] == as_load(v));
		} else {
			assert_int_equal(p.i[n], v);
		}
		n++;
	}
	assert_int_equal(p.n, n);
	rec_points_free(&p);
}

static inline void check_all(struct rec_reader *r, unsigned n)
{
	for (unsigned k = 0; k < NSERIES; k++) {
		const struct rec_series_info *s = rec_series_of(r, 1, ids[k]);
		assert_non_null(s);
		check_series(r, k, s->id, 0, n);
		check_series(r, k, s->id, n / 3, n / 2 + 1);
	}
	assert_int_equal(rec_damaged(r), 0);
}

#endif
