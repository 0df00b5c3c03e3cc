/*
 * Facts about memory: peak against limit, whether it grows, and swapping.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/facts.h"
#include "base/clock.h"

#define GROWTH_BUCKETS 96
#define GROWTH_SAMPLES 12

static double job_max(const struct run_facts *f, enum metric_id metric)
{
	return facts_over(f->r, f->job, metric, f->t0, f->t1 + 1).max;
}

static double first_known(double a, double b)
{
	return isnan(a) ? b : a;
}

static double larger(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

/* Mean of the y in [from, to), NaN ones left out. */
static double mean_of(const double *y, size_t from, size_t to)
{
	double sum = 0;
	size_t k = 0;
	for (size_t i = from; i < to; i++) {
		if (isnan(y[i]))
			continue;
		sum += y[i];
		k++;
	}
	return k ? sum / (double)k : NAN;
}

/*
 * Of the whole rise, how much came in the poorer half? A leak rises all along (0.5); one big allocation is a
 * step in one of the halves (about 0).
 */
static double evenness(const double *y, size_t n)
{
	double first = mean_of(y, 0, (n + 3) / 4), last = mean_of(y, n - (n + 3) / 4, n);
	double middle = mean_of(y, n / 2 - n / 8, n / 2 + n / 8 + 1);
	double rise = last - first;
	if (!(rise > 0))
		return NAN;
	return fmin(middle - first, last - middle) / rise;
}

/*
 * Where to look for growth: the second half of the window, where start-up and warming caches are behind us. A
 * short run has few samples there: its last two thirds.
 */
static uint64_t growth_from(const struct run_facts *f)
{
	uint64_t window = f->w1 - f->w0;
	bool few = f->ticks < 2 * GROWTH_SAMPLES;
	return f->w0 + (few ? window / 3 : window / 2);
}

static int load_growth(struct run_facts *f, const struct rec_series_info *s)
{
	struct facts_memory *m = &f->memory;
	uint64_t half = growth_from(f);
	struct rec_bucket b[GROWTH_BUCKETS];
	double x[GROWTH_BUCKETS], y[GROWTH_BUCKETS];
	size_t n = 0;
	if (f->w1 <= half || rec_chart(f->r, s->id, half, f->w1, GROWTH_BUCKETS, b, NULL))
		return 0;
	double width = (double)(f->w1 - half) / NS_PER_S / GROWTH_BUCKETS;
	for (size_t i = 0; i < GROWTH_BUCKETS; i++) {
		if (!b[i].count)
			continue;
		x[n] = ((double)i + 0.5) * width;
		y[n++] = b[i].mean;
	}
	int rc = stat_trend(x, y, n, &m->growth);
	if (rc || n < 4)
		return rc;
	m->growth_from_s = x[n - 1] - x[0];
	m->growth_bytes = m->growth.slope * m->growth_from_s;
	m->growth_even = evenness(y, n);
	return 0;
}

static void load_limit(struct run_facts *f)
{
	struct facts_memory *m = &f->memory;
	struct rec_bucket limit = facts_over(f->r, f->job, METRIC_MEMORY_LIMIT, f->t0, f->t1 + 1);
	m->host_total = facts_over(f->r, f->host, METRIC_MEMORY_TOTAL, f->t0, f->t1 + 1).max;
	m->host_available_min =
		facts_over(f->r, f->host, METRIC_MEMORY_AVAILABLE, f->t0, f->t1 + 1).min;
	m->limit = first_known(limit.min, m->host_total);
	m->limit_is_host = isnan(limit.min) || limit.min >= m->host_total;
}

/*
 * What counts towards the limit. The sum of RSS counts a page once per process that has it: with forked loader workers
 * many times. PSS does not; and no more can be meant than the cgroup (or the host) had in use.
 */
static double peak_used(const struct run_facts *f)
{
	const struct facts_memory *m = &f->memory;
	double processes = facts_over(f->r, f->job, METRIC_SCHED_PROCESSES, f->t0, f->t1 + 1).max;
	double used = m->peak_rss;
	if (processes > 1 && m->peak_pss > 0)
		used = larger(m->peak_pss, facts_number(f->r, "job.max_rss_bytes"));
	double most = m->limit_is_host ? m->host_total - m->host_available_min
				       : facts_over(f->r, rec_entity_first(f->r, ENTITY_CGROUP),
						    METRIC_MEMORY_USED, f->t0, f->t1 + 1)
						 .max;
	return most < used ? most : used;
}

static void load_swap(struct run_facts *f)
{
	struct facts_memory *m = &f->memory;
	m->swap_in = facts_over(f->r, f->host, METRIC_SWAP_IN, f->w0, f->w1).mean;
	m->swap_out = facts_over(f->r, f->host, METRIC_SWAP_OUT, f->w0, f->w1).mean;
	m->swap_used_max = facts_over(f->r, f->host, METRIC_SWAP_USED, f->t0, f->t1 + 1).max;
	m->job_swapped_max = job_max(f, METRIC_MEMORY_SWAPPED);
}

static void load_pressure(struct run_facts *f)
{
	struct facts_memory *m = &f->memory;
	m->pressure_some =
		facts_over(f->r, f->host, METRIC_PRESSURE_MEMORY_SOME, f->w0, f->w1).mean / 1e9;
	m->pressure_full =
		facts_over(f->r, f->host, METRIC_PRESSURE_MEMORY_FULL, f->w0, f->w1).mean / 1e9;
}

/* Kills while the run lasted: of its cgroup where that counts, else of the host. */
static bool oom_kill(const struct run_facts *f)
{
	const struct rec_entity_info *places[] = { f->job, rec_entity_first(f->r, ENTITY_CGROUP),
						   f->host };
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct rec_bucket b =
			facts_over(f->r, places[i], METRIC_MEMORY_OOM_KILLS, f->t0, f->t1 + 1);
		if (b.count)
			return b.max > 0;
	}
	return false;
}

int facts_load_memory(struct run_facts *f)
{
	struct facts_memory *m = &f->memory;
	m->growth = (struct trend){ 0, NAN, NAN, NAN, NAN };
	m->growth_bytes = m->growth_from_s = m->growth_even = NAN;
	/* wait4 knows the largest single process, between ticks too; the sum is only known at ticks. */
	m->peak_rss =
		larger(job_max(f, METRIC_MEMORY_RSS), facts_number(f->r, "job.max_rss_bytes"));
	m->peak_pss = job_max(f, METRIC_MEMORY_PSS);
	m->oom_kill = oom_kill(f);
	load_limit(f);
	m->peak_used = peak_used(f);
	load_swap(f);
	load_pressure(f);
	const struct rec_series_info *rss =
		f->job ? rec_series_of(f->r, f->job->id, METRIC_MEMORY_RSS) : NULL;
	return rss ? load_growth(f, rss) : 0;
}
