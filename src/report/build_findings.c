/* Findings in a report, and what is missing in it, with the reason. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/build.h"

static enum doc_tone tone_of(enum severity severity)
{
	static const enum doc_tone tones[] = {
		[SEVERITY_OK] = DOC_GOOD,
		[SEVERITY_INFO] = DOC_NOTE,
		[SEVERITY_WARNING] = DOC_WARN,
		[SEVERITY_LIMIT] = DOC_BAD,
	};
	return tones[severity];
}

static void add_finding(struct doc_node *list, const struct finding *f)
{
	struct doc_node *n = doc_tone(doc_object(list, NULL), tone_of(f->severity));
	doc_string(n, "id", f->id);
	doc_string(n, "severity", severity_name(f->severity));
	doc_string(n, "confidence", confidence_name(f->confidence));
	doc_string(n, "title", f->title);
	doc_string(n, "text", f->text);
	struct doc_node *evidence = doc_array(n, "evidence");
	for (size_t i = 0; i < f->n_evidence; i++) {
		const struct evidence *e = &f->evidence[i];
		struct doc_node *one = doc_object(evidence, NULL);
		doc_string(one, "what", e->what);
		doc_number(one, "value", e->value, e->unit);
		doc_string(one, "unit", e->unit);
		doc_string(one, "source", e->source);
	}
	doc_string(n, "advice", *f->advice ? f->advice : NULL);
	doc_number(n, "loss_share", f->loss, "ratio");
	doc_number(n, "speedup", f->gain, NULL);
}

const struct doc_node *build_findings(struct build *b)
{
	struct doc_node *list = doc_array(b->root, "findings");
	for (size_t i = 0; i < b->findings->n; i++)
		add_finding(list, &b->findings->v[i]);
	return list;
}

int build_evidence_json(const struct finding *f, struct buf *out)
{
	json_t *list = json_array();
	for (size_t i = 0; i < f->n_evidence; i++) {
		const struct evidence *e = &f->evidence[i];
		json_array_append_new(list,
				      json_pack("{s:s, s:f, s:s, s:s?}", "what", e->what, "value",
						e->value, "unit", e->unit, "source", e->source));
	}
	char *text = json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(list);
	if (!text)
		return -ENOMEM;
	buf_adds(out, text);
	free(text);
	return out->failed ? -ENOMEM : 0;
}

static void miss(struct doc_node *list, const char *what, const char *why)
{
	struct doc_node *n = doc_object(list, NULL);
	doc_string(n, "what", what);
	doc_string(n, "why", why);
}

/* Why a metric has no value: the reason of its gaps on that entity, else what is said. */
static const char *gap_reason(const struct run_facts *f, const struct rec_entity_info *entity,
			      enum metric_id metric, const char *otherwise)
{
	const struct rec_series_info *s = entity ? rec_series_of(f->r, entity->id, metric) : NULL;
	const struct rec_gap_info *gaps;
	size_t n = rec_gaps(f->r, &gaps);
	for (size_t i = 0; s && i < n; i++)
		if (gaps[i].series == s->id)
			return gaps[i].reason;
	return otherwise;
}

static void miss_steps(struct doc_node *list, const struct run_facts *f)
{
	const char *source = rec_get(f->r, "steps_source");
	const struct facts_steps *s = &f->steps;
	char why[240];
	if (!s->n && source) {
		snprintf(why, sizeof(why), "%s saw none", source);
		miss(list, "training steps", why);
	} else if (!s->n) {
		miss(list, "training steps",
		     "no hook saw a PyTorch training loop; --steps-from 'REGEX' takes them from "
		     "the output, spotter/mark.h marks them in the code");
	} else if (isnan(s->wait_share)) {
		snprintf(why, sizeof(why), "%s cannot tell it",
			 source ? source : "the source of the steps");
		miss(list, "input wait", why);
	}
}

static void miss_gpu(struct doc_node *list, const struct run_facts *f)
{
	if (f->n_gpus)
		return;
	const char *reason = rec_get(f->r, "gpu.reason");
	miss(list, "GPU", reason ? reason : "none was looked for");
}

struct thing {
	const char *what;
	double value;
	const struct rec_entity_info *entity;
	enum metric_id metric;
	const char *otherwise;
};

/* Things that are missing for the same reason share a line. */
static void miss_things(struct doc_node *list, const struct run_facts *f, struct thing *things,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char what[256];
		if (!isnan(things[i].value))
			continue;
		const char *why =
			gap_reason(f, things[i].entity, things[i].metric, things[i].otherwise);
		size_t len = (size_t)snprintf(what, sizeof(what), "%s", things[i].what);
		for (size_t k = i + 1; k < n && len < sizeof(what); k++) {
			const char *same = gap_reason(f, things[k].entity, things[k].metric,
						      things[k].otherwise);
			if (!isnan(things[k].value) || strcmp(same, why))
				continue;
			len += (size_t)snprintf(what + len, sizeof(what) - len, ", %s",
						things[k].what);
			things[k].value = 0; /* said */
		}
		miss(list, what, why);
	}
}

static void miss_resources(struct doc_node *list, const struct run_facts *f)
{
	struct thing things[] = {
		{ "the job's CPU time", f->cpu.user_s, f->job, METRIC_CPU_USER, "not recorded" },
		{ "the job's waiting for a core", f->cpu.run_delay_share, f->job,
		  METRIC_CPU_RUN_DELAY, "not recorded" },
		{ "the job's memory", f->memory.peak_rss, f->job, METRIC_MEMORY_RSS,
		  "not recorded" },
		{ "the job's I/O", f->io.read, f->job, METRIC_IO_READ, "not recorded" },
		{ "I/O pressure", f->io.pressure_some, f->host, METRIC_PRESSURE_IO_SOME,
		  "this kernel has no pressure stall information" },
		{ "energy", f->energy_j, f->host, METRIC_ENERGY,
		  "no energy counters (RAPL) on this machine" },
	};
	miss_things(list, f, things, sizeof(things) / sizeof(*things));
}

/* What the recorder said while it ran: sources that did not open, records lost, trouble writing. */
static void miss_notices(struct doc_node *list, const struct run_facts *f)
{
	static const struct {
		const char *kind, *what;
	} kinds[] = {
		{ "lost", "lost records" },     { "gap", "gap" },
		{ "hook", "step hook" },        { "trouble", "recorder" },
		{ "tracer-missing", "tracer" },
	};
	const struct rec_notice_info *notices;
	size_t n = rec_notices(f->r, &notices), said = 0;
	for (size_t i = 0; i < n && said < 8; i++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			if (strcmp(notices[i].kind, kinds[k].kind))
				continue;
			miss(list, kinds[k].what, notices[i].text);
			said++;
		}
	}
}

const struct doc_node *build_missing(struct build *b)
{
	struct doc_node *list = doc_array(b->root, "missing");
	const struct run_facts *f = b->f;
	if (f->run.cut)
		miss(list, "the end of the run",
		     "the recorder ended before the job did (killed, or the machine went down); "
		     "how the job ended is not known");
	if (f->run.damaged)
		miss(list, "parts of the recording",
		     "they are damaged and were skipped; what could be read is shown");
	miss_steps(list, f);
	miss_gpu(list, f);
	miss_resources(list, f);
	miss_notices(list, f);
	return list;
}
