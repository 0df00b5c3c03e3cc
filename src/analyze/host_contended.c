/* Found when other processes of the host take the cores that the job is ready to use. */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	const struct facts_cpu *c = &f->cpu;
	if (f->ticks < threshold(TH_TICKS_ENOUGH) || findings_get(so_far, "cpu-oversubscribed"))
		return false;
	bool stolen = c->steal >= threshold(TH_OTHERS_NOTE) * c->host_cores;
	/* Of the ready time; a job that mostly sleeps does not lose more than what it waited. */
	double lost = fmin(c->run_delay_share, c->run_delay_share * c->demand);
	bool others = c->others >= threshold(TH_OTHERS_NOTE) * c->cores_allowed &&
		      lost >= threshold(TH_DELAY_NOTE);
	if (!others && !stolen)
		return false;
	bool limits = others && lost >= threshold(TH_OTHERS_LIMIT);
	ret->severity = limits ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = CONFIDENCE_LIKELY;
	ret->loss = others ? lost : c->steal / c->host_cores;
	if (others) {
		finding_title(ret, "host: other processes use the cores");
		finding_text(
			ret,
			"Others on this host use %s of its %s cores; the job's threads wait for "
			"a core %s of the time that they are ready to run.",
			say(c->others, "cores").s, say(c->host_cores, "cores").s,
			say(c->run_delay_share, "ratio").s);
		finding_advice(ret, "Run on a quieter host, or give the job cores of its own "
				    "(Slurm --exclusive, taskset, a cpuset).");
	} else {
		finding_title(ret, "host: the hypervisor takes CPU time away");
		finding_text(ret, "Other guests of the machine took %s cores from this one.",
			     say(c->steal, "cores").s);
		finding_advice(ret, "Ask for dedicated cores, or move the guest.");
	}
	finding_evidence(ret, "cores used by others", c->others, "cores", "/proc/stat");
	finding_evidence(ret, "waiting for a core, of ready time", c->run_delay_share, "ratio",
			 "/proc/PID/schedstat");
	finding_evidence(ret, "tasks ready to run on the host", c->runnable, "count", "/proc/stat");
	finding_evidence(ret, "cores stolen", c->steal, "cores", "/proc/stat");
	return true;
}

const struct analysis analysis_host_contended = {
	.id = "host-contended",
	.help = "other processes of the host take the cores the job is ready to use",
	.find = find,
};
