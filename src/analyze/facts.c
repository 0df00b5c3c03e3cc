/*
 * The facts of a run: how it went, its window of training, and the reading of series that all
 * parts share. See facts.h; steps, CPU, memory, I/O and GPUs are in facts_*.c.
 */
#include "analyze/facts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define EXACT_TICKS 256 /* windows of fewer ticks are read sample by sample, edges interpolated */

static const struct rec_bucket nothing = { 0, NAN, NAN, NAN };

double facts_number(const struct rec_reader *r, const char *key)
{
	const char *text = rec_get(r, key);
	if (!text || !*text)
		return NAN;
	char *end;
	double v = strtod(text, &end);
	return *end ? NAN : v;
}

static uint64_t interval_ns(const struct rec_reader *r)
{
	double v = facts_number(r, "interval_ns");
	return v >= 1e6 && v < 1e15 ? (uint64_t)v : NS_PER_S;
}

/* The value of a counter at t, between the samples on both sides; its ends beyond them. */
static double value_at(const struct rec_points *p, uint64_t t)
{
	if (t <= p->t_ns[0])
		return p->v[0];
	for (size_t i = 1; i < p->n; i++) {
		if (t > p->t_ns[i])
			continue;
		double span = (double)(p->t_ns[i] - p->t_ns[i - 1]);
		double part = (double)(t - p->t_ns[i - 1]) / span;
		return p->v[i - 1] + part * (p->v[i] - p->v[i - 1]);
	}
	return p->v[p->n - 1];
}

static struct rec_bucket counter_over(const struct rec_points *p, uint64_t t0, uint64_t t1)
{
	uint64_t from = t0 > p->t_ns[0] ? t0 : p->t_ns[0];
	uint64_t to = t1 < p->t_ns[p->n - 1] ? t1 : p->t_ns[p->n - 1];
	struct rec_bucket b = nothing;
	if (p->n < 2 || to <= from)
		return b;
	b.mean = (value_at(p, to) - value_at(p, from)) / ((double)(to - from) / NS_PER_S);
	b.min = INFINITY;
	b.max = -INFINITY;
	for (size_t i = 1; i < p->n; i++) {
		if (p->t_ns[i] <= from || p->t_ns[i - 1] >= to)
			continue;
		double rate = (p->v[i] - p->v[i - 1]) /
			      ((double)(p->t_ns[i] - p->t_ns[i - 1]) / NS_PER_S);
		b.min = fmin(b.min, rate);
		b.max = fmax(b.max, rate);
		b.count++;
	}
	return b;
}

static struct rec_bucket gauge_in(const struct rec_points *p, uint64_t t0, uint64_t t1)
{
	struct rec_bucket b = { 0, INFINITY, -INFINITY, 0 };
	for (size_t i = 0; i < p->n; i++) {
		if (p->t_ns[i] < t0 || p->t_ns[i] >= t1)
			continue;
		b.count++;
		b.min = fmin(b.min, p->v[i]);
		b.max = fmax(b.max, p->v[i]);
		b.mean += p->v[i];
	}
	if (!b.count)
		return nothing;
	b.mean /= (double)b.count;
	return b;
}

/* A window between two ticks has no sample of its own: those beside it speak for it. */
static struct rec_bucket gauge_over(const struct rec_points *p, uint64_t t0, uint64_t t1)
{
	struct rec_bucket b = gauge_in(p, t0, t1);
	return b.count ? b : gauge_in(p, 0, UINT64_MAX);
}

struct rec_bucket facts_over(struct rec_reader *r, const struct rec_entity_info *entity,
			     enum metric_id metric, uint64_t t0, uint64_t t1)
{
	struct rec_bucket b = nothing;
	const struct rec_series_info *s = entity ? rec_series_of(r, entity->id, metric) : NULL;
	if (!s || t1 <= t0)
		return b;
	uint64_t tick = interval_ns(r);
	if ((t1 - t0) / tick >= EXACT_TICKS) {
		if (rec_chart(r, s->id, t0, t1, 1, &b, NULL) || !b.count)
			b = nothing;
		return b;
	}
	struct rec_points p = { 0 };
	uint64_t margin = 2 * tick;
	if (rec_read(r, s->id, t0 > margin ? t0 - margin : 0, t1 + margin, &p, NULL))
		return b;
	if (p.n)
		b = s->kind == METRIC_COUNTER ? counter_over(&p, t0, t1) : gauge_over(&p, t0, t1);
	rec_points_free(&p);
	return b;
}

/* Of few samples: each part speaks for the samples on both sides of it too. */
static void chart_points(const struct rec_points *p, uint64_t t0, uint64_t t1, bool counter,
			 size_t n, double *ret)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t a = t0 + (t1 - t0) * i / n, b = t0 + (t1 - t0) * (i + 1) / n;
		if (b <= p->t_ns[0] || a > p->t_ns[p->n - 1])
			continue;
		if (counter) {
			ret[i] = counter_over(p, a, b).mean;
			continue;
		}
		struct rec_bucket in = gauge_in(p, a, b);
		ret[i] = in.count ? in.mean : value_at(p, a + (b - a) / 2);
	}
}

void facts_chart(struct rec_reader *r, const struct rec_entity_info *entity, enum metric_id metric,
		 uint64_t t0, uint64_t t1, size_t n, double *ret)
{
	const struct rec_series_info *s = entity ? rec_series_of(r, entity->id, metric) : NULL;
	for (size_t i = 0; i < n; i++)
		ret[i] = NAN;
	if (!s || t1 <= t0)
		return;
	if ((t1 - t0) / interval_ns(r) < 4 * EXACT_TICKS) {
		struct rec_points p = { 0 };
		if (rec_read(r, s->id, t0, t1 + 1, &p, NULL))
			return;
		if (p.n)
			chart_points(&p, t0, t1, s->kind == METRIC_COUNTER, n, ret);
		rec_points_free(&p);
		return;
	}
	struct rec_bucket *b = calloc(n, sizeof(*b));
	if (b && !rec_chart(r, s->id, t0, t1, n, b, NULL))
		for (size_t i = 0; i < n; i++)
			ret[i] = b[i].count ? b[i].mean : NAN;
	free(b);
}

double facts_last(struct rec_reader *r, const struct rec_entity_info *entity, enum metric_id metric,
		  uint64_t t)
{
	const struct rec_series_info *s = entity ? rec_series_of(r, entity->id, metric) : NULL;
	if (!s)
		return NAN;
	uint64_t back = 16 * interval_ns(r);
	struct rec_points p = { 0 };
	double v = NAN;
	for (uint64_t from = t > back ? t - back : 0;; from = 0) {
		if (rec_read(r, s->id, from, t, &p, NULL))
			return NAN;
		if (p.n)
			v = p.v[p.n - 1];
		rec_points_free(&p);
		if (!isnan(v) || !from)
			return v;
	}
}

/* Did the kernel's out-of-memory killer strike the job? Said by a notice, or by the kernel's counter. */
static bool out_of_memory(const struct run_facts *f)
{
	const struct rec_notice_info *notices;
	size_t n = rec_notices(f->r, &notices);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(notices[i].kind, "out-of-memory"))
			return true;
	return f->memory.oom_kill && f->run.has_exit &&
	       (f->run.signal == 9 || f->run.exit_code == 137);
}

static void load_run(struct run_facts *f)
{
	struct rec_reader *r = f->r;
	struct facts_run *run = &f->run;
	run->command_line = rec_get(r, "command_line");
	run->interval_s = (double)interval_ns(r) / NS_PER_S;
	/* Our own recording is not live: a recorder asks for its report when it is done, or could not go on. */
	run->live = rec_is_live(r) && facts_number(r, "recorder_pid") != getpid();
	double exit_code = facts_number(r, "exit_code"), sig = facts_number(r, "signal");
	run->has_exit = !isnan(exit_code) || !isnan(sig);
	run->exit_code = isnan(exit_code) ? 0 : (int)exit_code;
	run->signal = isnan(sig) ? 0 : (int)sig;
	const char *state = rec_get(r, "state");
	run->cut = !run->live && (!state || strcmp(state, "finished"));
	run->damaged = rec_damaged(r);
	run->lost_records = facts_number(r, "self.lost_records");

	double start = facts_number(r, "start_mono_ns"), end = facts_number(r, "end_mono_ns");
	f->t0 = isnan(start) ? rec_t0(r) : (uint64_t)start;
	f->t1 = isnan(end) ? rec_t1(r) : (uint64_t)end;
	if (f->t1 < f->t0)
		f->t1 = f->t0;
	run->wall_s = f->t0 ? (double)(f->t1 - f->t0) / NS_PER_S : NAN;
	f->w0 = f->t0;
	f->w1 = f->t1;
}

/* The host's sum over its packages, or NaN. The sensors have a beginning: before it nothing is known. */
static void load_energy(struct run_facts *f)
{
	struct rec_bucket b = facts_over(f->r, f->host, METRIC_ENERGY, f->t0, f->t1);
	f->energy_j = b.mean * 1e-6 * f->run.wall_s;
}

int facts_load(struct rec_reader *r, struct run_facts *ret, struct err *e)
{
	memset(ret, 0, sizeof(*ret));
	ret->r = r;
	ret->host = rec_entity_first(r, ENTITY_HOST);
	ret->job = rec_entity_first(r, ENTITY_JOB);
	ret->workers = facts_number(r, "fact.loader.workers");
	load_run(ret);
	int rc = facts_load_steps(ret, e);
	if (!rc)
		rc = facts_load_pauses(ret, e);
	if (rc)
		return rc;
	ret->window_s = (double)(ret->w1 - ret->w0) / NS_PER_S;
	ret->ticks = (double)facts_over(r, ret->job, METRIC_CPU_USER, ret->w0, ret->w1).count;
	facts_load_cpu(ret);
	rc = facts_load_memory(ret);
	if (rc)
		return err_set(e, -rc, "out of memory while reading the recording");
	facts_load_io(ret);
	facts_load_gpus(ret);
	load_energy(ret);
	ret->run.out_of_memory = out_of_memory(ret);
	return 0;
}

void facts_release(struct run_facts *f)
{
	free(f->steps.v);
	f->steps.v = NULL;
	f->steps.n = 0;
}
