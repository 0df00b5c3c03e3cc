/*
 * The recording end to end: what the writer is given, the reader gives back, at every stage of a
 * file's life.
 */
#include "recording_fixture.h"

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

/* -------------------------------------------------------------------------------- the catalogue */

static const struct rec_entity_info *entity(struct rec_reader *r, uint32_t id)
{
	const struct rec_entity_info *e = rec_entity_by_id(r, id);
	assert_non_null(e);
	return e;
}

static void test_entities(void **state)
{
	struct fixture *f = *state;
	struct rec_writer *w = create(f, NULL);
	uint32_t host, job, process, bad = 77;
	assert_int_equal(rec_entity(w, ENTITY_HOST, 0, "node1", 0, 5, &host), 0);
	assert_int_equal(rec_entity(w, ENTITY_JOB, host, "python3 train.py", 321, 6, &job), 0);
	assert_int_equal(rec_entity(w, ENTITY_PROCESS, job, ") R 1 (", 322, 7, &process), 0);
	assert_int_equal(rec_entity(w, ENTITY_PROCESS, 99, "orphan", 1, 7, &bad), -EINVAL);
	assert_int_equal(bad, 77);
	assert_int_equal(rec_flush(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	assert_string_equal(entity(r, process)->name, ") R 1 (");
	assert_int_equal(entity(r, process)->parent, job);
	assert_int_equal(entity(r, process)->t1_ns, 0);
	assert_null(entity(r, process)->attrs);
	assert_int_equal(rec_entity_first(r, ENTITY_JOB)->key, 321);
	assert_null(rec_entity_first(r, ENTITY_GPU));
	assert_null(rec_entity_by_id(r, 4));

	assert_int_equal(rec_entity_rename(w, process, "loader"), 0);
	assert_int_equal(rec_entity_attrs(w, process, "{\"cmdline\":\"x\"}"), 0);
	assert_int_equal(rec_entity_end(w, process, 99), 0);
	assert_int_equal(rec_entity_end(w, 1000, 99), -EINVAL);
	uint32_t late;
	assert_int_equal(rec_entity(w, ENTITY_THREAD, process, "t", 5, 8, &late), 0);
	assert_int_equal(rec_refresh(r, &f->e), 0); /* not flushed yet */
	assert_int_equal(rec_flush(w, &f->e), 0);
	assert_int_equal(rec_refresh(r, &f->e), 1);
	assert_string_equal(entity(r, process)->name, "loader");
	assert_string_equal(entity(r, process)->attrs, "{\"cmdline\":\"x\"}");
	assert_int_equal(entity(r, process)->t1_ns, 99);
	assert_int_equal(entity(r, late)->kind, ENTITY_THREAD);
	const struct rec_entity_info *all;
	assert_int_equal(rec_entities(r, &all), 4);
	rec_reader_free(r);
	assert_int_equal(rec_close(w, &f->e), 0);
}

static void test_facts_strings_notices_findings(void **state)
{
	struct fixture *f = *state;
	struct rec_writer *w = create(f, NULL);
	uint32_t a, b, again;
	assert_int_equal(rec_set(w, "command", "[\"true\"]"), 0);
	assert_int_equal(rec_setf(w, "exit_code", "%d", 1), 0);
	assert_int_equal(rec_string(w, "forward", 7, &a), 0);
	assert_int_equal(rec_string(w, "backward and more", 8, &b), 0);
	assert_int_equal(rec_string(w, "forward", 7, &again), 0);
	assert_int_equal(again, a);
	assert_int_not_equal(a, b);
	assert_int_equal(rec_notice(w, 12, 0, "hook", "PyTorch 1.13", NULL), 0);
	struct rec_finding one = { "healthy", "info", "all is well", "[]", "nothing" };
	assert_int_equal(rec_findings(w, &one, 1), 0);
	assert_int_equal(rec_flush(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	assert_string_equal(rec_get(r, "command"), "[\"true\"]");
	assert_null(rec_get(r, "no such fact"));
	assert_string_equal(rec_string_get(r, a), "forward");
	assert_string_equal(rec_string_get(r, b), "backward");
	assert_null(rec_string_get(r, 3));

	struct rec_finding two[] = { { "input-bound", "high", "t", "[]", "a" },
				     { "gc-pauses", "low", "t", "[1]", "a" } };
	assert_int_equal(rec_findings(w, two, 2), 0);
	assert_int_equal(rec_setf(w, "exit_code", "%d", 0), 0);
	assert_int_equal(rec_notice(w, 13, 0, "lost", "4 records", "{\"n\":4}"), 0);
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_int_equal(rec_refresh(r, &f->e), 1);
	assert_string_equal(rec_get(r, "exit_code"), "0");
	const struct rec_notice_info *n;
	assert_int_equal(rec_notices(r, &n), 2);
	assert_null(n[0].attrs);
	assert_string_equal(n[1].attrs, "{\"n\":4}");
	assert_int_equal(n[1].t_ns, 13);
	const struct rec_finding *found;
	assert_int_equal(rec_kept_findings(r, &found), 2);
	assert_string_equal(found[1].evidence, "[1]");
	const struct rec_fact *facts;
	size_t nfacts = rec_facts(r, &facts);
	for (size_t i = 1; i < nfacts; i++)
		assert_true(strcmp(facts[i - 1].key, facts[i].key) < 0);
	uint64_t now = clock_mono_ns(), real = clock_real_ns();
	assert_in_range(rec_realtime_ns(r, now) - real + 10 * MS, 0, 20 * MS);
	rec_reader_free(r);
}

/* ------------------------------------------------------------------------------ series and gaps */

static void tick(struct rec_writer *w, uint64_t t)
{
	rec_tick_begin(w, t);
}

static void end_and_flush(struct rec_writer *w)
{
	assert_int_equal(rec_tick_end(w, NULL), 0);
	assert_int_equal(rec_flush(w, NULL), 0);
}

static void test_gaps(void **state)
{
	struct fixture *f = *state;
	struct rec_writer *w = create(f, NULL);
	uint32_t s[NSERIES];
	make_series(w, s);
	static const char *const reasons[] = { "no permission", "no permission",
					       "lost",          NULL,
					       "lost",          NULL };
	for (unsigned i = 0; i < 6; i++) {
		char copy[32]; /* callers need not keep it */
		tick(w, (i + 1) * S);
		if (reasons[i]) {
			snprintf(copy, sizeof(copy), "%s", reasons[i]);
			rec_gap(w, s[0], copy);
		} else {
			rec_put_i64(w, s[0], 1);
		}
		rec_gap(w, s[1], "not supported");
		if (i < 3)
			rec_gap(w, s[3], "gone");
		if (i == 2)
			rec_series_end(w, s[3]);
		end_and_flush(w);
	}
	rec_gap(w, s[4], "outside of a tick");
	struct rec_reader *r = open_it(f);
	const struct rec_gap_info *g;
	static const struct {
		unsigned series, t0, t1;
		const char *reason;
	} expect[] = { { 0, 1, 3, "no permission" },
		       { 1, 1, 0, "not supported" },
		       { 3, 1, 3, "gone" },
		       { 0, 3, 4, "lost" },
		       { 0, 5, 6, "lost" } };
	assert_int_equal(rec_gaps(r, &g), 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(g[i].series, s[expect[i].series]);
		assert_int_equal(g[i].t0_ns, expect[i].t0 * S);
		assert_int_equal(g[i].t1_ns, expect[i].t1 * S);
		assert_string_equal(g[i].reason, expect[i].reason);
	}
	struct rec_points p;
	assert_int_equal(rec_read(r, s[0], 0, UINT64_MAX, &p, &f->e), 0);
	assert_int_equal(p.n, 2);
	rec_points_free(&p);

	tick(w, 7 * S);
	rec_put_i64(w, s[1], 5);
	end_and_flush(w);
	assert_int_equal(rec_refresh(r, &f->e), 1);
	rec_gaps(r, &g);
	assert_int_equal(g[1].t1_ns, 7 * S);
	rec_reader_free(r);
	assert_int_equal(rec_close(w, &f->e), 0);
}

/*
 * A series whose process ended and, against all odds, came again; and one that never had anything.
 */
static void test_series_that_end(void **state)
{
	struct fixture *f = *state;
	struct rec_options o = { .size = sizeof(o), .batch_ticks = 10 };
	struct rec_writer *w = create(f, &o);
	uint32_t s[NSERIES];
	make_series(w, s);
	uint32_t again;
	assert_int_equal(rec_series(w, 1, ids[0], "elsewhere", &again), 0);
	assert_int_equal(again, s[0]);
	assert_int_equal(rec_series(w, 99, ids[0], "", &again), -EINVAL);
	struct rec_reader *r = open_it(f);
	for (unsigned i = 0; i < 100; i++) {
		tick(w, (i + 1) * S);
		if (i < 15 || i > 50)
			rec_put_i64(w, s[0], i);
		rec_put_i64(w, s[1], i);
		if (i == 15 || i == 16)
			rec_series_end(w, s[0]);
		end_and_flush(w);
		if (i != 40)
			continue;
		assert_true(rec_refresh(r, &f->e) >= 0);
	}
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_true(rec_refresh(r, &f->e) >= 0);
	for (int fresh = 0; fresh < 2; fresh++) {
		struct rec_points p;
		assert_int_equal(rec_read(r, s[0], 0, UINT64_MAX, &p, &f->e), 0);
		assert_int_equal(p.n, 15 + 49);
		assert_int_equal(p.i[15], 51);
		rec_points_free(&p);
		assert_int_equal(rec_read(r, s[4], 0, UINT64_MAX, &p, &f->e), 0);
		assert_int_equal(p.n, 0);
		rec_points_free(&p);
		assert_int_equal(rec_read(r, 1000, 0, UINT64_MAX, &p, &f->e), -ENOENT);
		struct rec_size size;
		assert_int_equal(rec_series_size(r, s[0], &size, &f->e), 0);
		assert_int_equal(size.n, 15 + 49);
		assert_true(size.bytes > 0);
		rec_reader_free(r);
		r = open_it(f);
	}
	rec_reader_free(r);
}

static void test_odd_puts(void **state)
{
	struct fixture *f = *state;
	for (int closed = 0; closed < 2; closed++) {
		struct rec_writer *w = create(f, NULL);
		uint32_t s[NSERIES];
		struct rec_points p;
		make_series(w, s);
		rec_put_i64(w, s[0], 1); /* outside of a tick */
		tick(w, 10 * S);
		rec_put_i64(w, 12345, 1); /* no such series */
		rec_put_i64(w, s[0], 1);
		rec_put_i64(w, s[0], 2);   /* the second counts */
		rec_put_f64(w, s[2], NAN); /* a gap */
		end_and_flush(w);
		tick(w, 9 * S); /* a clock that goes backwards */
		rec_put_i64(w, s[0], 3);
		rec_put_f64(w, s[2], -0.0);
		end_and_flush(w);
		tick(w, 11 * S);
		end_and_flush(w);                                 /* nothing at all */
		assert_int_equal(rec_tick_end(w, NULL), -ENOMEM); /* not begun */
		if (closed)
			assert_int_equal(rec_close(w, &f->e), 0);
		struct rec_reader *r = open_it(f);
		assert_int_equal(rec_read(r, s[0], 0, UINT64_MAX, &p, &f->e), 0);
		assert_int_equal(p.n, 2);
		assert_int_equal(p.i[0], 2);
		assert_int_equal(p.i[1], 3);
		assert_int_equal(p.t_ns[1], 10 * S + 1);
		rec_points_free(&p);
		assert_int_equal(rec_read(r, s[2], 0, UINT64_MAX, &p, &f->e), 0);
		assert_int_equal(p.n, 1);
		assert_true(p.v[0] == 0 && signbit(p.v[0]));
		rec_points_free(&p);
		rec_reader_free(r);
		if (!closed)
			assert_int_equal(rec_close(w, &f->e), 0);
		unlink(f->path);
	}
}

/* Flushes come by the ticks' own time, at the tick that is nearest. */
static void test_flush_by_time(void **state)
{
	struct fixture *f = *state;
	static const struct {
		uint64_t interval, flush;
		unsigned ticks, flushes;
	} cases[] = { { 100 * MS, 0, 50, 10 }, { S, 0, 50, 50 },
		      { 499 * MS, 0, 50, 50 }, { 501 * MS, 0, 50, 50 },
		      { 10 * MS, 0, 250, 5 },  { 10 * MS, 10 * MS, 50, 50 },
		      { 1 * MS, 0, 1000, 2 },  { 100 * MS, 2 * S, 50, 2 } };
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct rec_options o = { .size = sizeof(o), .flush_ns = cases[k].flush };
		struct rec_writer *w = create(f, &o);
		uint32_t s[NSERIES];
		struct rec_writer_stats before, after;
		make_series(w, s);
		tick(w, S);
		end_and_flush(w);
		rec_writer_stats(w, &before);
		for (unsigned i = 1; i <= cases[k].ticks; i++) {
			tick(w, S + i * cases[k].interval + i % 2 * (cases[k].interval / 50));
			rec_put_i64(w, s[0], i);
			assert_int_equal(rec_tick_end(w, &f->e), 0);
		}
		rec_writer_stats(w, &after);
		assert_int_equal(after.flushes - before.flushes, cases[k].flushes);
		assert_true(after.bytes > 0);
		assert_int_equal(rec_close(w, &f->e), 0);
		unlink(f->path);
	}
}

/* So many series that a batch must close long before its ticks are full, and in several groups. */
static void test_many_series(void **state)
{
	struct fixture *f = *state;
	enum { MANY = 30000, TICKS = 25 };
	struct rec_options o = { .size = sizeof(o), .batch_values = 100000 };
	struct rec_writer *w = create(f, &o);
	uint32_t entity, s;
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(rec_entity(w, ENTITY_PROCESS, 0, "p", i, 0, &entity), 0);
		assert_int_equal(rec_series(w, entity, METRIC_CPU_USER, "/proc", &s), 0);
		assert_int_equal(s, i);
	}
	for (unsigned t = 0; t < TICKS; t++) {
		tick(w, (t + 1) * S);
		for (unsigned i = 0; i < MANY; i++)
			if (i % 100 != t)
				rec_put_i64(w, i, (int64_t)i * t);
		end_and_flush(w);
	}
	struct rec_writer_stats stats;
	rec_writer_stats(w, &stats);
	assert_int_equal(stats.ticks, TICKS);
	assert_int_equal(stats.samples, MANY * TICKS - TICKS * (MANY / 100));
	assert_int_equal(stats.lost_ticks, 0);
	assert_int_equal(rec_close(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	for (unsigned i = 0; i < MANY; i += 997) {
		struct rec_points p;
		assert_int_equal(rec_read(r, i, 0, UINT64_MAX, &p, &f->e), 0);
		unsigned at = 0;
		for (unsigned t = 0; t < TICKS; t++) {
			if (i % 100 == t)
				continue;
			assert_int_equal(p.i[at], (int64_t)i * t);
			assert_int_equal(p.t_ns[at++], (t + 1) * S);
		}
		assert_int_equal(p.n, at);
		rec_points_free(&p);
	}
	rec_reader_free(r);
}

/* --------------------------------------------------------------------------------------- events */

static void step_row(int64_t *row, unsigned i)
{
	row[EV_T] = (int64_t)(S + i * 10 * MS + i % 7);
	row[EV_DUR] = 9 * (int64_t)MS + i % 1000;
	row[STEP_INDEX] = i;
	row[STEP_PHASE] = i % 50 == 0;
	row[STEP_EPOCH] = i / 100;
	row[STEP_BATCH] = i % 3 ? 64 : REC_NONE;
	row[STEP_INPUT_WAIT] = (int64_t)i * 1000;
}

static void check_steps(struct rec_reader *r, uint32_t track, unsigned from, unsigned to)
{
	int64_t *rows, expect[7];
	size_t n;
	struct err e;
	assert_int_equal(
		rec_read_events(r, track, S + from * 10 * MS, S + to * 10 * MS, &rows, &n, &e), 0);
	assert_int_equal(n, to - from);
	for (unsigned i = from; i < to; i++) {
		step_row(expect, i);
		assert_memory_equal(rows + (i - from) * 7, expect, sizeof(expect));
	}
	free(rows);
}

static void test_events(void **state)
{
	struct fixture *f = *state;
	struct rec_writer *w = create(f, NULL);
	uint32_t s[NSERIES], steps, marks, again;
	make_series(w, s);
	assert_int_equal(rec_track(w, 1, TRACK_STEP, &steps), 0);
	assert_int_equal(rec_track(w, 1, TRACK_MARK, &marks), 0);
	assert_int_equal(rec_track(w, 1, TRACK_STEP, &again), 0);
	assert_int_equal(again, steps);
	assert_int_equal(rec_flush(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	unsigned at = 0;
	/*
	 * Many small drains, so that small chunks are merged; then some that are larger than a
	 * chunk.
	 */
	static const unsigned drains[] = { 1, 5, 40, 700, 9000, 1, 30000, 3 };
	for (unsigned k = 0; k < 300 + sizeof(drains) / sizeof(*drains); k++) {
		unsigned n = k < 300 ? 3 : drains[k - 300];
		int64_t *rows = malloc(n * 7 * sizeof(*rows));
		for (unsigned i = 0; i < n; i++)
			step_row(rows + i * 7, at + i);
		assert_int_equal(rec_events(w, steps, rows, n), 0);
		free(rows);
		at += n;
		assert_int_equal(rec_flush(w, &f->e), 0);
		if (k % 50 == 0 || k > 298) {
			assert_true(rec_refresh(r, &f->e) >= 0);
			check_steps(r, steps, 0, at);
			check_steps(r, steps, at / 3, at / 2);
		}
	}
	int64_t late[] = { 5, 0, 1, REC_NONE, 2, 0, 1, 7 }; /* not in order */
	assert_int_equal(rec_events(w, marks, late, 2), 0);
	assert_int_equal(rec_events(w, 99, late, 1), -EINVAL);
	assert_int_equal(rec_close(w, &f->e), 0);
	rec_reader_free(r);
	r = open_it(f);
	check_steps(r, steps, 0, at);
	check_steps(r, steps, at - 1, at);
	int64_t *rows;
	size_t n;
	assert_int_equal(rec_read_events(r, marks, 0, UINT64_MAX, &rows, &n, &f->e), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(rows, late + 4, 4 * sizeof(*late));
	assert_memory_equal(rows + 4, late, 4 * sizeof(*late));
	free(rows);
	const struct rec_track_info *t;
	assert_int_equal(rec_tracks(r, &t), 2);
	assert_string_equal(t[steps].columns, track_info(TRACK_STEP)->columns);
	struct rec_size size;
	assert_int_equal(rec_track_size(r, steps, &size, &f->e), 0);
	assert_int_equal(size.n, at);
	assert_true(size.bytes < at * 8);
	assert_int_equal(rec_t0(r), 2);
	assert_int_equal(rec_damaged(r), 0);
	rec_reader_free(r);
}

/* --------------------------------------------------------------------------------------- charts */

/* The definition, slowly: from all samples. */
static void slow_chart(struct rec_reader *r, unsigned k, uint32_t id, uint64_t t0, uint64_t t1,
		       size_t n, struct rec_bucket *b)
{
	struct rec_points p;
	struct err e;
	double seconds[64] = { 0 };
	assert_int_equal(rec_read(r, id, 0, UINT64_MAX, &p, &e), 0);
	bool counter = metrics[ids[k]].kind == METRIC_COUNTER;
	memset(b, 0, n * sizeof(*b));
	for (size_t i = counter; i < p.n; i++) {
		if (p.t_ns[i] < t0 || p.t_ns[i] >= t1)
			continue;
		size_t at = (size_t)((p.t_ns[i] - t0) * n / (t1 - t0));
		double s = counter ? (double)(p.t_ns[i] - p.t_ns[i - 1]) / 1e9 : 1;
		double v = counter ? p.v[i] - p.v[i - 1] : p.v[i];
		b[at].min = b[at].count ? fmin(b[at].min, v / s) : v / s;
		b[at].max = b[at].count ? fmax(b[at].max, v / s) : v / s;
		b[at].mean += v;
		seconds[at] += s;
		b[at].count++;
	}
	for (size_t i = 0; i < n; i++)
		b[i].mean /= seconds[i];
	rec_points_free(&p);
}

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-6 * fabs(b));
}

static void check_chart(struct rec_reader *r, unsigned k, uint32_t id, uint64_t t0, uint64_t t1,
			size_t n)
{
	struct rec_bucket fast[64], slow[64];
	struct err e;
	assert_int_equal(rec_chart(r, id, t0, t1, n, fast, &e), 0);
	slow_chart(r, k, id, t0, t1, n, slow);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fast[i].count, slow[i].count);
		if (!slow[i].count) {
			assert_true(isnan(fast[i].min) && isnan(fast[i].max) &&
				    isnan(fast[i].mean));
			continue;
		}
		assert_near(fast[i].min, slow[i].min);
		assert_near(fast[i].max, slow[i].max);
		assert_near(fast[i].mean, slow[i].mean);
	}
}

static void test_charts(void **state)
{
	struct fixture *f = *state;
	struct rec_options o = { .size = sizeof(o), .batch_ticks = 20 };
	struct rec_writer *w = create(f, &o);
	uint32_t s[NSERIES];
	make_series(w, s);
	add_ticks(w, s, 0, 333);
	assert_int_equal(rec_flush(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	static const size_t buckets[] = { 1, 2, 3, 7, 10, 64 };
	for (unsigned k = 0; k < NSERIES; k++) {
		for (size_t i = 0; i < sizeof(buckets) / sizeof(*buckets); i++) {
			check_chart(r, k, s[k], rec_t0(r), rec_t1(r) + 1, buckets[i]);
			check_chart(r, k, s[k], 0, 100 * S, buckets[i]);
			check_chart(r, k, s[k], 5 * S, 20 * S, buckets[i]);
			check_chart(r, k, s[k], 6 * S + 1, 6 * S + 350 * MS, buckets[i]);
		}
	}
	struct rec_bucket b;
	assert_int_equal(rec_chart(r, s[0], 5, 5, 1, &b, &f->e), -EINVAL);
	assert_int_equal(rec_chart(r, s[0], 5, 6, 0, &b, &f->e), -EINVAL);
	assert_int_equal(rec_chart(r, 1000, 5, 6, 1, &b, &f->e), -ENOENT);
	rec_reader_free(r);
	assert_int_equal(rec_close(w, &f->e), 0);
}

/* --------------------------------------------------------------------- other ways than the best */

static void test_rollback_journal(void **state)
{
	struct fixture *f = *state;
	struct rec_options o = { .size = sizeof(o),
				 .journal = REC_JOURNAL_ROLLBACK,
				 .batch_ticks = 40 };
	struct rec_writer *w = create(f, &o);
	uint32_t s[NSERIES];
	make_series(w, s);
	assert_int_equal(rec_flush(w, &f->e), 0);
	assert_false(exists(f, "-wal"));
	struct rec_reader *r = open_it(f);
	assert_string_equal(rec_get(r, "journal"), "rollback");
	for (unsigned i = 0; i < 100; i += 10) {
		add_ticks(w, s, i, i + 10);
		assert_int_equal(rec_flush(w, &f->e), 0);
		assert_int_equal(rec_refresh(r, &f->e), 1);
		check_all(r, i + 10);
	}
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_false(exists(f, "-journal"));
	assert_int_equal(rec_refresh(r, &f->e), 1);
	check_all(r, 100);
	rec_reader_free(r);
}

/* The log is begun anew many times, by the thread and without it, while somebody reads. */
static void test_long_log(void **state)
{
	struct fixture *f = *state;
	for (int one = 0; one < 2; one++) {
		struct rec_options o = {
			.size = sizeof(o), .batch_ticks = 100, .sync_every_s = 1, .one_thread = one
		};
		struct rec_writer *w = create(f, &o);
		uint32_t s[NSERIES];
		make_series(w, s);
		assert_int_equal(rec_flush(w, &f->e), 0);
		struct rec_reader *r = open_it(f);
		for (unsigned i = 0; i < 4000; i += 2) {
			add_ticks(w, s, i, i + 2);
			int rc = rec_flush(w, &f->e);
			assert_true(rc == 0 || rc == -EBUSY);
			if (i % 500)
				continue;
			assert_true(rec_refresh(r, &f->e) >= 0);
			struct rec_points p;
			assert_int_equal(rec_read(r, s[3], 0, UINT64_MAX, &p, &f->e), 0);
			assert_true(p.n >= i);
			rec_points_free(&p);
		}
		assert_true(rec_refresh(r, &f->e) >= 0);
		rec_reader_free(r);
		struct rec_writer_stats stats;
		rec_writer_stats(w, &stats);
		assert_int_equal(stats.lost_ticks, 0);
		assert_int_equal(rec_close(w, &f->e), 0);
		assert_false(exists(f, "-wal") || exists(f, "-shm"));
		r = open_it(f);
		check_all(r, 4000);
		rec_reader_free(r);
		unlink(f->path);
	}
}

static void test_closing_while_read(void **state)
{
	struct fixture *f = *state;
	struct rec_writer *w = create(f, NULL);
	uint32_t s[NSERIES];
	make_series(w, s);
	add_ticks(w, s, 0, 50);
	assert_int_equal(rec_flush(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	add_ticks(w, s, 50, 60);
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_int_equal(rec_refresh(r, &f->e), 1);
	check_all(r, 60);
	rec_reader_free(r);
	r = open_it(f);
	check_all(r, 60);
	rec_reader_free(r);
}

/*
 * Recordings made by the first version are readable for ever. (doc/recording.md is held to the same
 * two.)
 */
static void test_old_recordings(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *name;
		unsigned ticks, steps;
	} old[] = { { "v1-finished", 90, 90 }, { "v1-growing", 86, 90 } };
	char own[sizeof(f->path)];
	memcpy(own, f->path, sizeof(own));
	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++) {
		int64_t *rows;
		size_t n;
		const char *root = getenv("SOURCE_ROOT");
		snprintf(f->path, sizeof(f->path), "%s/tests/fixtures/recording/%s.spot",
			 root ? root : ".", old[i].name);
		struct rec_reader *r = open_it(f);
		check_all(r, old[i].ticks);
		const struct rec_track_info *t;
		assert_int_equal(rec_tracks(r, &t), 1);
		assert_int_equal(rec_read_events(r, t->id, 0, UINT64_MAX, &rows, &n, &f->e), 0);
		assert_int_equal(n, old[i].steps);
		assert_int_equal(rows[8 * 7 + STEP_INPUT_WAIT], 8000);
		free(rows);
		const struct rec_gap_info *g;
		assert_int_equal(rec_gaps(r, &g), 1);
		assert_string_equal(g->reason, "no permission");
		assert_string_equal(rec_string_get(r, 1), "forward");
		rec_reader_free(r);
	}
	memcpy(f->path, own, sizeof(own));
}

static void write_file(const char *path, const char *content, size_t len)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(content, 1, len, file), len);
	fclose(file);
}

static void assert_refused(struct fixture *f, int code, const char *words)
{
	struct rec_reader *r = NULL;
	assert_int_equal(rec_open(f->path, &r, &f->e), code);
	assert_null(r);
	if (!strstr(f->e.text, words))
		fail_msg("%s", f->e.text);
}

static void test_what_is_no_recording(void **state)
{
	struct fixture *f = *state;
	assert_refused(f, -ENOENT, "No such file");
	write_file(f->path, "", 0);
	assert_refused(f, -EINVAL, "not a recording");
	write_file(f->path, "#!/bin/sh\nexit 0\n", 17);
	assert_refused(f, -EINVAL, "not a recording");
	char zeros[8192] = { 0 };
	write_file(f->path, zeros, sizeof(zeros));
	assert_refused(f, -EINVAL, "not a recording");
	unlink(f->path);

	char path[sizeof(f->path)];
	snprintf(path, sizeof(path), "%s", f->path);
	snprintf(f->path, sizeof(f->path), "%s", f->folder);
	assert_refused(f, -EISDIR, "folder");
	snprintf(f->path, sizeof(f->path), "%s", path);

	struct rec_writer *w = create(f, NULL);
	assert_int_equal(rec_close(w, &f->e), 0);
	FILE *file = fopen(f->path, "r+");
	fseek(file, 60, SEEK_SET); /* user_version: what a reader must know at least */
	fwrite("\0\7\0\7", 1, 4, file);
	fclose(file);
	assert_refused(f, -EPROTONOSUPPORT, "newer");
	file = fopen(f->path, "r+");
	fseek(file, 68, SEEK_SET); /* application_id */
	fwrite("else", 1, 4, file);
	fclose(file);
	assert_refused(f, -EINVAL, "not a recording");
}

static void test_where_it_cannot_be_written(void **state)
{
	struct fixture *f = *state;
	struct rec_writer *w = NULL;
	char path[640];
	write_file(f->path, "precious", 8);
	assert_int_equal(rec_create(f->path, NULL, &w, &f->e), -EEXIST);
	assert_non_null(strstr(f->e.text, "exists already"));
	char content[16] = { 0 };
	FILE *file = fopen(f->path, "r");
	assert_int_equal(fread(content, 1, sizeof(content), file), 8);
	fclose(file);
	assert_string_equal(content, "precious");
	snprintf(path, sizeof(path), "%s/no/such/folder.spot", f->folder);
	assert_int_equal(rec_create(path, NULL, &w, &f->e), -ENOENT);
	assert_int_equal(rec_create("/proc/run.spot", NULL, &w, &f->e), -ENOENT);
	assert_null(w);
	assert_int_equal(rec_close(NULL, NULL), 0);
	rec_abandon(NULL);
	rec_reader_free(NULL);
	rec_points_free(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),
		TEST(test_entities),
		TEST(test_facts_strings_notices_findings),
		TEST(test_gaps),
		TEST(test_series_that_end),
		TEST(test_odd_puts),
		TEST(test_flush_by_time),
		TEST(test_many_series),
		TEST(test_events),
		TEST(test_charts),
		TEST(test_rollback_journal),
		TEST(test_long_log),
		TEST(test_closing_while_read),
		TEST(test_old_recordings),
		TEST(test_what_is_no_recording),
		TEST(test_where_it_cannot_be_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
