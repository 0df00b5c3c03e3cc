/* base: buffers, maps, numbers for people, options, small reads. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fmt.h"
#include "base/io.h"
#include "base/map.h"
#include "base/opt.h"

static void buf_grows_and_stays_terminated(void **state)
{
	(void)state;
	struct buf b = BUF_INIT;
	assert_string_equal(b.data, "");
	for (int i = 0; i < 1000; i++)
		buf_addf(&b, "%d,", i);
	buf_addn(&b, 'x', 3);
	assert_int_equal(strlen(b.data), b.len);
	assert_string_equal(b.data + b.len - 7, "999,xxx");
	buf_clear(&b);
	assert_string_equal(b.data, "");
	char *s = buf_detach(&b);
	assert_string_equal(s, "");
	free(s);
	buf_free(&b);
	buf_free(NULL);
}

static void buf_refuses_the_impossible(void **state)
{
	(void)state;
	struct buf b = BUF_INIT;
	buf_adds(&b, "kept");
	assert_int_equal(buf_reserve(&b, SIZE_MAX / 2), -ENOMEM);
	buf_adds(&b, "ignored");
	assert_true(b.failed);
	assert_string_equal(b.data, "kept");
	assert_null(buf_detach(&b));
}

static void err_keeps_both_sentences(void **state)
{
	(void)state;
	struct err e = { 0 };
	assert_int_equal(err_set(&e, ENOSPC, "no space left on %s", "/x"), -ENOSPC);
	assert_int_equal(err_prefix(&e, -ENOSPC, "run.spot"), -ENOSPC);
	assert_string_equal(e.text, "run.spot: no space left on /x");
	char long_text[2 * sizeof(e.text)];
	memset(long_text, 'a', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	err_prefix(&e, -1, long_text);
	assert_true(strlen(e.text) < sizeof(e.text));
	assert_int_equal(err_set(NULL, EIO, "nobody listens"), -EIO);
}

static void map_agrees_with_an_array(void **state)
{
	(void)state;
	enum { KEYS = 512 };
	uint64_t truth[KEYS] = { 0 }, value;
	struct map m;
	map_init(&m);
	uint32_t seed = 1;
	for (int i = 0; i < 200000; i++) {
		seed = seed * 1664525 + 1013904223;
		uint64_t key = seed >> 23;
		if (seed & 0x100) {
			assert_int_equal(map_put(&m, key * 0x9e3779b97f4a7c15ULL, (uint64_t)i + 1),
					 0);
			truth[key] = (uint64_t)i + 1;
		} else {
			assert_int_equal(map_del(&m, key * 0x9e3779b97f4a7c15ULL), truth[key] != 0);
			truth[key] = 0;
		}
	}
	size_t count = 0;
	for (uint64_t key = 0; key < KEYS; key++) {
		bool found = map_get(&m, key * 0x9e3779b97f4a7c15ULL, &value);
		assert_int_equal(found, truth[key] != 0);
		assert_true(!found || value == truth[key]);
		count += found;
	}
	assert_int_equal(count, m.count);
	size_t seen = 0;
	for (size_t i = 0; map_next(&m, &i);)
		seen++;
	assert_int_equal(seen, count);
	map_free(&m);
	assert_false(map_get(&m, 1, &value));
}

static void numbers_for_people(void **state)
{
	(void)state;
	static const struct {
		void (*fmt)(struct buf *b, double v);
		double value;
		const char *text;
	} cases[] = {
		{ fmt_bytes, 0, "0 B" },
		{ fmt_bytes, 999, "999 B" },
		{ fmt_bytes, 1400000000, "1.4 GB" },
		{ fmt_bytes, 999600, "1.0 MB" },
		{ fmt_bytes, NAN, "-" },
		{ fmt_duration, 0, "0 ns" },
		{ fmt_duration, 83e6, "83 ms" },
		{ fmt_duration, 1.25e9, "1.25 s" },
		{ fmt_duration, 320e9, "5 min 20 s" },
		{ fmt_duration, 7260e9, "2 h 1 min" },
		{ fmt_duration, -2e6, "-2 ms" },
		{ fmt_share, 0.413, "41 %" },
		{ fmt_share, 0.0041, "0.41 %" },
		{ fmt_share, 0, "0 %" },
		{ fmt_share, 1, "100 %" },
		{ fmt_count, 3840, "3,840" },
		{ fmt_count, 1234567, "1,234,567" },
		{ fmt_count, 12.5, "12.5" },
		{ fmt_count, -1000, "-1,000" },
		{ fmt_number, 1.94, "1.94" },
		{ fmt_number, 83.04, "83" },
		{ fmt_number, 0.012, "0.012" },
		{ fmt_number, 100, "100" },
		{ fmt_number, 1200, "1200" },
		{ fmt_number, NAN, "-" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf b = BUF_INIT;
		cases[i].fmt(&b, cases[i].value);
		assert_string_equal(b.data, cases[i].text);
		buf_free(&b);
	}
}

static void sparks_span_the_range(void **state)
{
	(void)state;
	struct buf b = BUF_INIT;
	const double v[] = { 0, 1, 2, NAN, 4 };
	fmt_spark(&b, v, 5, 0, 1);
	assert_string_equal(b.data, ".-+ #");
	buf_free(&b);
}

static void durations_and_sizes_parse(void **state)
{
	(void)state;
	uint64_t v = 7;
	assert_int_equal(fmt_parse_duration("10ms", &v), 0);
	assert_int_equal(v, 10000000);
	assert_int_equal(fmt_parse_duration("0.5", &v), 0);
	assert_int_equal(v, 500000000);
	assert_int_equal(fmt_parse_duration("2 min", &v), 0);
	assert_int_equal(v, 120000000000);
	v = 7;
	const char *const bad[] = { "", "ms", "-1s", "1x", "nan", "1e99", "inf" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(fmt_parse_duration(bad[i], &v), -EINVAL);
	assert_int_equal(v, 7);
	assert_int_equal(fmt_parse_bytes("1.5G", &v), 0);
	assert_int_equal(v, 1500000000);
	assert_int_equal(fmt_parse_bytes("1GiB", &v), 0);
	assert_int_equal(v, 1073741824);
}

struct demo_options {
	bool flag;
	const char *text;
	uint64_t number, time;
};

static const struct opt demo_opts[] = {
	OPT(demo_options, flag, "flag", 'f', OPT_FLAG, NULL, "a flag"),
	OPT(demo_options, text, "text", 't', OPT_STRING, "TEXT", "a text"),
	OPT(demo_options, number, "number", 'n', OPT_U64, "N", "a number"),
	OPT(demo_options, time, "time", 0, OPT_DURATION, "TIME", "a time"),
	OPT_END,
};

static int parse(struct demo_options *o, bool stop, int argc, char **argv, int *n, struct err *e)
{
	bool help = false;
	return opt_parse(demo_opts, o, argc, argv, stop, n, &help, e);
}

static void options_mix_with_arguments(void **state)
{
	(void)state;
	char *argv[] = { "x",      "a",  "-ft", "hello", "--number=5", "b",
			 "--time", "1s", "--",  "-c",    NULL };
	struct demo_options o = { 0 };
	struct err e = { 0 };
	int n = 0;
	assert_int_equal(parse(&o, false, 10, argv, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_string_equal(argv[3], "-c");
	assert_true(o.flag);
	assert_string_equal(o.text, "hello");
	assert_int_equal(o.number, 5);
	assert_int_equal(o.time, 1000000000);
}

static void a_command_ends_options(void **state)
{
	(void)state;
	char *argv[] = { "x", "-f", "python3", "--text", "-n", NULL };
	struct demo_options o = { 0 };
	struct err e = { 0 };
	int n = 0;
	assert_int_equal(parse(&o, true, 5, argv, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_string_equal(argv[1], "python3");
	assert_string_equal(argv[2], "--text");
	assert_null(o.text);
}

static void bad_options_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *arg, *text;
	} cases[] = {
		{ "--numbr", "unknown option --numbr; did you mean --number" },
		{ "--number=x", "--number expects a whole number, not 'x'" },
		{ "--number=-1", "--number expects a whole number, not '-1'" },
		{ "--flag=1", "--flag takes no value" },
		{ "--text", "--text needs a text" },
		{ "-z", "unknown option -z" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char arg[32];
		strcpy(arg, cases[i].arg);
		char *argv[] = { "x", arg, NULL };
		struct demo_options o = { 0 };
		struct err e = { 0 };
		int n;
		assert_int_equal(parse(&o, false, 2, argv, &n, &e), -EINVAL);
		assert_string_equal(e.text, cases[i].text);
	}
}

static void kernel_files_are_read(void **state)
{
	(void)state;
	char text[16];
	int64_t v;
	assert_int_equal(io_read_text(AT_FDCWD, "/nowhere", text, sizeof(text)), -ENOENT);
	assert_int_equal(io_read_i64(AT_FDCWD, "/proc/sys/kernel/pid_max", &v), 0);
	assert_true(v > 0);
	uint64_t u = 7;
	assert_true(io_find_u64("VmPeak: 10 kB\nVmRSS:\t 12 kB\n", "VmRSS:", &u));
	assert_int_equal(u, 12);
	assert_false(io_find_u64("VmPeak: 10 kB\n", "VmRSS:", &u));
	const char *p = "99999999999999999999 5";
	assert_true(io_parse_u64(&p, &u));
	assert_int_equal(u, UINT64_MAX);
	char *all;
	size_t len;
	assert_int_equal(io_read_all("/proc/self/maps", 1 << 20, &all, &len), 0);
	assert_int_equal(strlen(all), len);
	free(all);
	assert_int_equal(io_read_all("/proc/self/maps", 10, &all, &len), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_grows_and_stays_terminated),
		cmocka_unit_test(buf_refuses_the_impossible),
		cmocka_unit_test(err_keeps_both_sentences),
		cmocka_unit_test(map_agrees_with_an_array),
		cmocka_unit_test(numbers_for_people),
		cmocka_unit_test(sparks_span_the_range),
		cmocka_unit_test(durations_and_sizes_parse),
		cmocka_unit_test(options_mix_with_arguments),
		cmocka_unit_test(a_command_ends_options),
		cmocka_unit_test(bad_options_are_named),
		cmocka_unit_test(kernel_files_are_read),
	};
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
