/* Found when a GPU was there for the job to use, and the job never did. */
#include <math.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

/* Hidden on purpose: the variable is set and names no device. */
static bool hidden(const struct run_facts *f)
{
	const char *v = rec_get(f->r, "env.CUDA_VISIBLE_DEVICES");
	return v && (!*v || !strcmp(v, "-1") || !strcmp(v, "NoDevFiles"));
}

/*
 * Did the job use this GPU? By its processes where the driver tells pids we know, else by whether anybody did
 * anything: nobody includes the job.
 */
static bool untouched(const struct facts_gpu *g)
{
	if (g->job_processes_max > 0)
		return false;
	if (g->processes_max == 0)
		return true;
	return g->job_processes_max == 0 && !isnan(g->processes_max);
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	size_t idle = 0;
	for (size_t i = 0; i < f->n_gpus; i++)
		idle += untouched(&f->gpus[i]);
	/* One GPU used is a choice; only all of them idle is an oversight. */
	if (!f->n_gpus || idle < f->n_gpus || hidden(f) || f->ticks < threshold(TH_TICKS_ENOUGH))
		return false;
	const struct facts_gpu *g = &f->gpus[0];
	double wait = isnan(f->steps.wait_share) ? 0 : f->steps.wait_share;
	ret->severity = SEVERITY_LIMIT;
	ret->confidence = CONFIDENCE_SURE;
	ret->loss = threshold(TH_GPU_WEIGHT) * (1 - wait);
	finding_title(ret, "GPU: there is one, the job never used it");
	finding_text(ret,
		     "%s %s visible, but no process of the job ever opened %s: all the "
		     "computing was done on the CPU.",
		     f->n_gpus == 1 ? g->entity->name : "GPUs are", f->n_gpus == 1 ? "is" : "and",
		     f->n_gpus == 1 ? "it" : "one");
	finding_evidence(ret, "GPUs visible", (double)f->n_gpus, "count", "nvml");
	finding_evidence(ret, "processes of the job on them, at most", g->job_processes_max,
			 "count", "nvml");
	finding_evidence(ret, "GPU utilization", g->utilization, "ratio", "nvml");
	finding_evidence(ret, "cores used", f->cpu.cores_training, "cores", "/proc/PID/stat");
	const char *cuda = rec_get(f->r, "fact.torch.cuda");
	bool cpu_build = cuda && !strcmp(cuda, "none");
	finding_advice(
		ret, "Move model and batches to it (model.to(\"cuda\"), x.to(\"cuda\")).%s",
		cpu_build ? " This PyTorch was built without CUDA: install one that has it."
			  : " If torch.cuda.is_available() says no, driver and PyTorch build do "
			    "not match.");
	return true;
}

const struct analysis analysis_gpu_idle = {
	.id = "gpu-idle",
	.help = "a GPU is visible, the job never used it",
	.find = find,
};
