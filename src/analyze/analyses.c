/* The table of analyses, and asking all of them. */
#include <math.h>
#include <string.h>

#include "analyze/analysis.h"

extern const struct analysis analysis_input_bound, analysis_cpu_oversubscribed,
	analysis_host_contended, analysis_memory_growing, analysis_memory_near_limit,
	analysis_swapping, analysis_io_bound, analysis_checkpoint_stalls, analysis_gc_pauses,
	analysis_uneven_steps, analysis_gpu_idle, analysis_job_failed, analysis_healthy;

const struct analysis *const analyses[] = {
	&analysis_input_bound,
	&analysis_io_bound,
	&analysis_cpu_oversubscribed,
	&analysis_host_contended, /* after cpu-oversubscribed */
	&analysis_swapping,
	&analysis_memory_near_limit,
	&analysis_memory_growing,
	&analysis_checkpoint_stalls,
	&analysis_gc_pauses,
	&analysis_uneven_steps,
	&analysis_gpu_idle,
	&analysis_job_failed,
	&analysis_healthy, /* after all others: it looks at what they found */
	NULL,
};

void analyze_run(const struct run_facts *f, struct findings *ret)
{
	ret->n = 0;
	for (size_t i = 0; analyses[i] && ret->n < FINDINGS_MAX; i++) {
		struct finding *slot = &ret->v[ret->n];
		memset(slot, 0, sizeof(*slot));
		slot->id = analyses[i]->id;
		slot->loss = slot->gain = NAN;
		if (!analyses[i + 1])
			verdict_weigh(ret); /* the last one judges what is left after weighing */
		ret->n += analyses[i]->find(f, ret, slot);
	}
	verdict_weigh(ret);
}
