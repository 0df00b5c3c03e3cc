/* Facts about GPUs, the coarse view. */
#include <math.h>

#include "analyze/facts.h"

static struct facts_gpu one(const struct run_facts *f, const struct rec_entity_info *e)
{
	struct rec_bucket use = facts_over(f->r, e, METRIC_GPU_UTILIZATION, f->w0, f->w1);
	struct rec_bucket joules = facts_over(f->r, e, METRIC_ENERGY, f->t0, f->t1);
	uint64_t t0 = f->t0, t1 = f->t1 + 1;
	return (struct facts_gpu){
		.entity = e,
		.utilization = use.mean,
		.utilization_max = facts_over(f->r, e, METRIC_GPU_UTILIZATION, t0, t1).max,
		.memory_max = facts_over(f->r, e, METRIC_MEMORY_USED, t0, t1).max,
		.memory_total = facts_over(f->r, e, METRIC_MEMORY_TOTAL, t0, t1).max,
		.power = facts_over(f->r, e, METRIC_POWER, f->w0, f->w1).mean,
		.temperature_max = facts_over(f->r, e, METRIC_TEMPERATURE, t0, t1).max,
		.energy_j = joules.mean * 1e-6 * f->run.wall_s,
		.processes_max = facts_over(f->r, e, METRIC_GPU_PROCESSES, t0, t1).max,
		.job_processes_max = facts_over(f->r, e, METRIC_GPU_JOB_PROCESSES, t0, t1).max,
	};
}

void facts_load_gpus(struct run_facts *f)
{
	const struct rec_entity_info *entities;
	size_t n = rec_entities(f->r, &entities);
	for (size_t i = 0; i < n && f->n_gpus < FACTS_GPUS_MAX; i++)
		if (entities[i].kind == ENTITY_GPU)
			f->gpus[f->n_gpus++] = one(f, &entities[i]);
}
