/* The live view: the host, the job's use of it, GPUs. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "report/top_parts.h"

/* A value with "[|||||.....]" before it in the text: how much it is of the whole. */
static void bar_value(struct doc_node *n, const char *key, double part, double whole,
		      const char *unit, const char *after)
{
	char text[16] = "[..........]";
	bool known = !isnan(part) && whole > 0;
	if (known) {
		int filled = (int)(part / whole * 10 + 0.5);
		filled = filled < 0 ? 0 : filled > 10 ? 10 : filled;
		memset(text + 1, '|', (size_t)filled);
		doc_show(doc_string(n, NULL, text), NULL, NULL);
	}
	struct doc_node *value = doc_number(n, key, part, unit);
	if (known)
		doc_glue(value, NULL, after);
	else
		doc_show(value, NULL, after);
}

/* Shown where there is any: what does not happen needs no words. */
static void show_rate(struct doc_node *n, const char *key, double rate, const char *unit,
		      const char *what)
{
	struct doc_node *value = doc_number(n, key, rate, unit);
	if (rate > 0)
		doc_show(value, what, NULL);
}

static void chart(struct top *top, struct doc_node *n, uint32_t entity, const enum metric_id *of,
		  size_t count, double scale, double max, const char *unit)
{
	double v[TOP_CHART_PARTS];
	for (size_t i = 0; i < TOP_CHART_PARTS; i++)
		v[i] = NAN;
	for (size_t i = 0; i < count; i++)
		top_chart(&top->t, entity, of[i], scale, v);
	doc_show(doc_series(n, "chart", v, TOP_CHART_PARTS, isnan(max) ? 0 : max,
			    (double)TOP_CHART_SECONDS / TOP_CHART_PARTS, unit),
		 NULL, NULL);
}

static const enum metric_id cpu_metrics[] = { METRIC_CPU_USER, METRIC_CPU_SYSTEM };

double top_cores(struct top *top, uint32_t entity)
{
	return top_sum(top_rate(&top->t, entity, METRIC_CPU_USER),
		       top_rate(&top->t, entity, METRIC_CPU_SYSTEM)) /
	       (double)NS_PER_S;
}

/* Sum of the rates of all entities of a kind (disks, network interfaces). */
static double rate_of_kind(struct top *top, enum entity_kind kind, enum metric_id metric)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(top->t.r, &all);
	double sum = NAN;
	for (size_t i = 0; i < n; i++)
		if (all[i].kind == kind)
			sum = top_sum(sum, top_rate(&top->t, all[i].id, metric));
	return sum;
}

static double count_cpus(struct top *top)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(top->t.r, &all), cpus = 0;
	double count = top_last(&top->t, top->host, METRIC_CPU_COUNT);
	for (size_t i = 0; i < n; i++)
		cpus += all[i].kind == ENTITY_CPU && !all[i].t1_ns;
	return !isnan(count) ? count : cpus ? (double)cpus : NAN;
}

void top_add_host(struct top *top)
{
	struct doc_node *n = doc_section(doc_object(top->root, "host"), "HOST", DOC_LINE);
	double used = top_cores(top, top->host), count = count_cpus(top);
	double total = top_last(&top->t, top->host, METRIC_MEMORY_TOTAL);
	double memory = total - top_last(&top->t, top->host, METRIC_MEMORY_AVAILABLE);
	bar_value(n, "cores_used", used, count, "cores", NULL);
	doc_glue(doc_number(n, "cores", count, "cores"), "of", "cores");
	bar_value(n, "memory_used_bytes", memory, total, "bytes", NULL);
	doc_glue(doc_number(n, "memory_bytes", total, "bytes"), "of", "memory");
	show_rate(n, "disk_read_bytes_per_s", rate_of_kind(top, ENTITY_DISK, METRIC_DISK_READ),
		  "bytes/s", "disks read");
	show_rate(n, "disk_written_bytes_per_s",
		  rate_of_kind(top, ENTITY_DISK, METRIC_DISK_WRITTEN), "bytes/s", "disks written");
	show_rate(n, "net_received_bytes_per_s", rate_of_kind(top, ENTITY_NET, METRIC_NET_RECEIVED),
		  "bytes/s", "net received");
	show_rate(n, "net_sent_bytes_per_s", rate_of_kind(top, ENTITY_NET, METRIC_NET_SENT),
		  "bytes/s", "net sent");
	chart(top, n, top->host, cpu_metrics, 2, 1e-9, count, "cores");
}

static void add_job_cpu(struct top *top)
{
	double used = top_cores(top, top->job),
	       allowed = top_last(&top->t, top->job, METRIC_CPU_ALLOWED);
	double system = top_rate(&top->t, top->job, METRIC_CPU_SYSTEM) / (double)NS_PER_S;
	double delay = top_rate(&top->t, top->job, METRIC_CPU_RUN_DELAY) / (double)NS_PER_S;
	struct doc_node *n = doc_section(doc_object(top->root, "cpu"), "JOB", DOC_LINE);
	bar_value(n, "cores_used", used, allowed, "cores", isnan(allowed) ? "cores" : NULL);
	doc_glue(doc_number(n, "cores_allowed", allowed, "cores"), "of", "cores");
	doc_number(n, "system_share", used > 0 ? system / used : NAN, "ratio");
	doc_show(doc_number(n, "waiting_to_run_cores", delay, "cores"), "waiting to run", "cores");
	chart(top, n, top->job, cpu_metrics, 2, 1e-9, allowed, "cores");
}

static void add_job_memory(struct top *top)
{
	static const enum metric_id rss_metric[] = { METRIC_MEMORY_RSS };
	double rss = top_last(&top->t, top->job, METRIC_MEMORY_RSS);
	double pss = top_recent(&top->t, top->job, METRIC_MEMORY_PSS);
	double limit = top_last(&top->t, top->job, METRIC_MEMORY_LIMIT);
	/* "No limit" is recorded as what the host has, or not at all. */
	if (isnan(limit))
		limit = top_last(&top->t, top->host, METRIC_MEMORY_TOTAL);
	struct doc_node *n = doc_section(doc_object(top->root, "memory"), "MEMORY", DOC_LINE);
	bar_value(n, "rss_bytes", rss, limit, "bytes", NULL);
	doc_glue(doc_number(n, "limit_bytes", limit, "bytes"), "of", "allowed");
	struct doc_node *shared = doc_number(n, "pss_bytes", pss, "bytes");
	if (pss < 0.9 * rss)
		doc_show(shared, NULL, "with shared pages counted once");
	show_rate(n, "faults_major_per_s", top_rate(&top->t, top->job, METRIC_MEMORY_FAULTS_MAJOR),
		  "per_s", "major faults");
	chart(top, n, top->job, rss_metric, 1, 1, limit, "bytes");
}

static void add_job_io(struct top *top)
{
	struct doc_node *n = doc_section(doc_object(top->root, "io"), "I/O", DOC_LINE);
	doc_show(doc_number(n, "read_bytes_per_s", top_rate(&top->t, top->job, METRIC_IO_READ),
			    "bytes/s"),
		 "read", NULL);
	doc_show(doc_number(n, "written_bytes_per_s",
			    top_rate(&top->t, top->job, METRIC_IO_WRITTEN), "bytes/s"),
		 "written", NULL);
	show_rate(n, "disk_read_bytes_per_s", top_rate(&top->t, top->job, METRIC_IO_DISK_READ),
		  "bytes/s", "from disk");
	show_rate(n, "disk_written_bytes_per_s",
		  top_rate(&top->t, top->job, METRIC_IO_DISK_WRITTEN), "bytes/s", "to disk");
}

void top_add_job(struct top *top)
{
	add_job_cpu(top);
	add_job_memory(top);
	add_job_io(top);
}

static void add_gpu(struct top *top, struct doc_node *list, const struct rec_entity_info *gpu)
{
	static const enum metric_id utilization[] = { METRIC_GPU_UTILIZATION };
	struct doc_node *n = doc_object(list, NULL);
	double total = top_last(&top->t, gpu->id, METRIC_MEMORY_TOTAL);
	double used = top_last(&top->t, gpu->id, METRIC_MEMORY_USED);
	double busy = top_last(&top->t, gpu->id, METRIC_GPU_UTILIZATION);
	doc_int(n, "index", gpu->key, NULL);
	doc_string(n, "name", gpu->name);
	doc_number(n, "utilization", busy, "ratio");
	doc_number(n, "memory_used_bytes", used, "bytes");
	doc_number(n, "memory_bytes", total, "bytes");
	double power = top_last(&top->t, gpu->id, METRIC_POWER);
	doc_number(n, "power_w", power, "W");

	/* The same as a line of text, which an element of a list is not. */
	struct doc_node *line = doc_section(doc_object(top->root, NULL), "GPU", DOC_LINE);
	doc_show(doc_int(line, NULL, gpu->key, "count"), NULL, NULL);
	bar_value(line, NULL, busy, 1, "ratio", "of the time some kernel ran");
	doc_show(doc_number(line, NULL, used, "bytes"), NULL, NULL);
	doc_glue(doc_number(line, NULL, total, "bytes"), "of", NULL);
	doc_show(doc_number(line, NULL, power, "W"), NULL, NULL);
	chart(top, line, gpu->id, utilization, 1, 1, 1, "ratio");
}

void top_add_gpus(struct top *top)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(top->t.r, &all);
	struct doc_node *list = doc_array(top->root, "gpus");
	bool any = false;
	for (size_t i = 0; i < n; i++) {
		if (all[i].kind != ENTITY_GPU)
			continue;
		add_gpu(top, list, &all[i]);
		any = true;
	}
	const char *reason = rec_get(top->t.r, "gpu.reason");
	doc_string(top->root, "gpu_reason", any ? NULL : reason);
	if (!any && reason) {
		struct doc_node *line = doc_section(doc_object(top->root, NULL), "GPU", DOC_LINE);
		doc_tone(doc_show(doc_string(line, NULL, reason), NULL, NULL), DOC_FAINT);
	}
}
