/* Found when memory goes to swap and back while training. */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

/*
 * Time it costs: stalls as the kernel counts them, which leave out what a fault itself takes; or the job's major
 * faults at what one costs on a fast disk.
 */
static double cost(const struct run_facts *f)
{
	double faults = f->io.faults_major_per_s * threshold(TH_FAULT_S);
	double stalls = f->memory.pressure_some;
	if (isnan(stalls) || faults > stalls)
		stalls = faults;
	return stalls > 1 ? 1 : stalls;
}

/* Others may swap; it is ours if we are in swap or fault for it, or nobody can tell and tasks stall. */
static bool is_ours(const struct run_facts *f)
{
	const struct facts_memory *m = &f->memory;
	if (m->job_swapped_max > 0 || f->io.faults_major_per_s >= threshold(TH_IO_FAULTS))
		return true;
	bool unknown = isnan(m->job_swapped_max) && isnan(f->io.faults_major_per_s);
	return unknown && m->pressure_some >= threshold(TH_SWAP_PRESSURE);
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_memory *m = &f->memory;
	double traffic = m->swap_in + m->swap_out;
	bool stalls = m->pressure_some >= threshold(TH_SWAP_PRESSURE);
	if (!(traffic >= threshold(TH_SWAP_RATE)) || !is_ours(f))
		return false;
	bool limits = cost(f) >= threshold(TH_SWAP_LIMIT);
	ret->severity = limits ? SEVERITY_LIMIT : SEVERITY_WARNING;
	ret->confidence = m->job_swapped_max > 0 ? CONFIDENCE_SURE : CONFIDENCE_LIKELY;
	ret->loss = cost(f);
	finding_title(ret, "memory: the job is swapping");
	finding_text(
		ret,
		"Memory does not suffice: %s go to swap and %s come back while training%s%s%s.",
		say(m->swap_out, "bytes/s").s, say(m->swap_in, "bytes/s").s,
		stalls ? ", tasks stall for it " : "",
		stalls ? say(m->pressure_some, "ratio").s : "", stalls ? " of the time" : "");
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
