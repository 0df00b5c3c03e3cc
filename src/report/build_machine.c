/* CPU, memory, I/O, energy and GPUs in a report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/build.h"

static void sum_charts(const double *a, const double *b, double scale, double *into)
{
	for (size_t i = 0; i < CHART_PARTS; i++)
		into[i] = (a[i] + b[i]) * scale;
}

static void add_cpu(struct build *b)
{
	const struct run_facts *f = b->f;
	const struct facts_cpu *c = &f->cpu;
	double user[CHART_PARTS], system[CHART_PARTS], total = c->user_s + c->system_s;
	struct doc_node *n = doc_section(doc_object(b->root, "cpu"), "CPU", DOC_LINE);
	doc_show(doc_number(n, "cores_mean", c->cores_mean, "cores"), NULL, NULL);
	doc_glue(doc_number(n, "cores_allowed", c->cores_allowed, "cores"), "of",
		 c->cores_allowed == 1 ? "core" : "cores");
	doc_number(n, "user_s", c->user_s, "s");
	doc_number(n, "system_s", c->system_s, "s");
	if (total >= 0.1) { /* shares of less are of single clock ticks */
		doc_show(doc_number(n, NULL, c->user_s / total, "ratio"), "user", NULL);
		doc_glue(doc_number(n, NULL, c->system_s / total, "ratio"), "system", NULL);
	}
	doc_show(doc_number(n, "run_delay_share", c->run_delay_share, "ratio"), "waiting to run",
		 NULL);
	doc_number(n, "cores_training", c->cores_training, "cores");
	doc_number(n, "demand_cores", c->demand, "cores");
	doc_number(n, "throttled_share", c->throttled_share, "ratio");
	struct doc_node *others = doc_number(n, "others_cores", c->others, "cores");
	if (c->others >= 0.1 * c->cores_allowed)
		doc_show(others, "others on the host", "cores");
	doc_number(n, "host_cores", c->host_cores, "cores");
	doc_number(n, "threads_max", c->threads_max, "count");
	doc_number(n, "processes_max", c->processes_max, "count");
	facts_chart(f->r, f->job, METRIC_CPU_USER, f->t0, f->t1, CHART_PARTS, user);
	facts_chart(f->r, f->job, METRIC_CPU_SYSTEM, f->t0, f->t1, CHART_PARTS, system);
	sum_charts(user, system, 1.0 / NS_PER_S, user);
	doc_show(doc_series(n, "chart", user, CHART_PARTS, c->cores_allowed, chart_seconds(f),
			    "cores"),
		 NULL, NULL);
}

static void add_memory(struct build *b)
{
	const struct run_facts *f = b->f;
	const struct facts_memory *m = &f->memory;
	double rss[CHART_PARTS], per_min = m->growth.slope * 60;
	struct doc_node *n = doc_section(doc_object(b->root, "memory"), "MEMORY", DOC_LINE);
	doc_number(n, "peak_rss_bytes", m->peak_rss, "bytes");
	doc_show(doc_number(n, "peak_used_bytes", m->peak_used, "bytes"), NULL, "peak");
	doc_glue(doc_number(n, "limit_bytes", m->limit, "bytes"), "of",
		 m->limit_is_host ? "(the host)" : "allowed");
	doc_bool(n, "limit_is_host", m->limit_is_host);
	doc_number(n, "peak_pss_bytes", m->peak_pss, "bytes");
	struct doc_node *growth = doc_number(n, "growth_bytes_per_min", per_min, "bytes");
	doc_number(n, "growth_chance", m->growth.chance, "ratio");
	/* A slope that could as well be none is not worth a number. */
	if (m->growth.lower > 0 && m->growth_bytes > 0.005 * m->peak_rss)
		doc_show(growth, "growing", "per min");
	else if (!isnan(m->growth.slope))
		doc_show(doc_string(n, NULL, "not growing"), NULL, NULL);
	doc_number(n, "host_total_bytes", m->host_total, "bytes");
	doc_number(n, "host_available_min_bytes", m->host_available_min, "bytes");
	doc_number(n, "swap_in_bytes_per_s", m->swap_in, "bytes/s");
	doc_number(n, "swap_out_bytes_per_s", m->swap_out, "bytes/s");
	doc_number(n, "pressure_share", m->pressure_some, "ratio");
	facts_chart(f->r, f->job, METRIC_MEMORY_RSS, f->t0, f->t1, CHART_PARTS, rss);
	doc_show(doc_series(n, "chart", rss, CHART_PARTS, 1.5 * m->peak_rss, chart_seconds(f),
			    "bytes"),
		 NULL, NULL);
}

static void add_io(struct build *b)
{
	const struct facts_io *io = &b->f->io;
	double wall = b->f->run.wall_s;
	struct doc_node *n = doc_section(doc_object(b->root, "io"), "I/O", DOC_LINE);
	doc_show(doc_number(n, "read_bytes", io->read, "bytes"), "read", NULL);
	if (io->read >= 1e6)
		doc_glue(doc_number(n, NULL, io->read / wall, "bytes/s"), "(", ")");
	struct doc_node *from = doc_number(n, "disk_read_bytes", io->disk_read, "bytes");
	if (io->disk_read >= 1e6)
		doc_show(from, NULL, "from disk");
	doc_show(doc_number(n, "written_bytes", io->written, "bytes"), "written", NULL);
	if (io->written >= 1e6)
		doc_glue(doc_number(n, NULL, io->written / wall, "bytes/s"), "(", ")");
	doc_number(n, "disk_written_bytes", io->disk_written, "bytes");
	struct doc_node *wait = doc_number(n, "pressure_share", io->pressure_some, "ratio");
	if (io->pressure_some >= 0.02)
		doc_show(wait, io->pressure_is_cgroup ? "waiting for it" : "host waiting for I/O",
			 "of the time");
	doc_number(n, "iowait_cores", io->iowait, "cores");
	doc_number(n, "faults_major_per_s", io->faults_major_per_s, "per_s");
}

static void add_energy(struct build *b)
{
	const struct run_facts *f = b->f;
	double samples = f->steps.samples_per_s * f->window_s;
	struct doc_node *n = doc_section(doc_object(b->root, "energy"), "ENERGY", DOC_LINE);
	doc_show(doc_number(n, "host_j", f->energy_j, "J"), NULL, "(CPU packages of the host)");
	doc_show(doc_number(n, "host_mean_w", f->energy_j / f->run.wall_s, "W"), "mean", NULL);
	doc_show(doc_number(n, "j_per_sample", f->energy_j / f->run.wall_s * f->window_s / samples,
			    "J"),
		 NULL, "per sample");
}

static void add_gpu(struct build *b, struct doc_node *list, const struct facts_gpu *g)
{
	static const char *const labels[] = { "GPU 0", "GPU 1", "GPU 2", "GPU 3",
					      "GPU 4", "GPU 5", "GPU 6", "GPU 7" };
	const struct run_facts *f = b->f;
	int64_t index = g->entity->key;
	const char *label = index >= 0 && index < 8 ? labels[index] : "GPU";
	double use[CHART_PARTS];
	struct doc_node *n = doc_section(doc_object(list, NULL), label, DOC_LINE);
	doc_int(n, "index", index, NULL);
	doc_show(doc_string(n, "name", g->entity->name), NULL, NULL);
	doc_show(doc_number(n, "utilization", g->utilization, "ratio"), "some kernel running",
		 "of the time");
	doc_number(n, "utilization_max", g->utilization_max, "ratio");
	doc_show(doc_number(n, "memory_max_bytes", g->memory_max, "bytes"), "memory", NULL);
	doc_glue(doc_number(n, "memory_total_bytes", g->memory_total, "bytes"), "of", NULL);
	doc_show(doc_number(n, "power_w", g->power, "W"), NULL, NULL);
	doc_number(n, "energy_j", g->energy_j, "J");
	doc_show(doc_number(n, "temperature_max_c", g->temperature_max, "celsius"), "up to", NULL);
	doc_number(n, "processes_max", g->processes_max, "count");
	doc_number(n, "job_processes_max", g->job_processes_max, "count");
	if (g->job_processes_max == 0)
		doc_tone(doc_show(doc_string(n, NULL, "not used by the job"), NULL, NULL),
			 DOC_WARN);
	facts_chart(f->r, g->entity, METRIC_GPU_UTILIZATION, f->t0, f->t1, CHART_PARTS, use);
	doc_show(doc_series(n, "chart", use, CHART_PARTS, 1, chart_seconds(f), "ratio"), NULL,
		 NULL);
}

void build_machine(struct build *b)
{
	add_cpu(b);
	add_memory(b);
	add_io(b);
	add_energy(b);
	struct doc_node *list = doc_section(doc_array(b->root, "gpus"), NULL, DOC_LINES);
	for (size_t i = 0; i < b->f->n_gpus; i++)
		add_gpu(b, list, &b->f->gpus[i]);
}
