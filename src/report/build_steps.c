/* Steps, epochs, evaluation, input wait, checkpoints and the collector in a report. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "report/build.h"

#define MS(s) ((s)*1e3)

/* The slowest step of each part of the run, in ms. */
static void chart(const struct run_facts *f, double *v)
{
	double span = (double)(f->t1 - f->t0);
	for (size_t i = 0; i < CHART_PARTS; i++)
		v[i] = NAN;
	for (size_t i = 0; i < f->steps.n; i++) {
		const struct fact_step *s = &f->steps.v[i];
		double at = ((double)s->t0_ns - (double)f->t0) / span * CHART_PARTS;
		if (isnan(s->dur_s) || !(at >= 0) || at >= CHART_PARTS)
			continue;
		double *slot = &v[(size_t)at];
		if (!(MS(s->dur_s) <= *slot))
			*slot = MS(s->dur_s);
	}
}

/* Why the slowest step was slow, if a pause explains most of what it took above the usual. */
static const char *why_slowest(const struct facts_steps *s)
{
	const struct fact_step *slow = &s->v[s->max_at];
	double above = s->max_s - s->p50_s;
	if (!s->n || !(above > 0))
		return NULL;
	if (slow->checkpoint_s >= 0.5 * above)
		return "(checkpoint)";
	if (slow->gc_s >= 0.5 * above)
		return "(garbage collection)";
	if (slow->wait_s - s->wait_p50_s >= 0.5 * above)
		return "(waiting for input)";
	return NULL;
}

static void add_rates(struct doc_node *n, const struct facts_steps *s)
{
	struct doc_node *per_s = doc_number(n, "per_s", s->per_s, "per_s");
	struct doc_node *samples = doc_number(n, "samples_per_s", s->samples_per_s, "count");
	if (isnan(s->samples_per_s))
		doc_show(per_s, NULL, NULL);
	else
		doc_show(samples, NULL, "samples/s");
}

static void add_epochs(struct doc_node *n, const struct facts_steps *s)
{
	struct doc_node *count = doc_number(n, "epochs", s->epochs, "count");
	struct doc_node *one = doc_number(n, "epoch_p50_s", s->epoch_s, "s");
	if (s->epochs >= 1) {
		doc_show(count, NULL, s->epochs > 1 ? "epochs" : "epoch");
		doc_glue(one, "of", NULL);
	}
}

static void add_steps(struct build *b)
{
	const struct run_facts *f = b->f;
	const struct facts_steps *s = &f->steps;
	double v[CHART_PARTS];
	struct doc_node *n = doc_section(doc_object(b->root, "steps"), "STEPS", DOC_LINE);
	struct doc_node *count = doc_number(n, "count", s->n ? (double)s->n : NAN, "count");
	doc_show(count, NULL, NULL);
	doc_show(doc_number(n, "p50_ms", MS(s->p50_s), "ms"), "p50", NULL);
	doc_show(doc_number(n, "p95_ms", MS(s->p95_s), "ms"), "p95", NULL);
	doc_show(doc_number(n, "p99_ms", MS(s->p99_s), "ms"), "p99", NULL);
	doc_show(doc_number(n, "max_ms", MS(s->max_s), "ms"), "max", why_slowest(s));
	add_rates(n, s);
	doc_int(n, "warmup", (int64_t)s->warmup, "count");
	doc_number(n, "batch", s->batch, "count");
	add_epochs(n, s);
	doc_int(n, "processes", s->processes, "count");
	if (s->processes > 1)
		doc_show(doc_int(n, NULL, s->processes, "count"), "in", "processes");
	doc_string(n, "source", rec_get(f->r, "steps_source"));
	chart(f, v);
	/* Three times the usual step fills a column: even steps are a low line, slow ones stand out. */
	doc_show(doc_series(n, "chart", v, CHART_PARTS, 3 * MS(s->p50_s), chart_seconds(f), "ms"),
		 NULL, NULL);
}

static void add_input_wait(struct build *b)
{
	const struct facts_steps *s = &b->f->steps;
	struct doc_node *n = doc_section(doc_object(b->root, "input_wait"), "INPUT", DOC_LINE);
	doc_show(doc_number(n, "share", s->wait_share, "ratio"), "waiting", "of step time");
	doc_show(doc_number(n, "p50_ms", MS(s->wait_p50_s), "ms"), "p50", NULL);
	doc_show(doc_number(n, "p95_ms", MS(s->wait_p95_s), "ms"), "p95", NULL);
	struct doc_node *workers = doc_number(n, "workers", b->f->workers, "count");
	if (s->n && b->f->workers == 0)
		doc_show(doc_string(n, NULL, "no loader workers"), NULL, NULL);
	else if (s->n)
		doc_show(workers, NULL, b->f->workers == 1 ? "loader worker" : "loader workers");
}

static void add_evaluation(struct build *b)
{
	const struct facts_steps *s = &b->f->steps;
	struct doc_node *n = doc_section(doc_object(b->root, "evaluation"), "EVAL", DOC_LINE);
	doc_show(doc_number(n, "steps", s->eval_n ? (double)s->eval_n : NAN, "count"), NULL,
		 "steps");
	doc_show(doc_number(n, "p50_ms", MS(s->eval_p50_s), "ms"), "p50", NULL);
	doc_show(doc_number(n, "total_s", s->eval_total_s, "s"), "total", NULL);
}

static void add_pauses(struct build *b, const char *key, const struct facts_pauses *p)
{
	struct doc_node *n = doc_object(b->root, key);
	doc_number(n, "count", p->n < 0 ? NAN : (double)p->n, "count");
	doc_number(n, "total_s", p->total_s, "s");
	doc_number(n, "p50_ms", MS(p->median_s), "ms");
	doc_number(n, "max_ms", MS(p->max_s), "ms");
	doc_number(n, "share", p->share, "ratio");
}

void build_steps(struct build *b)
{
	add_steps(b);
	add_input_wait(b);
	add_evaluation(b);
	add_pauses(b, "checkpoints", &b->f->checkpoints);
	add_pauses(b, "gc", &b->f->gc);
}
