/* One step: its row, how it stands among the others, and what happened on the machine meanwhile. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "report/build.h"

#define MS(s) ((s)*1e3)

static const struct fact_step *find(const struct facts_steps *s, int64_t index)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].index == index)
			return &s->v[i];
	/* A source that does not number its steps: the n-th. */
	if (s->n && s->v[0].index == REC_NONE && index >= 0 && (size_t)index < s->n)
		return &s->v[index];
	return NULL;
}

/* Share of the steps after warm-up that were faster. */
static double faster(const struct facts_steps *s, double dur_s)
{
	size_t below = 0;
	for (size_t i = s->warmup; i < s->n; i++)
		below += s->v[i].dur_s < dur_s;
	return s->timed ? (double)below / (double)s->timed : NAN;
}

static void add_time(struct doc_node *n, const struct run_facts *f, const struct fact_step *s)
{
	doc_show(doc_number(n, "dur_ms", MS(s->dur_s), "ms"), NULL, NULL);
	doc_show(doc_number(n, "slower_than_share", faster(&f->steps, s->dur_s), "ratio"),
		 "slower than", "of the steps");
	doc_show(doc_number(n, "usual_ms", MS(f->steps.p50_s), "ms"), "usual", NULL);
	doc_show(doc_number(n, "at_s", ((double)s->t0_ns - (double)f->t0) / NS_PER_S, "s"), "at",
		 "into the run");
	if (s->epoch != FACT_NONE)
		doc_show(doc_int(n, "epoch", s->epoch, "id"), "epoch", NULL);
	if (s->batch != FACT_NONE)
		doc_show(doc_int(n, "batch", s->batch, "count"), "batch", NULL);
}

static void add_parts(struct doc_node *n, const struct fact_step *s)
{
	double rest = s->dur_s - (isnan(s->wait_s) ? 0 : s->wait_s) - s->checkpoint_s - s->gc_s;
	doc_show(doc_number(n, "input_wait_ms", MS(s->wait_s), "ms"), "waiting for input", NULL);
	struct doc_node *part = doc_number(n, "checkpoint_ms", MS(s->checkpoint_s), "ms");
	if (s->checkpoint_s > 0)
		doc_show(part, "checkpoint", NULL);
	part = doc_number(n, "gc_ms", MS(s->gc_s), "ms");
	if (s->gc_s > 0)
		doc_show(part, "garbage collection", NULL);
	doc_show(doc_number(n, "rest_ms", MS(fmax(rest, 0)), "ms"), "the rest", NULL);
}

/* What the job did during the step beside what it usually does, from the samples around it. */
struct rate {
	const char *key, *label;
	enum metric_id metrics[2];
	int n;
	double scale;
	const char *unit;
};

static const struct rate rates[] = {
	{ "cores", "cores", { METRIC_CPU_USER, METRIC_CPU_SYSTEM }, 2, 1e-9, "cores" },
	{ "run_delay_cores", "waiting to run, cores", { METRIC_CPU_RUN_DELAY }, 1, 1e-9, "cores" },
	{ "rss_bytes", "memory", { METRIC_MEMORY_RSS }, 1, 1, "bytes" },
	{ "read_bytes_per_s", "read", { METRIC_IO_READ }, 1, 1, "bytes/s" },
	{ "written_bytes_per_s", "written", { METRIC_IO_WRITTEN }, 1, 1, "bytes/s" },
};

static double rate_over(const struct run_facts *f, const struct rate *r, uint64_t t0, uint64_t t1)
{
	double sum = 0;
	for (int i = 0; i < r->n; i++)
		sum += facts_over(f->r, f->job, r->metrics[i], t0, t1).mean * r->scale;
	return sum;
}

static void add_rate(struct doc_node *n, const struct run_facts *f, const struct fact_step *s,
		     const struct rate *r)
{
	double now = rate_over(f, r, s->t0_ns, s->t1_ns);
	double usual = rate_over(f, r, f->w0, f->w1);
	char words[64];
	snprintf(words, sizeof(words), "(usually %s)", say(usual, r->unit).s);
	doc_show(doc_number(n, r->key, now, r->unit), r->label, words);
}

static void add_notices(struct doc_node *root, const struct run_facts *f, const struct fact_step *s)
{
	const struct rec_notice_info *notices;
	size_t n = rec_notices(f->r, &notices);
	struct doc_node *list = doc_section(doc_array(root, "notices"), "NOTICES", DOC_REASONS);
	for (size_t i = 0; i < n; i++) {
		if (notices[i].t_ns < s->t0_ns || notices[i].t_ns >= s->t1_ns)
			continue;
		struct doc_node *one = doc_object(list, NULL);
		doc_string(one, "what", notices[i].kind);
		doc_string(one, "why", notices[i].text);
	}
}

int build_step(struct build *b, struct err *e)
{
	const struct run_facts *f = b->f;
	const struct fact_step *s = find(&f->steps, b->o->step);
	if (!s && !f->steps.n)
		return err_set(e, ENOENT, "no steps are known in this recording");
	if (!s)
		return err_set(e, ENOENT,
			       "there is no training step %lld; they go from %lld to %lld",
			       (long long)b->o->step, (long long)f->steps.v[0].index,
			       (long long)f->steps.v[f->steps.n - 1].index);
	struct doc_node *n = doc_section(doc_object(b->root, "step"), "STEP", DOC_LINE);
	doc_show(doc_int(n, "index", b->o->step, "id"), NULL, NULL);
	add_time(n, f, s);
	n = doc_section(doc_object(b->root, "parts"), "TIME IN", DOC_LINE);
	add_parts(n, s);
	n = doc_section(doc_object(b->root, "during"), "DURING", DOC_LINE);
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		add_rate(n, f, s, &rates[i]);
	add_notices(b->root, f, s);
	return 0;
}
