/* What export is made of: cells and numbers as text, columns of events, walking in the order of time. */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "export/columns.h"
#include "export/export.h"
#include "export/out.h"
#include "export/scan.h"
#include "export/text.h"

#define S NS_PER_S

/* -------------------------------------------------------------------------------------------- text */

static void check_text(struct buf *b, const char *expected)
{
	assert_string_equal(b->data, expected);
	buf_clear(b);
}

static void test_csv_cells(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "a b;c'", "a b;c'" },
		{ "a,b", "\"a,b\"" },
		{ "say \"a\"", "\"say \"\"a\"\"\"" },
		{ "two\nlines", "\"two\nlines\"" },
		{ "\r", "\"\r\"" },
		{ "\"", "\"\"\"\"" },
	};
	struct buf b = BUF_INIT;
	text_csv(&b, NULL);
	check_text(&b, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		text_csv(&b, cases[i][0]);
		check_text(&b, cases[i][1]);
	}
	buf_free(&b);
}

static void test_json_strings(void **state)
{
	static const char *const cases[][2] = {
		{ "", "\"\"" },
		{ "a\"\\/\n\t\x01", "\"a\\\"\\\\/\\n\\t\\u0001\"" },
		{ "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xaa",
		  "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xaa\"" },
		/* not UTF-8: a lone byte, cut off, overlong, a surrogate, beyond the last character */
		{ "a\xff", "\"a\xef\xbf\xbd\"" },
		{ "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	struct buf b = BUF_INIT;
	text_json(&b, NULL);
	check_text(&b, "null");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		text_json(&b, cases[i][0]);
		check_text(&b, cases[i][1]);
	}
	buf_free(&b);
}

static void test_numbers(void **state)
{
	static const double values[] = { 0.1,        1.0 / 3, 1e300, -2.5e-300,
					 DBL_MAX,    DBL_MIN, 40.2,  1e15 + 0.5,
					 123456.789, 5e-324,  1e22,  0.30000000000000004 };
	struct buf b = BUF_INIT;
	text_i64(&b, 0);
	check_text(&b, "0");
	text_i64(&b, INT64_MAX);
	check_text(&b, "9223372036854775807");
	text_i64(&b, INT64_MIN);
	check_text(&b, "-9223372036854775808");
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		text_f64(&b, values[i]);
		assert_true(strtod(b.data, NULL) == values[i]);
		buf_clear(&b);
	}
	text_f64(&b, 0.1);
	check_text(&b, "0.1");
	text_f64(&b, -3);
	check_text(&b, "-3");
	text_f64(&b, NAN);
	check_text(&b, "");
	text_f64(&b, -INFINITY);
	check_text(&b, "-1e999");
	buf_free(&b);
}

static void test_lists(void **state)
{
	assert_true(text_in_list("cpu.user", "cpu.user"));
	assert_true(text_in_list("a,cpu.*,b", "cpu.user"));
	assert_true(text_in_list(",,x,", "x"));
	assert_false(text_in_list("cpu", "cpu.user"));
	assert_false(text_in_list("", "cpu.user"));
	assert_false(text_in_list("cpu.user.more", "cpu.user"));
}

/* ----------------------------------------------------------------------------------------- columns */

static void test_columns_say_what_they_are(void **state)
{
	struct columns c;
	columns_of_kind(TRACK_STEP, &c);
	assert_int_equal(c.n, track_ncolumns(TRACK_STEP));
	assert_string_equal(c.names[EV_T], "t");
	assert_string_equal(c.names[STEP_INDEX], "step");
	assert_string_equal(c.names[STEP_INPUT_WAIT], "input_wait_ns");

	int64_t row[TRACK_COLUMNS_MAX] = { 5, 6, 7, 1, REC_NONE, REC_NONE, 9 };
	struct buf b = BUF_INIT;
	columns_args(&b, NULL, &c, row);
	check_text(&b, "{\"step\":7,\"phase\":\"evaluation\",\"input_wait_ns\":9}");
	row[STEP_PHASE] = 7; /* no word for it */
	assert_int_equal(columns_cell(&c, NULL, row, STEP_PHASE).type, CELL_I64);
	for (int i = 2; i < c.n; i++)
		row[i] = REC_NONE;
	columns_args(&b, NULL, &c, row);
	check_text(&b, "{}");
	buf_free(&b);
}

static void test_unknown_columns_have_names(void **state)
{
	struct rec_track_info t = {
		.kind = -1, .name = "novel", .ncolumns = 5, .columns = "t dur index"
	};
	struct columns c;
	columns_of(&t, &c);
	assert_int_equal(c.n, 5);
	assert_string_equal(c.names[2], "novel");
	assert_string_equal(c.names[4], "column4");
	t.ncolumns = 60;
	columns_of(&t, &c);
	assert_int_equal(c.n, TRACK_COLUMNS_MAX);
}

/* ------------------------------------------------------------------------------------------ walking */

#define TICKS 5000

struct fixture {
	char path[64];
	struct rec_reader *r;
	uint64_t t0;
};

/* Two series, one of them sparse and with a hole; an event each tick; all begins at 100 s. */
static int make(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct rec_writer *w;
	struct err e = { 0 };
	uint32_t host, dense, sparse, track;
	snprintf(f->path, sizeof(f->path), "/tmp/spotter-export-%d.spot", (int)getpid());
	unlink(f->path);
	f->t0 = 100 * S;
	assert_int_equal(rec_create(f->path, NULL, &w, &e), 0);
	assert_int_equal(rec_entity(w, ENTITY_HOST, 0, "h", 0, f->t0, &host), 0);
	assert_int_equal(rec_series(w, host, METRIC_CPU_USER, "x", &dense), 0);
	assert_int_equal(rec_series(w, host, METRIC_TEMPERATURE, "y", &sparse), 0);
	assert_int_equal(rec_track(w, host, TRACK_GC, &track), 0);
	rec_set(w, "interval_ns", "1000000000");
	for (uint64_t i = 0; i < TICKS; i++) {
		uint64_t t = f->t0 + i * S;
		rec_tick_begin(w, t);
		rec_put_i64(w, dense, (int64_t)i);
		if (i % 7 == 0 && (i < 1000 || i >= 4000))
			rec_put_f64(w, sparse, (double)i / 2);
		assert_int_equal(rec_tick_end(w, &e), 0);
		int64_t row[] = { (int64_t)(t + S / 2), 1000, (int64_t)i, REC_NONE };
		assert_int_equal(rec_events(w, track, row, 1), 0);
	}
	assert_int_equal(rec_close(w, &e), 0);
	assert_int_equal(rec_open(f->path, &f->r, &e), 0);
	*state = f;
	return 0;
}

static int unmake(void **state)
{
	struct fixture *f = *state;
	rec_reader_free(f->r);
	unlink(f->path);
	free(f);
	return 0;
}

static struct scan *start(struct fixture *f, uint64_t t0, uint64_t t1)
{
	const struct rec_series_info *all;
	assert_int_equal(rec_serieses(f->r, &all), 2);
	const struct rec_series_info *list[] = { &all[1], &all[0] }; /* sparse first */
	struct scan *s;
	assert_int_equal(scan_new(f->r, list, 2, t0, t1, &s), 0);
	return s;
}

static void test_rows_come_in_order_and_whole(void **state)
{
	struct fixture *f = *state;
	struct scan *s = start(f, 0, UINT64_MAX);
	struct scan_row row;
	struct err e = { 0 };
	for (uint64_t i = 0; i < TICKS; i++) {
		bool both = i % 7 == 0 && (i < 1000 || i >= 4000);
		assert_int_equal(scan_next(s, &row, &e), 1);
		assert_int_equal(row.t_ns, f->t0 + i * S);
		assert_int_equal(row.n, both ? 2 : 1);
		const struct scan_value *dense = &row.values[row.n - 1];
		assert_int_equal(dense->index, 1);
		assert_int_equal(dense->type, METRIC_I64);
		assert_int_equal(dense->i, i);
		assert_true(dense->v == (double)i);
		if (both) {
			assert_int_equal(row.values[0].index, 0);
			assert_int_equal(row.values[0].type, METRIC_F64);
			assert_true(row.values[0].v == (double)i / 2);
		}
	}
	assert_int_equal(scan_next(s, &row, &e), 0);
	assert_int_equal(scan_next(s, &row, &e), 0);
	scan_free(s);
}

static void test_bounds_are_kept(void **state)
{
	static const struct {
		uint64_t t0, t1;
		int rows;
	} cases[] = {
		{ 0, 0, 0 },
		{ 0, 100 * S, 0 },
		{ 0, 100 * S + 1, 1 },
		{ 100 * S, 101 * S, 1 },
		{ 100 * S + 1, 102 * S, 1 },
		{ 150 * S, 150 * S, 0 },
		{ 200 * S, 100 * S, 0 },
		{ (100 + TICKS - 1) * S, UINT64_MAX, 1 },
		{ (100 + TICKS - 1) * S + 1, UINT64_MAX, 0 },
		{ UINT64_MAX, UINT64_MAX, 0 },
		{ 1000 * S, 3000 * S, 2000 },
	};
	struct fixture *f = *state;
	struct scan_row row;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct scan *s = start(f, cases[i].t0, cases[i].t1);
		int rows = 0;
		while (scan_next(s, &row, NULL) > 0)
			rows++;
		assert_int_equal(rows, cases[i].rows);
		scan_free(s);
	}
}

static void test_nothing_chosen_is_nothing(void **state)
{
	struct fixture *f = *state;
	struct scan *s;
	struct scan_events *events;
	struct scan_row row;
	struct scan_event event;
	assert_int_equal(scan_new(f->r, NULL, 0, 0, UINT64_MAX, &s), 0);
	assert_int_equal(scan_next(s, &row, NULL), 0);
	assert_int_equal(scan_events_new(f->r, NULL, 0, 0, UINT64_MAX, &events), 0);
	assert_int_equal(scan_events_next(events, &event, NULL), 0);
	scan_free(s);
	scan_free(NULL);
	scan_events_free(events);
	scan_events_free(NULL);
}

static void test_events_come_in_order(void **state)
{
	struct fixture *f = *state;
	const struct rec_track_info *all;
	assert_int_equal(rec_tracks(f->r, &all), 1);
	/* The same track twice stands for two with events at the same moments. */
	const struct rec_track_info *list[] = { &all[0], &all[0] };
	struct scan_events *s;
	struct scan_event event;
	assert_int_equal(scan_events_new(f->r, list, 2, 110 * S, UINT64_MAX, &s), 0);
	for (int64_t i = 10; i < TICKS; i++) {
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_equal(scan_events_next(s, &event, NULL), 1);
			assert_int_equal(event.index, k);
			assert_int_equal(event.row[GC_GENERATION], i);
			assert_true(event.row[GC_COLLECTED] == REC_NONE);
		}
	}
	assert_int_equal(scan_events_next(s, &event, NULL), 0);
	scan_events_free(s);
}

/* -------------------------------------------------------------------------------------------- when */

static void test_times(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	uint64_t t = 7, end = rec_t1(f->r);
	assert_int_equal(export_parse_time(f->r, "90s", &t, &e), 0);
	assert_int_equal(t, f->t0 + 90 * S);
	assert_int_equal(export_parse_time(f->r, "-2m", &t, &e), 0);
	assert_int_equal(t, end - 120 * S);
	assert_int_equal(export_parse_time(f->r, "-10000h", &t, &e), 0);
	assert_int_equal(t, 0);
	static const char *const wrong[] = { "",
					     "-",
					     "soon",
					     "2026-13-45",
					     "2026-01-01T",
					     "2026-01-01 25:00",
					     "2026-01-01T10:00:00X",
					     "1x" };
	t = 7;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		e.text[0] = 0;
		assert_int_equal(export_parse_time(f->r, wrong[i], &t, &e), -EINVAL);
		assert_non_null(strstr(e.text, "is no time"));
	}
	assert_int_equal(t, 7);
}

static void test_a_date_goes_there_and_back(void **state)
{
	struct fixture *f = *state;
	struct buf b = BUF_INIT;
	uint64_t t, at = f->t0 + 1234 * S + 5;
	text_time(&b, f->r, at);
	assert_int_equal(b.len, 30);
	assert_int_equal(export_parse_time(f->r, b.data, &t, NULL), 0);
	assert_int_equal(t, at);
	buf_free(&b);
	assert_int_equal(export_parse_time(f->r, "1970-01-01Z", &t, NULL), 0);
	assert_int_equal(t, 0);
}

/* ---------------------------------------------------------------------------------------- selection */

static int select_only(struct fixture *f, const struct export_query *q, size_t *ret_series,
		       size_t *ret_tracks, struct err *e)
{
	struct export_job job = { .r = f->r, .query = q };
	int rc = export_select(&job, e);
	*ret_series = job.chosen.nseries;
	*ret_tracks = job.chosen.ntracks;
	export_release(&job);
	return rc;
}

static void test_selection(void **state)
{
	static const struct {
		struct export_query q;
		int rc;
		size_t series, tracks;
	} cases[] = {
		{ { 0 }, 0, 2, 1 },
		{ { .metrics = "cpu.user" }, 0, 1, 0 },
		{ { .metrics = "*" }, 0, 2, 0 },
		{ { .events = "gc" }, 0, 0, 1 },
		{ { .events = "gc", .metrics = "temp*" }, 0, 1, 1 },
		{ { .entities = "host" }, 0, 2, 0 },
		{ { .entities = "host:0", .events = "*" }, 0, 0, 1 },
		{ { .entities = "host:1" }, -ENOENT, 0, 0 },
		{ { .metrics = "gpu.*" }, -ENOENT, 0, 0 },
		{ { .events = "step" }, -ENOENT, 0, 0 },
		{ { .events = "gc", .metrics = "x" }, -ENOENT, 0, 0 },
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t series, tracks;
		struct err e = { 0 };
		assert_int_equal(select_only(f, &cases[i].q, &series, &tracks, &e), cases[i].rc);
		assert_int_equal(series, cases[i].series);
		assert_int_equal(tracks, cases[i].tracks);
		assert_true(!e.text[0] == !cases[i].rc);
	}
}

/* ------------------------------------------------------------------------------------------- output */

static void test_a_failed_write_is_remembered(void **state)
{
	struct out o;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		skip();
	out_init(&o, fd);
	buf_adds(&o.text, "x");
	assert_int_equal(out_step(&o), 0);
	assert_int_equal(out_flush(&o), -ENOSPC);
	buf_addn(&o.text, 'y', 100000);
	assert_int_equal(out_step(&o), -ENOSPC);
	assert_int_equal(o.text.len, 0);
	assert_int_equal(o.bytes, 0);
	out_release(&o);
	close(fd);
}

static void test_every_exporter_stops_when_it_cannot_write(void **state)
{
	struct fixture *f = *state;
	static const struct export_query q = { .t1 = UINT64_MAX };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		skip();
	for (const struct exporter *const *x = exporters; *x; x++) {
		struct out o;
		struct err e = { 0 };
		out_init(&o, fd);
		struct export_job job = { .r = f->r, .query = &q, .out = &o };
		assert_ptr_equal(exporter_find((*x)->name), *x);
		assert_int_equal(export_select(&job, &e), 0);
		assert_int_equal(export_run(*x, &job, &e), -ENOSPC);
		assert_string_equal(e.text, strerror(ENOSPC));
		export_release(&job);
		out_release(&o);
	}
	close(fd);
	assert_null(exporter_find("xml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv_cells),
		cmocka_unit_test(test_json_strings),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_columns_say_what_they_are),
		cmocka_unit_test(test_unknown_columns_have_names),
		cmocka_unit_test(test_rows_come_in_order_and_whole),
		cmocka_unit_test(test_bounds_are_kept),
		cmocka_unit_test(test_nothing_chosen_is_nothing),
		cmocka_unit_test(test_events_come_in_order),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_a_date_goes_there_and_back),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_a_failed_write_is_remembered),
		cmocka_unit_test(test_every_exporter_stops_when_it_cannot_write),
	};
	return cmocka_run_group_tests(tests, make, unmake);
}
