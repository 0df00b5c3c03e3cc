/* Every process of the job, the busiest first. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "report/build.h"

struct process {
	const struct rec_entity_info *e;
	double cpu_s, rss, read, written, threads;
};

static double known(double v)
{
	return isnan(v) ? 0 : v;
}

static struct process look_at(const struct run_facts *f, const struct rec_entity_info *e)
{
	uint64_t end = f->t1 + 1;
	struct rec_reader *r = f->r;
	return (struct process){
		.e = e,
		.cpu_s = (facts_last(r, e, METRIC_CPU_USER, UINT64_MAX) +
			  facts_last(r, e, METRIC_CPU_SYSTEM, UINT64_MAX)) /
			 NS_PER_S,
		.rss = facts_over(r, e, METRIC_MEMORY_RSS, f->t0, end).max,
		.read = facts_last(r, e, METRIC_IO_READ, UINT64_MAX),
		.written = facts_last(r, e, METRIC_IO_WRITTEN, UINT64_MAX),
		.threads = facts_over(r, e, METRIC_SCHED_THREADS, f->t0, end).max,
	};
}

static int busier(const void *a, const void *b)
{
	const struct process *x = a, *y = b;
	double dx = known(x->cpu_s), dy = known(y->cpu_s);
	if (dx != dy)
		return dx < dy ? 1 : -1;
	return (x->e->id > y->e->id) - (x->e->id < y->e->id);
}

static void add(struct doc_node *list, const struct run_facts *f, const struct process *p)
{
	struct doc_node *n = doc_object(list, NULL);
	uint64_t end = p->e->t1_ns ? p->e->t1_ns : f->t1;
	double from = ((double)p->e->t0_ns - (double)f->t0) / NS_PER_S;
	doc_show(doc_int(n, "pid", p->e->key, "id"), "pid", NULL);
	doc_show(doc_string(n, "name", p->e->name), "name", NULL);
	doc_show(doc_number(n, "cpu_s", p->cpu_s, "s"), "CPU", NULL);
	doc_show(doc_number(n, "peak_rss_bytes", p->rss, "bytes"), "memory", NULL);
	doc_show(doc_number(n, "read_bytes", p->read, "bytes"), "read", NULL);
	doc_show(doc_number(n, "written_bytes", p->written, "bytes"), "written", NULL);
	doc_show(doc_number(n, "threads_max", p->threads, "count"), "threads", NULL);
	doc_show(doc_number(n, "from_s", fmax(from, 0), "s"), "from", NULL);
	doc_show(doc_number(n, "for_s", (double)(end - p->e->t0_ns) / NS_PER_S, "s"), "for", NULL);
	doc_bool(n, "ended", p->e->t1_ns != 0);
}

int build_processes(struct build *b)
{
	const struct rec_entity_info *entities;
	size_t n = rec_entities(b->f->r, &entities), k = 0;
	struct doc_node *list =
		doc_section(doc_array(b->root, "processes"), "PROCESSES", DOC_TABLE);
	struct process *all = malloc((n ? n : 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (entities[i].kind == ENTITY_PROCESS && b->f->job &&
		    entities[i].parent == b->f->job->id)
			all[k++] = look_at(b->f, &entities[i]);
	qsort(all, k, sizeof(*all), busier);
	for (size_t i = 0; i < k; i++)
		add(list, b->f, &all[i]);
	free(all);
	return 0;
}
