/*
 * Facts about steps and epochs: what the training process says about itself. Several processes may train
 * (ranks): the one with the most steps leads, the others count for samples per second. Checkpoints and
 * the collector are in facts_pauses.c.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/events.h"
#include "analyze/facts.h"

static bool is_training(const int64_t *row)
{
	return row[STEP_PHASE] != 1;
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
		if (v[i].batch != FACT_NONE)
			scratch[k++] = v[i].batch;
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

struct count {
	size_t training, evaluation;
};

static void count_row(void *arg, const int64_t *row)
{
	struct count *c = arg;
	if (is_training(row))
		c->training++;
	else
		c->evaluation++;
}

/* Room for as many steps as were counted; a recording that grows may have more by now. */
struct filling {
	struct facts_steps *s;
	size_t room;
	double *eval;
	size_t n_eval, eval_room;
};

static int32_t narrow(int64_t v)
{
	return v >= 0 && v <= INT32_MAX ? (int32_t)v : FACT_NONE;
}

static void take_row(void *arg, const int64_t *row)
{
	struct filling *f = arg;
	int64_t wait = row[STEP_INPUT_WAIT], dur = row[EV_DUR];
	if (!is_training(row)) {
		if (f->n_eval < f->eval_room)
			f->eval[f->n_eval++] = events_seconds(dur);
		return;
	}
	if (f->s->n == f->room)
		return;
	f->s->v[f->s->n++] = (struct fact_step){
		.t0_ns = (uint64_t)row[EV_T],
		.t1_ns = events_end(row),
		.index = row[STEP_INDEX],
		.epoch = narrow(row[STEP_EPOCH]),
		.batch = narrow(row[STEP_BATCH]),
		.dur_s = dur > 0 ? events_seconds(dur) : NAN, /* 0: its begin is not known */
		.wait_s = wait == REC_NONE ? NAN : (float)events_seconds(wait),
	};
}

static void set_window(struct run_facts *f)
{
	struct facts_steps *s = &f->steps;
	s->warmup = warmup_of(s->n);
	f->w0 = f->w1 = s->v[s->warmup].t0_ns;
	for (size_t i = s->warmup; i < s->n; i++)
		if (s->v[i].t1_ns > f->w1)
			f->w1 = s->v[i].t1_ns;
	double window = events_seconds((int64_t)(f->w1 - f->w0));
	if (window > 0)
		s->per_s = (double)(s->n - s->warmup) / window;
}

static int load_leader(struct run_facts *f, const struct rec_track_info *track,
		       const struct count *count, struct err *e)
{
	struct facts_steps *s = &f->steps;
	struct filling filling = { .s = s,
				   .room = count->training,
				   .eval_room = count->evaluation };
	s->entity = track->entity;
	s->v = calloc(count->training + 1, sizeof(*s->v));
	filling.eval = calloc(count->evaluation + 1, sizeof(*filling.eval));
	int rc = s->v && filling.eval ? 0 : -ENOMEM;
	if (!rc)
		rc = events_each(f->r, track, take_row, &filling, e);
	if (!rc && filling.n_eval) {
		s->eval_n = (int64_t)filling.n_eval;
		s->eval_total_s = stat_sum(filling.eval, filling.n_eval);
		s->eval_p50_s = stat_median(filling.eval, filling.n_eval);
	}
	free(filling.eval);
	if (rc || !s->n)
		return rc;
	set_window(f);
	return summarise(s);
}

struct samples {
	uint64_t from, to;
	double n; /* NaN: no batch size is known */
};

static void sum_row(void *arg, const int64_t *row)
{
	struct samples *s = arg;
	uint64_t t = (uint64_t)row[EV_T];
	if (is_training(row) && row[STEP_BATCH] != REC_NONE && t >= s->from && t < s->to)
		s->n = (isnan(s->n) ? 0 : s->n) + (double)row[STEP_BATCH];
}

/* The track with the most training steps (if none has any, with the most steps); NULL if there is none. */
static const struct rec_track_info *
find_leader(struct run_facts *f, const struct rec_track_info *tracks, size_t n, struct count *ret)
{
	const struct rec_track_info *leader = NULL;
	for (size_t i = 0; i < n; i++) {
		struct count c = { 0, 0 };
		if (tracks[i].kind != TRACK_STEP ||
		    events_each(f->r, &tracks[i], count_row, &c, NULL))
			continue;
		f->steps.processes += c.training > 0;
		if (leader && (c.training < ret->training ||
			       (c.training == ret->training && c.evaluation <= ret->evaluation)))
			continue;
		if (c.training + c.evaluation) {
			leader = &tracks[i];
			*ret = c;
		}
	}
	return leader;
}

static int load_steps(struct run_facts *f, const struct rec_track_info *tracks, size_t n,
		      struct err *e)
{
	struct facts_steps *s = &f->steps;
	struct count count = { 0, 0 };
	const struct rec_track_info *leader = find_leader(f, tracks, n, &count);
	int rc = leader ? load_leader(f, leader, &count, e) : 0;
	if (rc || !s->n)
		return rc;
	struct samples samples = { f->w0, f->w1, NAN };
	for (size_t i = 0; i < n && !rc; i++)
		if (tracks[i].kind == TRACK_STEP)
			rc = events_each(f->r, &tracks[i], sum_row, &samples, e);
	double window = events_seconds((int64_t)(f->w1 - f->w0));
	s->samples_per_s = window > 0 ? samples.n / window : NAN;
	return rc;
}

/* Durations of training epochs. */
struct epochs {
	double *v;
	size_t n, room;
	bool failed;
};

static void epoch_row(void *arg, const int64_t *row)
{
	struct epochs *x = arg;
	if (row[EPOCH_PHASE] == 1 || x->failed)
		return;
	if (x->n == x->room) {
		size_t room = x->room ? 2 * x->room : 64;
		double *v = realloc(x->v, room * sizeof(*v));
		x->failed = !v;
		if (!v)
			return;
		x->v = v;
		x->room = room;
	}
	x->v[x->n++] = events_seconds(row[EV_DUR]);
}

static int load_epochs(struct run_facts *f, const struct rec_track_info *tracks, size_t n,
		       struct err *e)
{
	struct facts_steps *s = &f->steps;
	struct epochs x = { 0 };
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++)
		if (tracks[i].kind == TRACK_EPOCH && tracks[i].entity == s->entity)
			rc = events_each(f->r, &tracks[i], epoch_row, &x, e);
	if (x.n) {
		s->epochs = (double)x.n;
		s->epoch_s = stat_median(x.v, x.n);
	}
	free(x.v);
	return x.failed ? -ENOMEM : rc;
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
	int rc = load_steps(f, tracks, n, e);
	if (!rc)
		rc = load_epochs(f, tracks, n, e);
	if (rc == -ENOMEM)
		err_set(e, ENOMEM, "out of memory while reading the steps of the recording");
	return rc;
}
