/*
 * Found when nothing else is, and enough was seen to say so. When too little was seen it says what is missing
 * instead (the finding is then called too-little-evidence).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

/* What others do on the host is said before, but is not the run's fault. */
static bool anything_wrong(const struct findings *so_far)
{
	for (size_t i = 0; i < so_far->n; i++)
		if (so_far->v[i].severity >= SEVERITY_WARNING &&
		    strcmp(so_far->v[i].id, "host-contended"))
			return true;
	return false;
}

static void add_missing(char *into, size_t cap, const char *what)
{
	size_t len = strlen(into);
	snprintf(into + len, cap - len, "%s%s", len ? "; " : "", what);
}

/* Steps pass, but neither CPU nor GPU works for them: they wait for something that is not seen. */
static bool nobody_computes(const struct run_facts *f)
{
	double busiest = f->cpu.demand;
	for (size_t i = 0; i < f->n_gpus; i++)
		if (f->gpus[i].utilization > busiest)
			busiest = f->gpus[i].utilization;
	return busiest < threshold(TH_BUSY_ENOUGH);
}

/* What would have to be known; empty: enough is. */
static void missing(const struct run_facts *f, char *into, size_t cap)
{
	into[0] = 0;
	if (!f->steps.n)
		add_missing(into, cap, "no steps are known");
	else if ((double)f->steps.timed < threshold(TH_STEPS_ENOUGH))
		add_missing(into, cap, "the run had too few steps");
	if (f->ticks < threshold(TH_TICKS_ENOUGH))
		add_missing(into, cap, "training was sampled too few times");
	if (f->steps.n && nobody_computes(f))
		add_missing(into, cap,
			    "neither CPU nor GPU is busy, the steps wait for something "
			    "that was not seen (network, another process, a pause)");
	if (isnan(f->cpu.cores_training))
		add_missing(into, cap, "the job's CPU time is not known");
	if (f->run.damaged)
		add_missing(into, cap, "parts of the recording are damaged");
}

static void say_too_little(const struct run_facts *f, const char *why, struct finding *ret)
{
	ret->id = "too-little-evidence";
	ret->severity = SEVERITY_INFO;
	ret->confidence = CONFIDENCE_SURE;
	finding_title(ret, "nothing found, but too little was seen");
	finding_text(ret, "Nothing was found that limits this run, but that says little: %s.", why);
	if (!f->steps.n)
		finding_advice(ret,
			       "Let spotter know the steps: --steps-from 'REGEX' reads them from "
			       "the output, spotter/mark.h marks them in the code.");
	else if (f->run.interval_s > 0.05)
		finding_advice(ret, "Run longer, or sample more often (--interval 100ms).");
	finding_evidence(ret, "training steps", (double)f->steps.n, "count",
			 rec_get(f->r, "steps_source"));
	finding_evidence(ret, "samples of the job while training", f->ticks, "count", "recorder");
}

static void say_healthy(const struct run_facts *f, const struct findings *so_far,
			struct finding *ret)
{
	const struct facts_cpu *c = &f->cpu;
	double wait = f->steps.wait_share;
	char input[160] = "", cores[160] = "";
	if (!isnan(wait))
		snprintf(input, sizeof(input), " It waits for input %s of the time",
			 say(wait, "ratio").s);
	if (!isnan(c->cores_training) && !isnan(c->cores_allowed))
		snprintf(cores, sizeof(cores), "%s uses %s of %s cores", *input ? " and" : " It",
			 say(c->cores_training, "cores").s, say(c->cores_allowed, "cores").s);
	ret->severity = SEVERITY_OK;
	ret->confidence = isnan(wait) ? CONFIDENCE_LIKELY : CONFIDENCE_SURE;
	finding_title(ret, findings_get(so_far, "host-contended")
				   ? "nothing in the run itself: it is healthy"
				   : "nothing: the run is healthy");
	finding_text(ret, "Steps are even and spend their time computing.%s%s.", input,
		     *input || *cores ? cores : " Nothing else was found");
	const char *source = rec_get(f->r, "steps_source");
	finding_evidence(ret, "input wait of step time", wait, "ratio", source);
	finding_evidence(ret, "step p50", f->steps.p50_s, "s", source);
	finding_evidence(ret, "step p99", f->steps.p99_s, "s", source);
	finding_evidence(ret, "waiting for a core, of ready time", c->run_delay_share, "ratio",
			 "/proc/PID/schedstat");
	finding_evidence(ret, "cores used", c->cores_training, "cores", "/proc/PID/stat");
	finding_evidence(ret, "memory peak of its limit", f->memory.peak_used / f->memory.limit,
			 "ratio", "memory.rss");
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	char why[256];
	if (anything_wrong(so_far))
		return false;
	missing(f, why, sizeof(why));
	if (*why)
		say_too_little(f, why, ret);
	else
		say_healthy(f, so_far, ret);
	return true;
}

const struct analysis analysis_healthy = {
	.id = "healthy",
	.help = "nothing else was found, and enough was seen to say so",
	.find = find,
};
