/* Found when the interpreter's garbage collector stops training for a notable share of the time. */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_pauses *g = &f->gc;
	if (g->n <= 0 || !(g->share >= threshold(TH_PAUSE_NOTE)))
		return false;
	ret->severity = g->share >= threshold(TH_PAUSE_LIMIT) ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = CONFIDENCE_SURE;
	ret->loss = g->share;
	ret->gain = 1 / (1 - fmin(g->share, 0.99));
	finding_title(ret, "Python: the garbage collector stops training");
	finding_text(ret, "%s collections of up to %s stop training for %s of the time.",
		     say((double)g->n, "count").s, say(g->max_s, "s").s, say(g->share, "ratio").s);
	const char *source = rec_get(f->r, "steps_source");
	finding_evidence(ret, "in collections, of training", g->share, "ratio", source);
	finding_evidence(ret, "collections", (double)g->n, "count", source);
	finding_evidence(ret, "one takes, median", g->median_s, "s", source);
	finding_evidence(ret, "the longest", g->max_s, "s", source);
	finding_advice(ret, "Keep fewer objects alive (arrays instead of lists of tuples), call "
			    "gc.freeze() after set-up, and gc.disable() with one gc.collect() per "
			    "epoch if memory allows.");
	return true;
}

const struct analysis analysis_gc_pauses = {
	.id = "gc-pauses",
	.help = "the garbage collector stops training for a notable share of the time",
	.find = find,
};
