/*
 * Found when the job itself has more tasks ready to run than it has cores (or quota): they take turns, and
 * parallel regions wait for the thread that waits. That the rest of the host takes the cores is another
 * finding (host_contended.c).
 */
#include <math.h>
#include <stdio.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static void advise(const struct run_facts *f, struct finding *ret)
{
	const struct facts_cpu *c = &f->cpu;
	int ranks = f->steps.processes > 1 ? f->steps.processes : 1;
	double each = fmax(1, floor(c->cores_allowed / ranks));
	const char *omp = rec_get(f->r, "env.OMP_NUM_THREADS");
	char now[80] = "";
	if (omp)
		snprintf(now, sizeof(now), " (it is %.16s now)", omp);
	finding_advice(ret,
		       "Use no more threads than cores: OMP_NUM_THREADS=%.0f%s or "
		       "torch.set_num_threads(%.0f)%s, and count loader workers as threads too.",
		       each, now, each, ranks > 1 ? " in each process" : "");
}

static bool throttled(const struct run_facts *f, struct finding *ret)
{
	const struct facts_cpu *c = &f->cpu;
	if (!(c->throttled_share >= threshold(TH_THROTTLED_LIMIT)))
		return false;
	ret->severity = SEVERITY_LIMIT;
	ret->confidence = CONFIDENCE_SURE;
	ret->loss = fmin(c->throttled_share, 1);
	finding_title(ret, "CPU: the quota stops the job again and again");
	finding_text(ret,
		     "The cgroup's CPU quota of %s cores held the job back for %s of the time.",
		     say(c->cores_allowed, "cores").s, say(fmin(c->throttled_share, 1), "ratio").s);
	finding_evidence(ret, "held back by the quota", fmin(c->throttled_share, 1), "ratio",
			 "cgroup cpu.stat");
	finding_evidence(ret, "cores allowed", c->cores_allowed, "cores", "cgroup quota");
	advise(f, ret);
	return true;
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_cpu *c = &f->cpu;
	if (f->ticks < threshold(TH_TICKS_ENOUGH))
		return false;
	if (throttled(f, ret))
		return true;
	double crowd = c->demand / c->cores_allowed;
	if (!(crowd >= threshold(TH_DEMAND_LIMIT)) ||
	    !(c->run_delay_share >= threshold(TH_DELAY_LIMIT)))
		return false;
	ret->severity = SEVERITY_LIMIT;
	ret->confidence = CONFIDENCE_SURE;
	/* What the tasks lose to taking turns; they could at best all run. */
	ret->loss = fmin(1 - 1 / crowd, c->run_delay_share);
	finding_title(ret, "CPU: more busy threads than cores");
	finding_text(
		ret,
		"On average %s threads of the job want to run at once on %s %s: %s of the time "
		"that they are ready they wait for a core.",
		say(c->demand, "cores").s, say(c->cores_allowed, "cores").s,
		c->cores_allowed > 1 ? "cores" : "core", say(c->run_delay_share, "ratio").s);
	finding_evidence(ret, "threads ready to run", c->demand, "cores", "/proc/PID/schedstat");
	finding_evidence(ret, "cores allowed", c->cores_allowed, "cores", "affinity and quota");
	finding_evidence(ret, "waiting for a core, of ready time", c->run_delay_share, "ratio",
			 "/proc/PID/schedstat");
	finding_evidence(ret, "compute threads of PyTorch",
			 facts_number(f->r, "fact.torch.threads"), "count", "step hook");
	finding_evidence(ret, "threads of the job, at most", c->threads_max, "count", "/proc");
	finding_evidence(ret, "cores used by others", c->others, "cores", "/proc/stat");
	advise(f, ret);
	return true;
}

const struct analysis analysis_cpu_oversubscribed = {
	.id = "cpu-oversubscribed",
	.help = "the job has more threads ready to run than cores allowed",
	.find = find,
};
