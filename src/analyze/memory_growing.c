/* Found when the job's memory rises steadily, all through the second half of training: a leak. */
#include <math.h>
#include <stdio.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

/* Does reading files explain the rise? Pages of mapped files count as resident until memory is short. */
static bool is_file_pages(const struct run_facts *f)
{
	double from_disk = f->io.disk_read_per_s;
	return from_disk >= threshold(TH_GROWTH_TO_DISK) * f->memory.growth.slope;
}

static void describe(const struct run_facts *f, struct finding *ret)
{
	const struct facts_memory *m = &f->memory;
	const struct facts_steps *s = &f->steps;
	double per_min = m->growth.slope * 60, left = m->limit - m->peak_used;
	char per_step[64] = "", until[160] = "";
	if (s->per_s > 0)
		snprintf(per_step, sizeof(per_step), ", %s per step",
			 say(m->growth.slope / s->per_s, "bytes").s);
	if (left > 0 && left / m->growth.slope < 30 * 86400.0)
		snprintf(until, sizeof(until), " At this rate the %s %s full in %s.",
			 say(m->limit, "bytes").s,
			 m->limit_is_host ? "of this host are" : "allowed are",
			 say(left / m->growth.slope, "s").s);
	finding_title(ret, "memory: it grows all the time");
	finding_text(ret, "Resident memory rises by %s per minute%s and does not level off.%s",
		     say(per_min, "bytes").s, per_step, until);
	if (is_file_pages(f))
		finding_advice(ret,
			       "The job reads from disk as fast as its memory grows: these are "
			       "likely pages of mapped files, which the kernel takes back when "
			       "memory is short. Nothing to do unless the limit kills the job.");
	else
		finding_advice(
			ret, "Look for what is kept from step to step: a list that collects losses "
			     "or outputs with their graph (append loss.item(), not loss), a cache "
			     "without a bound, a data set that keeps what it loaded.");
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_memory *m = &f->memory;
	double floor = fmax(threshold(TH_GROWTH_SHARE) * m->peak_rss, threshold(TH_GROWTH_BYTES));
	if (!(m->growth_bytes >= floor) || !(m->growth.lower > 0) ||
	    !(m->growth.chance <= threshold(TH_GROWTH_CHANCE)) ||
	    !(m->growth_even >= threshold(TH_GROWTH_EVEN)))
		return false;
	ret->severity = is_file_pages(f) ? SEVERITY_INFO : SEVERITY_WARNING;
	ret->confidence = m->growth.n >= 10 ? CONFIDENCE_SURE : CONFIDENCE_LIKELY;
	describe(f, ret);
	finding_evidence(ret, "growth per minute", m->growth.slope * 60, "bytes",
			 "slope of memory.rss, later part of training");
	finding_evidence(ret, "growth per minute, at least", m->growth.lower * 60, "bytes",
			 "95 % confidence");
	finding_evidence(ret, "grown there", m->growth_bytes, "bytes", "memory.rss");
	finding_evidence(ret, "peak", m->peak_rss, "bytes", "memory.rss");
	return true;
}

const struct analysis analysis_memory_growing = {
	.id = "memory-growing",
	.help = "resident memory rises steadily through the second half of the run",
	.find = find,
};
