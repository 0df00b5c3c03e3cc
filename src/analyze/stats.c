/* Percentiles and trends; see stats.h. */
#include "analyze/stats.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void stat_sort(double *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof(*v), compare);
}

double stat_percentile(const double *sorted, size_t n, double p)
{
	if (!n)
		return NAN;
	/* The small step back keeps 99 % of 100 values at rank 99 where p/100*n is not exact. */
	double rank = ceil(p / 100 * (double)n - 1e-9);
	if (rank < 1)
		rank = 1;
	if (rank > (double)n)
		rank = (double)n;
	return sorted[(size_t)rank - 1];
}

double stat_median(double *v, size_t n)
{
	stat_sort(v, n);
	return stat_percentile(v, n, 50);
}

double stat_sum(const double *v, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

/* Variance of the Mann-Kendall statistic over n values (sorted here), less what ties take away. */
static double kendall_variance(double *v, size_t n)
{
	double count = (double)n;
	double var = count * (count - 1) * (2 * count + 5);
	stat_sort(v, n);
	for (size_t i = 0; i < n;) {
		size_t j = i + 1;
		while (j < n && v[j] == v[i])
			j++;
		double ties = (double)(j - i);
		var -= ties * (ties - 1) * (2 * ties + 5);
		i = j;
	}
	return var / 18;
}

/*
 * The chance that n values in random order rise at least as steadily (s: rising less falling pairs), by counting
 * orders by their inversions. Exact where the normal approximation is not, for few values without ties.
 */
#define EXACT_MAX   16
#define EXACT_PAIRS (EXACT_MAX * (EXACT_MAX - 1) / 2)

static double kendall_exact(size_t n, double s)
{
	double ways[EXACT_PAIRS + 1] = { 1 }, all = 1, steady = 0;
	size_t pairs = n * (n - 1) / 2;
	for (size_t k = 2; k <= n; k++) {
		double next[EXACT_PAIRS + 1] = { 0 };
		for (size_t i = 0; i <= pairs; i++)
			for (size_t j = 0; j < k && j <= i; j++)
				next[i] += ways[i - j];
		memcpy(ways, next, sizeof(ways));
		all *= (double)k;
	}
	for (size_t falling = 0; falling <= pairs; falling++)
		if ((double)pairs - 2 * (double)falling >= s)
			steady += ways[falling];
	return steady / all;
}

static bool has_ties(const double *sorted, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (sorted[i] == sorted[i - 1])
			return true;
	return false;
}

static double clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

int stat_trend(const double *x, const double *y, size_t n, struct trend *ret)
{
	struct trend t = { .slope = NAN, .lower = NAN, .upper = NAN, .chance = NAN };
	double xs[STAT_TREND_MAX], ys[STAT_TREND_MAX];

	for (size_t i = 0; i < n && t.n < STAT_TREND_MAX; i++) {
		if (isnan(x[i]) || isnan(y[i]))
			continue;
		xs[t.n] = x[i];
		ys[t.n++] = y[i];
	}
	if (t.n < 4) {
		*ret = t;
		return 0;
	}
	double *slopes = malloc(t.n * (t.n - 1) / 2 * sizeof(*slopes));
	if (!slopes)
		return -ENOMEM;
	size_t pairs = 0;
	double s = 0; /* Mann-Kendall: rising pairs less falling pairs */
	for (size_t i = 0; i < t.n; i++) {
		for (size_t j = i + 1; j < t.n; j++) {
			if (xs[j] == xs[i])
				continue;
			double slope = (ys[j] - ys[i]) / (xs[j] - xs[i]);
			slopes[pairs++] = slope;
			s += (slope > 0) - (slope < 0);
		}
	}
	double sd = sqrt(kendall_variance(ys, t.n));
	if (pairs) {
		double half = 1.96 * sd, last = (double)pairs - 1;
		stat_sort(slopes, pairs);
		t.slope = stat_percentile(slopes, pairs, 50);
		t.lower = slopes[(size_t)clamp(floor(((double)pairs - half) / 2), 0, last)];
		t.upper = slopes[(size_t)clamp(ceil(((double)pairs + half) / 2), 0, last)];
		double z = sd > 0 ? (s - (s > 0) + (s < 0)) / sd : 0;
		t.chance = t.n <= EXACT_MAX && !has_ties(ys, t.n) ? kendall_exact(t.n, s)
								  : 0.5 * erfc(z / sqrt(2));
	}
	free(slopes);
	*ret = t;
	return 0;
}
