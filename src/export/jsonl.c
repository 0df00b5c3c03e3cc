/*
 * JSON lines: one object per line, told apart by "type": first the run, entities and series, then samples in
 * the order of time, events in the order of time, gaps, notices and findings. What is absent is left out.
 */
#include <fnmatch.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/map.h"
#include "export/columns.h"
#include "export/export.h"
#include "export/scan.h"
#include "export/text.h"

static void add_key(struct buf *b, const char *key)
{
	buf_addf(b, ",\"%s\":", key);
}

static void add_text(struct buf *b, const char *key, const char *value)
{
	if (!value)
		return;
	add_key(b, key);
	text_json(b, value);
}

static void add_i64(struct buf *b, const char *key, int64_t value)
{
	add_key(b, key);
	text_i64(b, value);
}

static void add_stamp(struct buf *b, const struct rec_reader *r, uint64_t t_ns)
{
	add_i64(b, "t_ns", (int64_t)t_ns);
	if (!rec_realtime_ns(r, t_ns))
		return;
	add_key(b, "time");
	buf_addc(b, '"');
	text_time(b, r, t_ns);
	buf_addc(b, '"');
}

/* A text; with json, JSON text as a value on one line, or as a string where it does not parse. */
static void add_value(struct buf *b, const char *text, bool json)
{
	json_t *value = json && text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
	char *line = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	if (line)
		buf_adds(b, line);
	else
		text_json(b, text);
	free(line);
	json_decref(value);
}

static void add_raw(struct buf *b, const char *key, const char *json)
{
	if (!json)
		return;
	add_key(b, key);
	add_value(b, json, true);
}

/* Facts are text; these hold a number or a list. (A version "1.13" is none.) */
static bool fact_is_json(const char *key)
{
	static const char *const patterns[] = { "command",      "exit_code", "signal",
						"recorder_pid", "*_ns",      "*_bytes",
						"recording.*",  "self.*" };
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		if (!fnmatch(patterns[i], key, 0))
			return true;
	return false;
}

static int write_run(struct export_job *job)
{
	struct buf *b = &job->out->text;
	const struct rec_fact *facts;
	size_t n = rec_facts(job->r, &facts);
	buf_adds(b, "{\"type\":\"run\"");
	for (size_t i = 0; i < n; i++) {
		buf_addc(b, ',');
		text_json(b, facts[i].key);
		buf_addc(b, ':');
		add_value(b, facts[i].value, fact_is_json(facts[i].key));
	}
	buf_adds(b, "}\n");
	return out_step(job->out);
}

static int write_entities(struct export_job *job)
{
	struct buf *b = &job->out->text;
	const struct rec_entity_info *all;
	size_t n = rec_entities(job->r, &all);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		buf_addf(b, "{\"type\":\"entity\",\"id\":%u", all[i].id);
		if (all[i].parent)
			add_i64(b, "parent", all[i].parent);
		add_text(b, "kind", entity_kind_name(all[i].kind));
		add_text(b, "name", all[i].name);
		add_i64(b, "key", all[i].key);
		add_i64(b, "t0_ns", (int64_t)all[i].t0_ns);
		if (all[i].t1_ns)
			add_i64(b, "t1_ns", (int64_t)all[i].t1_ns);
		add_raw(b, "attrs", all[i].attrs);
		buf_adds(b, "}\n");
		rc = out_step(job->out);
	}
	return rc;
}

static int write_series(struct export_job *job)
{
	struct buf *b = &job->out->text;
	int rc = 0;
	for (size_t i = 0; !rc && i < job->chosen.nseries; i++) {
		const struct rec_series_info *s = job->chosen.series[i];
		buf_addf(b, "{\"type\":\"series\",\"id\":%u,\"entity\":%u", s->id, s->entity);
		add_text(b, "metric", s->name);
		add_text(b, "unit", s->unit);
		add_text(b, "kind", s->kind == METRIC_COUNTER ? "counter" : "gauge");
		add_text(b, "source", s->source);
		buf_adds(b, "}\n");
		rc = out_step(job->out);
	}
	return rc;
}

static void add_sample(struct export_job *job, const struct buf *stamp, const struct scan_value *v)
{
	struct buf *b = &job->out->text;
	const struct rec_series_info *s = job->chosen.series[v->index];
	buf_adds(b, "{\"type\":\"sample\"");
	buf_add(b, stamp->data, stamp->len);
	add_i64(b, "series", s->id);
	add_i64(b, "entity", s->entity);
	add_text(b, "metric", s->name);
	add_key(b, "value");
	if (v->type == METRIC_I64)
		text_i64(b, v->i);
	else
		text_f64(b, v->v);
	buf_adds(b, "}\n");
}

static int write_samples(struct export_job *job, struct err *e)
{
	struct buf stamp = BUF_INIT;
	struct scan *scan;
	struct scan_row row;
	int rc = scan_new(job->r, job->chosen.series, job->chosen.nseries, job->query->t0,
			  job->query->t1, &scan);
	if (rc)
		return err_set(e, -rc, "out of memory");
	while (!rc && (rc = scan_next(scan, &row, e)) > 0) {
		rc = 0;
		buf_clear(&stamp);
		add_stamp(&stamp, job->r, row.t_ns);
		for (size_t i = 0; !rc && i < row.n; i++) {
			add_sample(job, &stamp, &row.values[i]);
			rc = export_step(job, row.t_ns);
		}
	}
	buf_free(&stamp);
	scan_free(scan);
	return rc;
}

static void add_event(struct export_job *job, const struct scan_event *event)
{
	struct buf *b = &job->out->text;
	const struct rec_track_info *track = job->chosen.tracks[event->index];
	struct columns columns;
	columns_of(track, &columns);
	buf_adds(b, "{\"type\":\"event\"");
	add_stamp(b, job->r, (uint64_t)event->row[EV_T]);
	if (event->row[EV_DUR] != REC_NONE)
		add_i64(b, "dur_ns", event->row[EV_DUR]);
	add_i64(b, "entity", track->entity);
	add_text(b, "track", track->name);
	add_key(b, "args");
	columns_args(b, job->r, &columns, event->row);
	buf_adds(b, "}\n");
}

static int write_events(struct export_job *job, struct err *e)
{
	struct scan_events *scan;
	struct scan_event event;
	int rc = scan_events_new(job->r, job->chosen.tracks, job->chosen.ntracks, job->query->t0,
				 job->query->t1, &scan);
	if (rc)
		return err_set(e, -rc, "out of memory");
	while (!rc && (rc = scan_events_next(scan, &event, e)) > 0) {
		add_event(job, &event);
		rc = export_step(job, (uint64_t)event.row[EV_T]);
	}
	scan_events_free(scan);
	return rc;
}

static int write_gaps(struct export_job *job)
{
	struct buf *b = &job->out->text;
	const struct rec_gap_info *all;
	size_t n = rec_gaps(job->r, &all);
	struct map chosen;
	uint64_t value;
	int rc = 0;
	map_init(&chosen);
	for (size_t i = 0; !rc && i < job->chosen.nseries; i++)
		rc = map_put(&chosen, job->chosen.series[i]->id, 1);
	for (size_t i = 0; !rc && i < n; i++) {
		uint64_t until = all[i].t1_ns ? all[i].t1_ns : UINT64_MAX;
		if (all[i].t0_ns >= job->query->t1 || until <= job->query->t0 ||
		    !map_get(&chosen, all[i].series, &value))
			continue;
		buf_adds(b, "{\"type\":\"gap\"");
		add_i64(b, "series", all[i].series);
		add_i64(b, "t0_ns", (int64_t)all[i].t0_ns);
		if (all[i].t1_ns)
			add_i64(b, "t1_ns", (int64_t)all[i].t1_ns);
		add_text(b, "reason", all[i].reason);
		buf_adds(b, "}\n");
		rc = out_step(job->out);
	}
	map_free(&chosen);
	return rc;
}

static int write_notices(struct export_job *job)
{
	struct buf *b = &job->out->text;
	const struct rec_notice_info *all;
	size_t n = rec_notices(job->r, &all);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		if (all[i].t_ns < job->query->t0 || all[i].t_ns >= job->query->t1)
			continue;
		buf_adds(b, "{\"type\":\"notice\"");
		add_stamp(b, job->r, all[i].t_ns);
		if (all[i].entity)
			add_i64(b, "entity", all[i].entity);
		add_text(b, "kind", all[i].kind);
		add_text(b, "text", all[i].text);
		add_raw(b, "attrs", all[i].attrs);
		buf_adds(b, "}\n");
		rc = out_step(job->out);
	}
	return rc;
}

static int write_findings(struct export_job *job)
{
	struct buf *b = &job->out->text;
	const struct rec_finding *all;
	size_t n = rec_kept_findings(job->r, &all);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		buf_adds(b, "{\"type\":\"finding\"");
		add_text(b, "id", all[i].id);
		add_text(b, "severity", all[i].severity);
		add_text(b, "text", all[i].text);
		add_raw(b, "evidence", all[i].evidence);
		add_text(b, "advice", all[i].advice);
		buf_adds(b, "}\n");
		rc = out_step(job->out);
	}
	return rc;
}

static int jsonl_write(struct export_job *job, struct err *e)
{
	int rc = write_run(job);
	if (!rc)
		rc = write_entities(job);
	if (!rc)
		rc = write_series(job);
	if (!rc)
		rc = write_samples(job, e);
	if (!rc)
		rc = write_events(job, e);
	if (!rc)
		rc = write_gaps(job);
	if (!rc)
		rc = write_notices(job);
	if (!rc)
		rc = write_findings(job);
	return rc;
}

extern const struct exporter exporter_jsonl;
const struct exporter exporter_jsonl = {
	.name = "jsonl",
	.help = "JSON lines, one object per sample, event, entity, notice, finding",
	.write = jsonl_write,
};
