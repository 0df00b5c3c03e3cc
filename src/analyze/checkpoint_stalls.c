/* Found when writing checkpoints stops training for a share of the time that is worth winning back. */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_pauses *c = &f->checkpoints;
	if (c->n <= 0 || !(c->share >= threshold(TH_PAUSE_NOTE)))
		return false;
	size_t steps = f->steps.n;
	double every = steps ? (double)steps / (double)c->n : NAN;
	ret->severity = c->share >= threshold(TH_PAUSE_LIMIT) ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = CONFIDENCE_SURE;
	ret->loss = c->share;
	ret->gain = 1 / (1 - fmin(c->share, 0.99));
	finding_title(ret, "checkpoints: training stops while they are written");
	if (steps)
		finding_text(
			ret,
			"A checkpoint about every %s steps stops training for %s each: %s of the "
			"time.",
			say(fmax(every, 1), "count").s, say(c->median_s, "s").s,
			say(c->share, "ratio").s);
	else
		finding_text(ret, "%s checkpoints stop training for %s each: %s of the time.",
			     say((double)c->n, "count").s, say(c->median_s, "s").s,
			     say(c->share, "ratio").s);
	const char *source = rec_get(f->r, "steps_source");
	finding_evidence(ret, "in checkpoints, of training", c->share, "ratio", source);
	finding_evidence(ret, "checkpoints", (double)c->n, "count", source);
	finding_evidence(ret, "one takes, median", c->median_s, "s", source);
	finding_evidence(ret, "the longest", c->max_s, "s", source);
	if (c->bytes > 0)
		finding_evidence(ret, "size of one", c->bytes / (double)c->n, "bytes", source);
	finding_advice(ret,
		       "Write them less often, or in the background: copy the state to memory "
		       "and let a thread save it while training goes on, to a fast local disk.");
	return true;
}

const struct analysis analysis_checkpoint_stalls = {
	.id = "checkpoint-stalls",
	.help = "writing checkpoints stops training for a notable share of the time",
	.find = find,
};
