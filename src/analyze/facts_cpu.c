/*
 * Facts about CPU: what the job used of what it may use, how long its tasks waited for a core, and what the
 * rest of the host took meanwhile.
 */
#include <math.h>

#include "analyze/facts.h"
#include "base/clock.h"

#define S(ns) ((ns) / NS_PER_S)

static struct rec_bucket job(const struct run_facts *f, enum metric_id metric)
{
	return facts_over(f->r, f->job, metric, f->w0, f->w1);
}

static double host_mean(const struct run_facts *f, enum metric_id metric)
{
	return facts_over(f->r, f->host, metric, f->w0, f->w1).mean;
}

/* Exact at the end where the recorder had it, else the last sample: counters of a job begin at 0. */
static double total_s(const struct run_facts *f, const char *key, enum metric_id metric)
{
	double ns = facts_number(f->r, key);
	return S(isnan(ns) ? facts_last(f->r, f->job, metric, UINT64_MAX) : ns);
}

static double first_known(double a, double b)
{
	return isnan(a) ? b : a;
}

void facts_load_cpu(struct run_facts *f)
{
	struct facts_cpu *c = &f->cpu;
	c->user_s = total_s(f, "job.user_ns", METRIC_CPU_USER);
	c->system_s = total_s(f, "job.system_ns", METRIC_CPU_SYSTEM);
	c->cores_mean = f->run.wall_s > 0 ? (c->user_s + c->system_s) / f->run.wall_s : NAN;
	c->host_cores = facts_over(f->r, f->host, METRIC_CPU_COUNT, f->t0, f->t1 + 1).mean;
	c->cores_allowed = first_known(
		facts_over(f->r, f->job, METRIC_CPU_ALLOWED, f->t0, f->t1 + 1).mean, c->host_cores);

	c->cores_training = S(job(f, METRIC_CPU_USER).mean + job(f, METRIC_CPU_SYSTEM).mean);
	double delay = S(job(f, METRIC_CPU_RUN_DELAY).mean);
	c->demand = c->cores_training + delay;
	c->run_delay_share = c->demand > 0 ? delay / c->demand : NAN;
	c->throttled_share = S(facts_over(f->r, rec_entity_first(f->r, ENTITY_CGROUP),
					  METRIC_CPU_THROTTLED, f->w0, f->w1)
				       .mean);
	c->threads_max = facts_over(f->r, f->job, METRIC_SCHED_THREADS, f->t0, f->t1 + 1).max;
	c->processes_max = facts_over(f->r, f->job, METRIC_SCHED_PROCESSES, f->t0, f->t1 + 1).max;

	double host = S(host_mean(f, METRIC_CPU_USER) + host_mean(f, METRIC_CPU_SYSTEM));
	c->others = fmax(0, host - c->cores_training);
	if (isnan(host) || isnan(c->cores_training))
		c->others = NAN;
	c->runnable = host_mean(f, METRIC_SCHED_RUNNABLE);
	c->steal = S(host_mean(f, METRIC_CPU_STEAL));
}
