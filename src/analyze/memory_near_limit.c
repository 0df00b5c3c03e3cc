/* Found when the job's memory came close to what it may use, or it was killed for it. */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_memory *m = &f->memory;
	double share = m->peak_used / m->limit;
	double left = m->host_available_min / m->host_total;
	bool host_full = left <= threshold(TH_HOST_AVAILABLE);
	if (!(share >= threshold(TH_MEMORY_NEAR)) && !host_full && !f->run.out_of_memory)
		return false;
	bool at = f->run.out_of_memory || share >= threshold(TH_MEMORY_AT);
	ret->severity = at ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = CONFIDENCE_SURE;
	if (f->run.out_of_memory) {
		ret->loss = 1; /* it ended the run */
		finding_title(ret, "memory: the kernel killed the job, it was out of memory");
		finding_text(ret, "The job reached %s; it may use %s%s.",
			     say(m->peak_used, "bytes").s, say(m->limit, "bytes").s,
			     m->limit_is_host ? " (all of the host)" : "");
	} else if (share >= threshold(TH_MEMORY_NEAR)) {
		finding_title(ret, "memory: close to its limit");
		finding_text(ret,
			     "The job reached %s of the %s it may use (%s). A little more and the "
			     "kernel ends it.",
			     say(m->peak_used, "bytes").s, say(m->limit, "bytes").s,
			     say(share, "ratio").s);
	} else {
		finding_title(ret, "memory: the host has hardly any left");
		finding_text(ret,
			     "Only %s of the host's %s were left; the job itself reached %s. The "
			     "kernel may end any process for it.",
			     say(m->host_available_min, "bytes").s, say(m->host_total, "bytes").s,
			     say(m->peak_used, "bytes").s);
	}
	finding_evidence(ret, "peak memory, shared pages once", m->peak_used, "bytes",
			 "memory.rss, memory.pss, cgroup");
	finding_evidence(ret, "limit", m->limit, "bytes",
			 m->limit_is_host ? "/proc/meminfo" : "cgroup");
	finding_evidence(ret, "peak of the limit", share, "ratio", "peak over limit");
	if (m->limit_is_host || host_full)
		finding_evidence(ret, "least left on the host", m->host_available_min, "bytes",
				 "/proc/meminfo");
	finding_advice(ret,
		       "Ask for more memory, or use less: a smaller batch, fewer loader workers "
		       "(each has its own copy of what it touches), data mapped from a file "
		       "instead of loaded.");
	return true;
}

const struct analysis analysis_memory_near_limit = {
	.id = "memory-near-limit",
	.help = "peak memory came close to the limit, or the job was killed for it",
	.find = find,
};
