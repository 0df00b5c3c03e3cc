/*
 * Facts about steps, epochs, checkpoints and the collector's pauses: what the training process says about
 * itself. Several processes may train (ranks): the one with the most steps leads, the
 * others count for samples per second.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/facts.h"
#include "base/clock.h"

#define NS(t) ((double)(t) / NS_PER_S)

/* One track's rows; free with free(rows). */
struct rows {
	int64_t *v;
	size_t n;
	int width;
	uint32_t entity;
};

static int read_rows(struct run_facts *f, const struct rec_track_info *t, struct rows *ret,
		     struct err *e)
{
	ret->v = NULL;
	ret->n = 0;
	ret->width = t->ncolumns;
	ret->entity = t->entity;
	return rec_read_events(f->r, t->id, 0, UINT64_MAX, &ret->v, &ret->n, e);
}

/* A column of a row; recordings of older versions may have fewer. */
static int64_t column(const struct rows *rows, size_t row, int col)
{
	return col < rows->width ? rows->v[row * (size_t)rows->width + (size_t)col] : REC_NONE;
}

static bool is_training(const struct rows *rows, size_t row)
{
	return column(rows, row, STEP_PHASE) != 1;
}

static size_t count_training(const struct rows *rows)
{
	size_t n = 0;
	for (size_t i = 0; i < rows->n; i++)
		n += is_training(rows, i);
	return n;
}

/* Steps warm up: first batches, lazy initialisation, caches. At most ten, at most a tenth. */
static size_t warmup_of(size_t n)
{
	return n / 10 < 10 ? n / 10 : 10;
}

static double sorted_into(const struct fact_step *v, size_t n, bool waits, double *into,
			  size_t *ret_n)
{
	size_t k = 0;
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		double x = waits ? v[i].wait_s : v[i].dur_s;
		if (isnan(x) || isnan(v[i].dur_s))
			continue;
		into[k++] = x;
		sum += x;
	}
	stat_sort(into, k);
	*ret_n = k;
	return sum;
}

static double usual_batch(const struct fact_step *v, size_t n, double *scratch)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (v[i].batch != REC_NONE)
			scratch[k++] = (double)v[i].batch;
	return stat_median(scratch, k);
}

/* What the steps after warm-up say. */
static int summarise(struct facts_steps *s)
{
	const struct fact_step *v = s->v + s->warmup;
	size_t n = s->n - s->warmup, k;
	double *sorted = malloc((n ? n : 1) * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	s->total_s = sorted_into(v, n, false, sorted, &k);
	s->timed = k;
	s->p50_s = stat_percentile(sorted, k, 50);
	s->p95_s = stat_percentile(sorted, k, 95);
	s->p99_s = stat_percentile(sorted, k, 99);
	s->max_s = stat_percentile(sorted, k, 100);
	for (size_t i = 0; i < n; i++)
		if (v[i].dur_s == s->max_s)
			s->max_at = s->warmup + i;
	double wait = sorted_into(v, n, true, sorted, &k);
	double known = 0;
	for (size_t i = 0; i < n; i++)
		known += isnan(v[i].wait_s) || isnan(v[i].dur_s) ? 0 : v[i].dur_s;
	s->wait_share = k && known > 0 ? wait / known : NAN;
	s->wait_p50_s = stat_percentile(sorted, k, 50);
	s->wait_p95_s = stat_percentile(sorted, k, 95);
	s->batch = usual_batch(v, n, sorted);
	free(sorted);
	return 0;
}

static void take_steps(struct facts_steps *s, const struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (!is_training(rows, i))
			continue;
		int64_t wait = column(rows, i, STEP_INPUT_WAIT);
		int64_t t = column(rows, i, EV_T), dur = column(rows, i, EV_DUR);
		s->v[s->n++] = (struct fact_step){
			.t0_ns = (uint64_t)t,
			.t1_ns = (uint64_t)(t + dur),
			.index = column(rows, i, STEP_INDEX),
			.epoch = column(rows, i, STEP_EPOCH),
			.batch = column(rows, i, STEP_BATCH),
			.dur_s = dur > 0 ? NS(dur) : NAN, /* 0: its begin is not known */
			.wait_s = wait == REC_NONE ? NAN : NS(wait),
		};
	}
}

/* Evaluation steps of the leading process. */
static int take_evaluation(struct facts_steps *s, const struct rows *rows)
{
	size_t n = rows->n - count_training(rows), k = 0;
	s->eval_n = (int64_t)n;
	s->eval_total_s = s->eval_p50_s = NAN;
	if (!n)
		return 0;
	double *durs = malloc(n * sizeof(*durs));
	if (!durs)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++)
		if (!is_training(rows, i))
			durs[k++] = NS(column(rows, i, EV_DUR));
	s->eval_total_s = stat_sum(durs, k);
	s->eval_p50_s = stat_median(durs, k);
	free(durs);
	return 0;
}

/* Samples of training steps in the window, of one process. */
static double samples_in(const struct run_facts *f, const struct rows *rows)
{
	double samples = NAN;
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t t = (uint64_t)column(rows, i, EV_T);
		int64_t batch = column(rows, i, STEP_BATCH);
		if (is_training(rows, i) && batch != REC_NONE && t >= f->w0 && t < f->w1)
			samples = (isnan(samples) ? 0 : samples) + (double)batch;
	}
	return samples;
}

static int load_leader(struct run_facts *f, const struct rows *leader)
{
	struct facts_steps *s = &f->steps;
	size_t n = count_training(leader);
	s->entity = leader->entity;
	int rc = take_evaluation(s, leader);
	if (rc || !n)
		return rc;
	s->v = calloc(n, sizeof(*s->v));
	if (!s->v)
		return -ENOMEM;
	take_steps(s, leader);
	s->warmup = warmup_of(n);
	f->w0 = s->v[s->warmup].t0_ns;
	f->w1 = f->w0;
	for (size_t i = s->warmup; i < n; i++)
		if (s->v[i].t1_ns > f->w1)
			f->w1 = s->v[i].t1_ns;
	rc = summarise(s);
	double window = NS(f->w1 - f->w0);
	if (window > 0)
		s->per_s = (double)(n - s->warmup) / window;
	return rc;
}

static int load_step_tracks(struct run_facts *f, const struct rec_track_info *tracks, size_t n,
			    struct err *e)
{
	struct facts_steps *s = &f->steps;
	struct rows leader = { 0 };
	size_t most = 0;
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		struct rows rows;
		if (tracks[i].kind != TRACK_STEP || read_rows(f, &tracks[i], &rows, e))
			continue;
		size_t training = count_training(&rows);
		s->processes += training > 0;
		if (rows.n && (!leader.n || training > most)) {
			free(leader.v);
			leader = rows;
			most = training;
		} else {
			free(rows.v);
		}
	}
	if (leader.n)
		rc = load_leader(f, &leader);
	free(leader.v);
	if (rc || !s->n)
		return rc;
	double window = NS(f->w1 - f->w0), samples = NAN;
	for (size_t i = 0; i < n; i++) {
		struct rows rows;
		if (tracks[i].kind != TRACK_STEP || read_rows(f, &tracks[i], &rows, e))
			continue;
		double more = samples_in(f, &rows);
		if (!isnan(more))
			samples = (isnan(samples) ? 0 : samples) + more;
		free(rows.v);
	}
	s->samples_per_s = window > 0 ? samples / window : NAN;
	return 0;
}

/* Add a pause to the steps that it overlaps; steps are in order of time. */
static void charge_steps(struct facts_steps *s, uint64_t t0, uint64_t t1, size_t *from,
			 bool checkpoint)
{
	while (*from < s->n && s->v[*from].t1_ns <= t0)
		++*from;
	for (size_t i = *from; i < s->n && s->v[i].t0_ns < t1; i++) {
		struct fact_step *step = &s->v[i];
		uint64_t a = t0 > step->t0_ns ? t0 : step->t0_ns;
		uint64_t b = t1 < step->t1_ns ? t1 : step->t1_ns;
		if (b > a)
			*(checkpoint ? &step->checkpoint_s : &step->gc_s) += NS(b - a);
	}
}

static int load_pauses(struct run_facts *f, const struct rows *rows, bool checkpoint,
		       struct facts_pauses *p)
{
	double *durs = malloc((rows->n ? rows->n : 1) * sizeof(*durs));
	if (!durs)
		return -ENOMEM;
	double in_window = 0;
	size_t from = 0, k = 0;
	p->n = (int64_t)rows->n;
	p->total_s = 0;
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t t0 = (uint64_t)column(rows, i, EV_T);
		uint64_t t1 = t0 + (uint64_t)column(rows, i, EV_DUR);
		int64_t bytes = checkpoint ? column(rows, i, CHECKPOINT_BYTES) : REC_NONE;
		p->total_s += NS(t1 - t0);
		/* Short collections come as sums: they count in the total, not as one pause. */
		if (checkpoint || column(rows, i, GC_GENERATION) != REC_NONE)
			durs[k++] = NS(t1 - t0);
		if (bytes != REC_NONE)
			p->bytes = (isnan(p->bytes) ? 0 : p->bytes) + (double)bytes;
		uint64_t a = t0 > f->w0 ? t0 : f->w0, b = t1 < f->w1 ? t1 : f->w1;
		if (b > a)
			in_window += NS(b - a);
		charge_steps(&f->steps, t0, t1, &from, checkpoint);
	}
	p->median_s = stat_median(durs, k);
	p->max_s = stat_percentile(durs, k, 100);
	if (f->w1 > f->w0)
		p->share = in_window / NS(f->w1 - f->w0);
	free(durs);
	return 0;
}

/*
 * Pauses of the leading process (those of its loader workers do not stall it); where no process leads, of the
 * one that paused longest. With a hook in the job and no such event, the count is an honest 0.
 */
static int load_pause_tracks(struct run_facts *f, const struct rec_track_info *tracks, size_t n,
			     enum track_kind kind, struct facts_pauses *p, struct err *e)
{
	*p = (struct facts_pauses){ -1, NAN, NAN, NAN, NAN, NAN };
	struct rows best = { 0 };
	double longest = -1;
	for (size_t i = 0; i < n; i++) {
		struct rows rows;
		if (tracks[i].kind != (int)kind)
			continue;
		if (f->steps.entity && tracks[i].entity != f->steps.entity)
			continue;
		if (read_rows(f, &tracks[i], &rows, e))
			continue;
		double total = 0;
		for (size_t k = 0; k < rows.n; k++)
			total += NS(column(&rows, k, EV_DUR));
		if (total > longest) {
			free(best.v);
			best = rows;
			longest = total;
		} else {
			free(rows.v);
		}
	}
	const char *from = rec_get(f->r, "steps_source");
	bool hooked = from && strstr(from, "hook");
	int rc = 0;
	if (best.n || hooked)
		rc = load_pauses(f, &best, kind == TRACK_CHECKPOINT, p);
	free(best.v);
	return rc;
}

static int load_epochs(struct run_facts *f, const struct rec_track_info *tracks, size_t n,
		       struct err *e)
{
	struct facts_steps *s = &f->steps;
	for (size_t i = 0; i < n; i++) {
		struct rows rows;
		if (tracks[i].kind != TRACK_EPOCH || tracks[i].entity != s->entity ||
		    read_rows(f, &tracks[i], &rows, e))
			continue;
		double *durs = malloc((rows.n ? rows.n : 1) * sizeof(*durs));
		size_t k = 0;
		for (size_t j = 0; durs && j < rows.n; j++)
			if (column(&rows, j, EPOCH_PHASE) != 1)
				durs[k++] = NS(column(&rows, j, EV_DUR));
		s->epochs = (double)k;
		s->epoch_s = durs ? stat_median(durs, k) : NAN;
		free(rows.v);
		if (!durs)
			return -ENOMEM;
		free(durs);
	}
	return 0;
}

int facts_load_steps(struct run_facts *f, struct err *e)
{
	struct facts_steps *s = &f->steps;
	*s = (struct facts_steps){
		.p50_s = NAN,
		.p95_s = NAN,
		.p99_s = NAN,
		.max_s = NAN,
		.total_s = NAN,
		.per_s = NAN,
		.samples_per_s = NAN,
		.batch = NAN,
		.wait_share = NAN,
		.wait_p50_s = NAN,
		.wait_p95_s = NAN,
		.eval_p50_s = NAN,
		.eval_total_s = NAN,
		.epochs = NAN,
		.epoch_s = NAN,
	};
	const struct rec_track_info *tracks;
	size_t n = rec_tracks(f->r, &tracks);
	int rc = load_step_tracks(f, tracks, n, e);
	if (!rc)
		rc = load_pause_tracks(f, tracks, n, TRACK_CHECKPOINT, &f->checkpoints, e);
	if (!rc)
		rc = load_pause_tracks(f, tracks, n, TRACK_GC, &f->gc, e);
	if (!rc)
		rc = load_epochs(f, tracks, n, e);
	if (rc == -ENOMEM)
		err_set(e, ENOMEM, "out of memory while reading the steps of the recording");
	return rc;
}
