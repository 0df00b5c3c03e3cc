/*
 * Small statistics over arrays of doubles. Pure; absent results are NaN, never 0.
 */
#ifndef SPOTTER_ANALYZE_STATS_H
#define SPOTTER_ANALYZE_STATS_H

#include <stddef.h>

void stat_sort(double *v, size_t n);

/*
 * The p-th percentile (0 < p <= 100) of sorted values by nearest rank: a value that was measured, never one
 * in between. NaN if n is 0.
 */
double stat_percentile(const double *sorted, size_t n, double p);

/* Sorts v. */
double stat_median(double *v, size_t n);

double stat_sum(const double *v, size_t n);

/*
 * How y rises with x: the Theil-Sen slope (the median of all pairs' slopes, which a few outliers do not
 * move), its 95 % confidence bounds, and the Mann-Kendall probability that so steady a rise
 * is chance (one-sided). Pairs where y is NaN are left out. At most STAT_TREND_MAX points.
 */
#define STAT_TREND_MAX 256

struct trend {
	size_t n;                   /* points used; below 4 everything else is NaN */
	double slope, lower, upper; /* y per x */
	double chance;              /* 0..1 */
};

int stat_trend(const double *x, const double *y, size_t n, struct trend *ret); /* 0 or -ENOMEM */

#endif
