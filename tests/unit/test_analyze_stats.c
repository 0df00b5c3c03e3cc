/* Percentiles by nearest rank, and trends: what is a leak and what is noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/stats.h"

static void percentiles_are_measured_values(void **state)
{
	double v[100];
	(void)state;
	for (int i = 0; i < 100; i++)
		v[i] = 100 - i;
	stat_sort(v, 100);
	assert_true(stat_percentile(v, 100, 50) == 50);
	assert_true(stat_percentile(v, 100, 95) == 95);
	assert_true(stat_percentile(v, 100, 99) == 99);
	assert_true(stat_percentile(v, 100, 100) == 100);
	assert_true(stat_percentile(v, 1, 99) == 1);
	assert_true(stat_percentile(v, 2, 50) == 1);
	assert_true(stat_percentile(v, 3, 50) == 2);
	assert_true(isnan(stat_percentile(v, 0, 50)));
}

static void median_sorts(void **state)
{
	double v[] = { 9, 1, 5 };
	(void)state;
	assert_true(stat_median(v, 3) == 5);
	assert_true(isnan(stat_median(v, 0)));
}

static struct trend trend_of(const double *y, size_t n)
{
	double x[STAT_TREND_MAX];
	struct trend t;
	for (size_t i = 0; i < n; i++)
		x[i] = (double)i;
	assert_int_equal(stat_trend(x, y, n, &t), 0);
	return t;
}

static void a_line_has_its_slope(void **state)
{
	double y[40];
	(void)state;
	for (int i = 0; i < 40; i++)
		y[i] = 7 + 3.0 * i;
	struct trend t = trend_of(y, 40);
	assert_int_equal(t.n, 40);
	assert_true(fabs(t.slope - 3) < 1e-9);
	assert_true(t.lower > 2.99 && t.upper < 3.01);
	assert_true(t.chance < 1e-6);
}

/* Outliers do not move it, as they would a least-squares line. */
static void outliers_do_not_matter(void **state)
{
	double y[40];
	(void)state;
	for (int i = 0; i < 40; i++)
		y[i] = i % 10 == 9 ? 1e6 : 2.0 * i;
	struct trend t = trend_of(y, 40);
	assert_true(fabs(t.slope - 2) < 0.5);
}

static void few_values_are_judged_exactly(void **state)
{
	const double rising[] = { 1, 2, 3, 4, 5 }, almost[] = { 1, 2, 3, 5, 4 };
	(void)state;
	assert_true(fabs(trend_of(rising, 5).chance - 1.0 / 120) < 1e-12);
	assert_true(fabs(trend_of(almost, 5).chance - 5.0 / 120) < 1e-12);
	assert_true(fabs(trend_of(rising, 4).chance - 1.0 / 24) < 1e-12);
	assert_true(isnan(trend_of(rising, 3).slope));
}

static void noise_is_no_trend(void **state)
{
	double y[60];
	uint32_t seed = 1;
	int steady = 0;
	(void)state;
	for (int run = 0; run < 200; run++) {
		for (int i = 0; i < 60; i++) {
			seed = seed * 1664525 + 1013904223;
			y[i] = seed >> 8;
		}
		steady += trend_of(y, 60).chance < 0.01;
	}
	assert_in_range(steady, 0, 8); /* two are expected */
}

static void flat_and_absent(void **state)
{
	const double flat[] = { 4, 4, 4, 4, 4, 4 };
	const double gaps[] = { 1, NAN, 2, NAN, 3, 4, 5 };
	(void)state;
	struct trend t = trend_of(flat, 6);
	assert_true(t.slope == 0);
	assert_true(t.chance >= 0.5);
	t = trend_of(gaps, 7);
	assert_int_equal(t.n, 5);
	assert_true(t.slope > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_measured_values),
		cmocka_unit_test(median_sorts),
		cmocka_unit_test(a_line_has_its_slope),
		cmocka_unit_test(outliers_do_not_matter),
		cmocka_unit_test(few_values_are_judged_exactly),
		cmocka_unit_test(noise_is_no_trend),
		cmocka_unit_test(flat_and_absent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
