/* Found when steps wait for their data: the loader makes batches slower than the model takes them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

/* What more workers could do, from how long a batch takes to make and how long a step computes. */
struct plan {
	double workers; /* to ask for; NaN: more would not help */
	double step_s;  /* expected then */
	double idle;    /* cores that nobody uses; NaN not known */
};

static struct plan plan_workers(const struct run_facts *f)
{
	const struct facts_steps *s = &f->steps;
	double step = s->total_s / (double)s->timed;
	double compute = step * (1 - s->wait_share), now = f->workers;
	double others = isnan(f->cpu.others) ? 0 : f->cpu.others;
	struct plan p = { NAN, NAN, f->cpu.cores_allowed - f->cpu.cores_training - others };
	if (isnan(now) || !(compute > 0))
		return p;
	/* In the main process a batch takes the wait; W workers make one each step between them. */
	double batch = now > 0 ? now * step : step * s->wait_share;
	double want = ceil(batch / compute);
	double room = isnan(p.idle) ? want : now + fmax(floor(p.idle + 0.3), 0);
	if (want > room)
		want = room;
	double expect = fmax(compute, batch / want);
	if (want <= now || want < 1 || expect > 0.95 * step)
		return p;
	p.workers = want;
	p.step_s = expect;
	return p;
}

static void advise(const struct run_facts *f, const struct plan *p, struct finding *ret)
{
	const struct facts_steps *s = &f->steps;
	double step = s->total_s / (double)s->timed;
	if (!isnan(p->workers)) {
		ret->gain = step / p->step_s;
		char idle[128] = "";
		if (!isnan(p->idle))
			snprintf(idle, sizeof(idle), " (%s of %s cores are idle)",
				 say(fmax(p->idle, 0), "cores").s,
				 say(f->cpu.cores_allowed, "cores").s);
		finding_advice(
			ret,
			"DataLoader(num_workers=%.0f)%s: expect steps of about %s, %s times "
			"faster. Or make a sample cheaper: cache decoded data, move transforms "
			"out of the data set.",
			p->workers, idle, say(p->step_s, "s").s, say(ret->gain, "cores").s);
		return;
	}
	ret->gain = 1 / (1 - fmin(s->wait_share, 0.99));
	char why[96] = "Loader workers would not help, no core is idle for them";
	if (f->workers > 0)
		snprintf(why, sizeof(why),
			 "More loader workers than %.0f would not help, no core is idle",
			 f->workers);
	if (isnan(f->workers))
		finding_advice(
			ret,
			"Load the next batch while this one trains (with PyTorch: "
			"DataLoader(num_workers=...)), or make a sample cheaper to load. Steps "
			"without the wait would be %s times faster.",
			say(ret->gain, "cores").s);
	else
		finding_advice(
			ret,
			"%s: make a sample cheaper (cache decoded data, smaller images, faster "
			"transforms). Steps without the wait would be %s times faster.",
			why, say(ret->gain, "cores").s);
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_steps *s = &f->steps;
	if (s->timed < 2 || !(s->wait_share >= threshold(TH_INPUT_NOTE)))
		return false;
	bool enough = (double)s->timed >= threshold(TH_STEPS_ENOUGH);
	bool limits = s->wait_share >= threshold(TH_INPUT_LIMIT);
	const char *source = rec_get(f->r, "steps_source");
	ret->severity = limits ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = enough ? CONFIDENCE_SURE : CONFIDENCE_LIKELY;
	ret->loss = s->wait_share;
	finding_title(ret, "input: each step waits for its data");
	double mean = s->total_s / (double)s->timed;
	const char *where = "";
	if (f->workers == 0)
		where = " The data is loaded in the training process itself (no loader workers), "
			"so "
			"nothing is computed meanwhile.";
	finding_text(ret,
		     "%s of a step (%s of %s on average) is spent waiting for the next batch.%s",
		     say(s->wait_share, "ratio").s, say(s->wait_share * mean, "s").s,
		     say(mean, "s").s, where);
	finding_evidence(ret, "input wait of step time", s->wait_share, "ratio", source);
	finding_evidence(ret, "input wait p50", s->wait_p50_s, "s", source);
	finding_evidence(ret, "input wait p95", s->wait_p95_s, "s", source);
	finding_evidence(ret, "loader workers", f->workers, "count", source);
	struct plan p = plan_workers(f);
	if (p.idle > 0)
		finding_evidence(ret, "cores idle", p.idle, "cores", "/proc/stat");
	advise(f, &p, ret);
	return true;
}

const struct analysis analysis_input_bound = {
	.id = "input-bound",
	.help = "steps spend much of their time waiting for the next batch",
	.find = find,
};
