/*
 * Found when some steps take much longer than the usual one, for a reason that is not a checkpoint or a
 * collection (their time is taken off first). Says what the slow ones have in common: late
 * input, larger batches, a regular distance.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

struct spread {
	double usual_s;  /* median of what steps take without their pauses */
	double excess_s; /* that slow steps take above it, summed */
	double waits_s;  /* of it: waiting for input */
	double total_s;
	double batch_slow; /* mean batch of the slow over that of the others; NaN not known */
	double distance;   /* steps between slow ones if that is regular, else NaN */
	double slowest_s;
	size_t slow, n;
};

/* NaN where the duration is not known. */
static double own_s(const struct fact_step *s)
{
	if (isnan(s->dur_s))
		return NAN;
	return fmax(0, s->dur_s - s->checkpoint_s - s->gc_s);
}

static double wait_s(const struct fact_step *s)
{
	return isnan(s->wait_s) ? 0 : s->wait_s;
}

/* The usual distance between slow steps, if three of four are within a fifth of it. */
static double regular_distance(const size_t *at, size_t n, double *scratch)
{
	if (n < 4)
		return NAN;
	for (size_t i = 1; i < n; i++)
		scratch[i - 1] = (double)(at[i] - at[i - 1]);
	double median = stat_median(scratch, n - 1);
	size_t near = 0;
	for (size_t i = 0; i < n - 1; i++)
		near += fabs(scratch[i] - median) <= fmax(0.2 * median, 0);
	return median >= 2 && 4 * near >= 3 * (n - 1) ? median : NAN;
}

static void measure(const struct fact_step *v, size_t n, double *scratch, size_t *at,
		    struct spread *ret)
{
	struct spread s = { .n = n, .batch_slow = NAN };
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i].dur_s))
			scratch[k++] = own_s(&v[i]);
	s.usual_s = stat_median(scratch, k);
	for (size_t i = 0; i < n; i++)
		scratch[i] = wait_s(&v[i]);
	double usual_wait = stat_median(scratch, n);
	double batch[2] = { 0, 0 }, count[2] = { 0, 0 };
	for (size_t i = 0; i < n; i++) {
		double own = own_s(&v[i]);
		bool slow = own > threshold(TH_UNEVEN_FACTOR) * s.usual_s;
		s.total_s += isnan(own) ? 0 : v[i].dur_s;
		if (v[i].batch != FACT_NONE) {
			batch[slow] += (double)v[i].batch;
			count[slow]++;
		}
		if (!slow)
			continue;
		at[s.slow++] = i;
		s.excess_s += own - s.usual_s;
		s.waits_s += fmin(fmax(0, wait_s(&v[i]) - usual_wait), own - s.usual_s);
		s.slowest_s = fmax(s.slowest_s, own);
	}
	if (count[0] > 0 && count[1] > 0 && batch[0] > 0)
		s.batch_slow = batch[1] / count[1] / (batch[0] / count[0]);
	s.distance = regular_distance(at, s.slow, scratch);
	*ret = s;
}

static void describe(const struct spread *s, struct finding *ret)
{
	char every[80] = "";
	if (!isnan(s->distance))
		snprintf(every, sizeof(every), ", about every %s steps",
			 say(s->distance, "count").s);
	finding_title(ret, "steps: some take much longer than others");
	finding_text(
		ret,
		"%s of %s steps%s take up to %s, the usual one %s. What they take above it is %s "
		"of the step time; checkpoints and collections are not counted in it.",
		say((double)s->slow, "count").s, say((double)s->n, "count").s, every,
		say(s->slowest_s, "s").s, say(s->usual_s, "s").s,
		say(s->excess_s / s->total_s, "ratio").s);
	if (s->waits_s >= 0.5 * s->excess_s)
		finding_advice(ret,
			       "The slow steps wait for their input: some samples take longer to "
			       "load. More loader workers or a larger prefetch_factor even that "
			       "out.");
	else if (s->batch_slow >= 1.2)
		finding_advice(
			ret,
			"The slow steps have batches %s times as large: bring batches to one "
			"size (sort or bucket samples by length).",
			say(s->batch_slow, "cores").s);
	else
		finding_advice(ret,
			       "Look at what else the slow steps do%s: inputs of another length "
			       "(bucket them), logging, metrics, an evaluation or a clean-up. "
			       "`spotter report --step N` shows one.",
			       isnan(s->distance) ? ""
						  : " (the regular distance points at a counter "
						    "in the script)");
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	size_t n = f->steps.n - f->steps.warmup;
	if ((double)f->steps.n < threshold(TH_STEPS_ENOUGH))
		return false;
	double *scratch = malloc(n * sizeof(*scratch));
	size_t *at = malloc(n * sizeof(*at));
	struct spread s = { .n = 0 };
	if (scratch && at)
		measure(f->steps.v + f->steps.warmup, n, scratch, at, &s);
	free(scratch);
	free(at);
	double share = s.total_s > 0 ? s.excess_s / s.total_s : 0;
	if (s.slow < 2 || share < threshold(TH_UNEVEN_NOTE))
		return false;
	const char *source = rec_get(f->r, "steps_source");
	ret->severity = share >= threshold(TH_UNEVEN_LIMIT) ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = CONFIDENCE_SURE;
	ret->loss = share;
	ret->gain = 1 / (1 - fmin(share, 0.99));
	describe(&s, ret);
	finding_evidence(ret, "above the usual step, of step time", share, "ratio", source);
	finding_evidence(ret, "slow steps", (double)s.slow, "count", source);
	finding_evidence(ret, "usual step", s.usual_s, "s", source);
	finding_evidence(ret, "step p95", f->steps.p95_s, "s", source);
	finding_evidence(ret, "step p99", f->steps.p99_s, "s", source);
	if (s.excess_s > 0)
		finding_evidence(ret, "of it waiting for input", s.waits_s / s.excess_s, "ratio",
				 source);
	finding_evidence(ret, "steps between slow ones", s.distance, "count", source);
	return true;
}

const struct analysis analysis_uneven_steps = {
	.id = "uneven-steps",
	.help = "some steps take much longer than the usual one",
	.find = find,
};
