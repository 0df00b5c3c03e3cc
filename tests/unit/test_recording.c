/* The recording end to end: what the writer is given, the reader gives back, at every stage of a file's life. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"

#define S  1000000000ull
#define MS 1000000ull

struct fixture {
	char folder[64], path[128];
	struct err e;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	snprintf(f->folder, sizeof(f->folder), "/tmp/spotter-rec-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/run.spot", f->folder);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char path[160];
		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		unlink(path);
	}
	int rc = rmdir(f->folder);
	free(f);
	return rc;
}

static struct rec_writer *create(struct fixture *f, const struct rec_options *o)
{
	struct rec_writer *w = NULL;
	if (rec_create(f->path, o, &w, &f->e))
		fail_msg("%s", f->e.text);
	return w;
}

static struct rec_reader *open_it(struct fixture *f)
{
	struct rec_reader *r = NULL;
	if (rec_open(f->path, &r, &f->e))
		fail_msg("%s", f->e.text);
	return r;
}

static bool exists(const struct fixture *f, const char *suffix)
{
	char path[160];
	snprintf(path, sizeof(path), "%s%s", f->path, suffix);
	return !access(path, F_OK);
}

/* What series k holds at tick i; every third series has holes, series 2 is of doubles. */
static bool expected(unsigned k, unsigned i, int64_t *ret)
{
	if (k % 3 == 1 && (i / 7) % 2)
		return false;
	*ret = k % 2 ? (int64_t)i * 10000000 * k : (int64_t)((i * 2654435761u) % 1000) * 4096;
	return true;
}

static double as_load(int64_t v)
{
	return (double)(v % 1000) / 100;
}

enum { NSERIES = 5 };
static const enum metric_id ids[NSERIES] = { METRIC_MEMORY_FREE, METRIC_CPU_USER,
					     METRIC_SCHED_LOAD1, METRIC_CPU_SYSTEM,
					     METRIC_MEMORY_CACHED };

static void add_ticks(struct rec_writer *w, const uint32_t *series, unsigned from, unsigned to)
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

static void make_series(struct rec_writer *w, uint32_t *series)
{
	uint32_t host;
	assert_int_equal(rec_entity(w, ENTITY_HOST, 0, "node1", 0, S, &host), 0);
	for (unsigned k = 0; k < NSERIES; k++)
		assert_int_equal(rec_series(w, host, ids[k], "/proc/test", &series[k]), 0);
}

static void check_series(struct rec_reader *r, unsigned k, uint32_t id, unsigned from, unsigned to)
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

static void check_all(struct rec_reader *r, unsigned n)
{
	for (unsigned k = 0; k < NSERIES; k++) {
		const struct rec_series_info *s = rec_series_of(r, 1, ids[k]);
		assert_non_null(s);
		check_series(r, k, s->id, 0, n);
		check_series(r, k, s->id, n / 3, n / 2 + 1);
	}
	assert_int_equal(rec_damaged(r), 0);
}

/* Ticks over the borders of batches and tails, read while it grows and after it is closed. */
static void test_round_trip(void **state)
{
	struct fixture *f = *state;
	struct rec_options o = { .size = sizeof(o), .batch_ticks = 40 };
	static const unsigned stops[] = { 1, 5, 6, 39, 40, 41, 77, 80, 200, 203 };
	uint32_t series[NSERIES];
	struct rec_writer *w = create(f, &o);
	make_series(w, series);
	assert_int_equal(rec_flush(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	unsigned at = 0;
	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
		add_ticks(w, series, at, stops[i]);
		at = stops[i];
		assert_int_equal(rec_flush(w, &f->e), 0);
		assert_int_equal(rec_refresh(r, &f->e), 1);
		assert_int_equal(rec_refresh(r, &f->e), 0);
		check_all(r, at);
		struct rec_reader *fresh = open_it(f);
		check_all(fresh, at);
		assert_true(rec_is_live(fresh));
		assert_int_equal(rec_t0(fresh), S);
		assert_int_equal(rec_t1(fresh), S + (at - 1) * 100 * MS + (at - 1) % 3);
		rec_reader_free(fresh);
	}
	rec_reader_free(r);
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_false(exists(f, "-wal") || exists(f, "-shm") || exists(f, "-journal"));
	r = open_it(f);
	check_all(r, at);
	assert_false(rec_is_live(r));
	assert_string_equal(rec_get(r, "state"), "finished");
	assert_string_equal(rec_get(r, "recording.ticks"), "203");
	rec_reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
