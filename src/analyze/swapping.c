/* Found when memory goes to swap and back while training. */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_memory *m = &f->memory;
	double traffic = m->swap_in + m->swap_out;
	bool stalls = m->pressure_some >= threshold(TH_SWAP_PRESSURE);
	bool faults = f->io.faults_major_per_s >= threshold(TH_IO_FAULTS);
	bool ours = m->job_swapped_max > 0;
	/* Others may swap; it is ours if we are in swap, fault, or stall. */
	if (!(traffic >= threshold(TH_SWAP_RATE)) || !(stalls || faults || ours))
		return false;
	bool limits =
		(isnan(m->pressure_some) && faults) || m->pressure_some >= threshold(TH_SWAP_LIMIT);
	ret->severity = limits ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = ours || faults ? CONFIDENCE_SURE : CONFIDENCE_LIKELY;
	ret->loss = m->pressure_some;
	finding_title(ret, "memory: the job is swapping");
	finding_text(ret,
		     "Memory does not suffice: %s go to swap and %s come back while training%s%s.",
		     say(m->swap_out, "bytes/s").s, say(m->swap_in, "bytes/s").s,
		     stalls ? ", tasks stall for it " : "",
		     stalls ? say(m->pressure_some, "ratio").s : "");
	finding_evidence(ret, "read back from swap", m->swap_in, "bytes/s", "/proc/vmstat");
	finding_evidence(ret, "written to swap", m->swap_out, "bytes/s", "/proc/vmstat");
	finding_evidence(ret, "stalled for memory", m->pressure_some, "ratio",
			 "/proc/pressure/memory");
	finding_evidence(ret, "of the job in swap, at most", m->job_swapped_max, "bytes",
			 "memory.swapped");
	finding_evidence(ret, "major faults", f->io.faults_major_per_s, "per_s", "/proc/PID/stat");
	finding_evidence(ret, "swap in use, at most", m->swap_used_max, "bytes", "/proc/meminfo");
	finding_advice(ret,
		       "Use less memory (smaller batch, fewer loader workers, mapped instead of "
		       "loaded data), or run where there is more. More swap does not help.");
	return true;
}

const struct analysis analysis_swapping = {
	.id = "swapping",
	.help = "memory goes to swap and back while training",
	.find = find,
};
