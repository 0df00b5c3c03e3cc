/* The live view: processes of the job, the busiest first. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/top_parts.h"

/* A process and what it does now. */
struct process {
	const struct rec_entity_info *entity;
	double cores, rss, threads, read, written;
};

static double key_of(const struct process *p, enum top_sort sort)
{
	double key = sort == TOP_SORT_CPU   ? p->cores
		     : sort == TOP_SORT_RSS ? p->rss
					    : top_sum(p->read, p->written);
	return isnan(key) ? -1 : key;
}

static int by_key(const void *a, const void *b, void *ctx)
{
	const struct process *x = a, *y = b;
	enum top_sort sort = *(const enum top_sort *)ctx;
	double d = key_of(y, sort) - key_of(x, sort);
	if (d != 0)
		return d > 0 ? 1 : -1;
	return x->entity->key < y->entity->key ? -1 : x->entity->key > y->entity->key;
}

/*
 * From when on a process that ended is still shown: only those that are there, but at the end of a run, when all
 * have ended, those of its last moments.
 */
static uint64_t shown_since(const struct top *top, const struct rec_entity_info *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].kind == ENTITY_PROCESS && (!all[i].t1_ns || all[i].t1_ns > top->t.now))
			return top->t.now + 1;
	return top->t.now > top->t.window_ns ? top->t.now - top->t.window_ns : 0;
}

/* Processes that are there now. Returns a malloc'ed list. */
static struct process *read_processes(struct top *top, size_t *ret_n)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(top->t.r, &all), found = 0;
	struct process *list = calloc(n + 1, sizeof(*list));
	uint64_t since = shown_since(top, all, n);
	for (size_t i = 0; list && i < n; i++) {
		if (all[i].kind != ENTITY_PROCESS || (all[i].t1_ns && all[i].t1_ns < since))
			continue;
		struct process *p = &list[found];
		uint32_t id = all[i].id;
		*p = (struct process){ .entity = &all[i], .cores = top_cores(top, id) };
		p->rss = top_last(&top->t, id, METRIC_MEMORY_RSS);
		if (isnan(p->rss) && isnan(p->cores))
			continue; /* ended, or never sampled */
		p->threads = top_last(&top->t, id, METRIC_SCHED_THREADS);
		p->read = top_rate(&top->t, id, METRIC_IO_READ);
		p->written = top_rate(&top->t, id, METRIC_IO_WRITTEN);
		found++;
	}
	if (list)
		qsort_r(list, found, sizeof(*list), by_key, (void *)(uintptr_t)&top->o->sort);
	*ret_n = found;
	return list;
}

static void add_process(struct doc_node *list, const struct process *p)
{
	struct doc_node *n = doc_object(list, NULL);
	doc_int(n, "pid", p->entity->key, NULL);
	doc_show(doc_stringf(n, NULL, "%7" PRId64, p->entity->key), "    PID", NULL);
	doc_show(doc_string(n, "name", p->entity->name), "NAME", NULL);
	doc_show(doc_number(n, "cores", p->cores, "cores"), "CORES", NULL);
	doc_show(doc_number(n, "rss_bytes", p->rss, "bytes"), "RSS", NULL);
	doc_show(doc_number(n, "threads", p->threads, "count"), "THREADS", NULL);
	doc_show(doc_number(n, "read_bytes_per_s", p->read, "bytes/s"), "READ/s", NULL);
	doc_show(doc_number(n, "written_bytes_per_s", p->written, "bytes/s"), "WRITTEN/s", NULL);
}

int top_add_processes(struct top *top)
{
	size_t n;
	struct process *list = read_processes(top, &n);
	if (!list)
		return -ENOMEM;
	struct doc_node *rows = doc_array(top->root, "processes");
	size_t shown = top->o->rows && top->o->rows < n ? top->o->rows : n;
	for (size_t i = 0; i < shown; i++)
		add_process(rows, &list[i]);
	doc_section(rows, "PROCESSES", DOC_TABLE);
	doc_int(top->root, "processes_total", (int64_t)n, "count");
	if (shown < n) {
		struct doc_node *line = doc_section(doc_object(top->root, NULL), "", DOC_LINE);
		doc_show(doc_int(line, NULL, (int64_t)(n - shown), "count"), NULL, "more");
	}
	free(list);
	return 0;
}
