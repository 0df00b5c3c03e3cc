/* Counting what a recording holds; see inventory.h. */
#include "report/inventory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

#define NOTICES_SHOWN 20

/* Things with the same name, counted together, in the order in which they came. */
struct group {
	const char *name, *detail;            /* detail: the reason of gaps; NULL otherwise */
	const struct rec_series_info *series; /* the first of them */
	unsigned kinds;                       /* of entities: 1 << kind */
	uint64_t members, n, bytes, ns;
};

struct groups {
	struct group *v;
	size_t n, cap;
};

/* The group, made where it is new; NULL where memory is short. */
static struct group *group(struct groups *g, const char *name, const char *detail)
{
	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->v[i].name, name) && (!detail || !strcmp(g->v[i].detail, detail)))
			return &g->v[i];
	if (g->n == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 64;
		struct group *v = realloc(g->v, cap * sizeof(*v));
		if (!v)
			return NULL;
		g->v = v;
		g->cap = cap;
	}
	g->v[g->n] = (struct group){ .name = name, .detail = detail };
	return &g->v[g->n++];
}

/* Local time as people read it; UTC with nanoseconds is in the export. */
static void time_of(const struct rec_reader *r, uint64_t t_ns, const char *format, char *text,
		    size_t cap)
{
	struct tm tm;
	uint64_t real = rec_realtime_ns(r, t_ns);
	time_t s = (time_t)(real / NS_PER_S);
	if (!real || !localtime_r(&s, &tm) || !strftime(text, cap, format, &tm))
		snprintf(text, cap, "-");
}

/* -------------------------------------------------------------------------------------------- head */

static const char *state_of(struct rec_reader *r)
{
	if (rec_is_live(r))
		return "being recorded";
	return rec_get(r, "exit_code") || rec_get(r, "signal") ? "complete"
							       : "the recorder did not end it";
}

static void add_head(struct rec_reader *r, const char *path, struct doc_node *root)
{
	char begin[64];
	struct doc_node *n = doc_section(doc_object(root, "recording"), "spotter ▸", DOC_HEAD);
	uint64_t t0 = rec_t0(r), t1 = rec_t1(r);
	doc_show(doc_string(n, "path", path), NULL, NULL);
	doc_show(doc_string(n, "state", state_of(r)), NULL, NULL);
	doc_bool(n, "live", rec_is_live(r));
	if (!t0)
		return;
	time_of(r, t0, "%Y-%m-%d %H:%M:%S", begin, sizeof(begin));
	doc_show(doc_string(n, "begin", begin), NULL, NULL);
	doc_show(doc_number(n, "span_s", (double)(t1 - t0) / (double)NS_PER_S, "s"), NULL, NULL);
	doc_int(n, "t0_ns", (int64_t)t0, "ns");
	doc_int(n, "t1_ns", (int64_t)t1, "ns");
}

static uint64_t total(const struct groups *g)
{
	uint64_t n = 0;
	for (size_t i = 0; i < g->n; i++)
		n += g->v[i].n;
	return n;
}

static void add_file(struct rec_reader *r, const char *path, const struct groups *metric_groups,
		     const struct groups *track_groups, struct doc_node *root)
{
	struct stat st;
	struct doc_node *n = doc_section(doc_object(root, "file"), "FILE", DOC_LINE);
	double bytes = stat(path, &st) ? NAN : (double)st.st_size;
	doc_show(doc_number(n, "bytes", bytes, "bytes"), NULL, NULL);
	doc_show(doc_int(n, "samples", (int64_t)total(metric_groups), "count"), NULL, "samples");
	doc_show(doc_int(n, "events", (int64_t)total(track_groups), "count"), NULL, "events");
	struct doc_node *damaged = doc_int(n, "damaged_parts", (int64_t)rec_damaged(r), "count");
	if (rec_damaged(r))
		doc_tone(doc_show(damaged, NULL, "parts are damaged and left out"), DOC_BAD);
}

/* ------------------------------------------------------------------------------- facts, entities */

/* In JSON an object; in text a table of its members. */
static void add_facts(struct rec_reader *r, struct doc_node *root)
{
	const struct rec_fact *facts;
	size_t n = rec_facts(r, &facts);
	struct doc_node *object = doc_object(root, "facts");
	struct doc_node *rows = doc_section(doc_array(root, NULL), "FACTS", DOC_TABLE);
	for (size_t i = 0; i < n; i++) {
		struct doc_node *row = doc_object(rows, NULL);
		doc_string(object, facts[i].key, facts[i].value);
		doc_show(doc_string(row, NULL, facts[i].key), NULL, NULL);
		doc_show(doc_string(row, NULL, facts[i].value), NULL, NULL);
	}
}

static void add_entities(struct rec_reader *r, struct doc_node *root)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(r, &all);
	int64_t counts[ENTITY__COUNT] = { 0 };
	struct doc_node *section = doc_section(doc_object(root, "entities"), "ENTITIES", DOC_LINE);
	for (size_t i = 0; i < n; i++)
		if (all[i].kind < ENTITY__COUNT)
			counts[all[i].kind]++;
	for (int kind = 0; kind < ENTITY__COUNT; kind++) {
		const char *name = entity_kind_name((enum entity_kind)kind);
		if (counts[kind])
			doc_show(doc_int(section, name, counts[kind], "count"), name, NULL);
	}
}

/* ---------------------------------------------------------------------------- metrics and tracks */

static int count_metrics(struct rec_reader *r, struct groups *g, struct err *e)
{
	const struct rec_series_info *all;
	size_t n = rec_serieses(r, &all);
	for (size_t i = 0; i < n; i++) {
		struct rec_size size;
		int rc = rec_series_size(r, all[i].id, &size, e);
		if (rc < 0)
			return rc;
		struct group *m = group(g, all[i].name, NULL);
		const struct rec_entity_info *of = rec_entity_by_id(r, all[i].entity);
		if (!m)
			return -ENOMEM;
		m->series = m->series ? m->series : &all[i];
		m->kinds |= of && of->kind < ENTITY__COUNT ? 1U << of->kind : 0;
		m->members++;
		m->n += size.n;
		m->bytes += size.bytes;
	}
	return 0;
}

static int count_tracks(struct rec_reader *r, struct groups *g, struct err *e)
{
	const struct rec_track_info *all;
	size_t n = rec_tracks(r, &all);
	for (size_t i = 0; i < n; i++) {
		struct rec_size size;
		int rc = rec_track_size(r, all[i].id, &size, e);
		if (rc < 0)
			return rc;
		struct group *t = group(g, all[i].name, NULL);
		if (!t)
			return -ENOMEM;
		t->members++;
		t->n += size.n;
		t->bytes += size.bytes;
	}
	return 0;
}

static void add_kinds(struct doc_node *row, unsigned kinds)
{
	struct buf text = BUF_INIT;
	struct doc_node *list = doc_array(row, "entities");
	for (int kind = 0; kind < ENTITY__COUNT; kind++) {
		const char *name = entity_kind_name((enum entity_kind)kind);
		if (!(kinds & 1U << kind))
			continue;
		doc_string(list, NULL, name);
		buf_addf(&text, "%s%s", text.len ? " " : "", name);
	}
	doc_show(doc_string(row, NULL, text.data), "of", NULL);
	buf_free(&text);
}

static void add_size(struct doc_node *row, const struct group *g, const char *what,
		     const char *per_one)
{
	double each = g->bytes && g->n ? (double)g->bytes / (double)g->n : NAN;
	doc_show(doc_int(row, what, (int64_t)g->n, "count"), what, NULL);
	doc_int(row, "bytes", (int64_t)g->bytes, "bytes");
	doc_show(doc_number(row, per_one, each, "count"), "bytes each", NULL);
}

static void add_metrics(const struct groups *g, struct doc_node *root)
{
	struct doc_node *rows = doc_section(doc_array(root, "metrics"), "METRICS", DOC_TABLE);
	for (size_t i = 0; i < g->n; i++) {
		const struct group *m = &g->v[i];
		bool counter = m->series->kind == METRIC_COUNTER;
		struct doc_node *row = doc_object(rows, NULL);
		doc_show(doc_string(row, "name", m->name), "name", NULL);
		doc_show(doc_string(row, "unit", m->series->unit), "unit", NULL);
		doc_show(doc_string(row, "kind", counter ? "counter" : "gauge"), "kind", NULL);
		doc_show(doc_int(row, "series", (int64_t)m->members, "count"), "series", NULL);
		add_size(row, m, "samples", "bytes_per_sample");
		add_kinds(row, m->kinds);
		doc_show(doc_string(row, "source", m->series->source), "source", NULL);
	}
}

static void add_tracks(const struct groups *g, struct doc_node *root)
{
	struct doc_node *rows = doc_section(doc_array(root, "tracks"), "EVENTS", DOC_TABLE);
	for (size_t i = 0; i < g->n; i++) {
		struct doc_node *row = doc_object(rows, NULL);
		doc_show(doc_string(row, "name", g->v[i].name), "name", NULL);
		doc_show(doc_int(row, "tracks", (int64_t)g->v[i].members, "count"), "tracks", NULL);
		add_size(row, &g->v[i], "events", "bytes_per_event");
	}
}

/* -------------------------------------------------------------------------------- gaps and notices */

/* By metric and reason: thousands of processes without permission are one line. */
static int add_gaps(struct rec_reader *r, struct doc_node *root)
{
	const struct rec_gap_info *all;
	const struct rec_series_info *series;
	struct groups g = { 0 };
	size_t n = rec_gaps(r, &all), nseries = rec_serieses(r, &series);
	for (size_t i = 0; i < n; i++) {
		/* Ids are dense from 0 unless the file is damaged. */
		uint32_t id = all[i].series;
		const char *name = id < nseries && series[id].id == id ? series[id].name : "?";
		struct group *gap = group(&g, name, all[i].reason ? all[i].reason : "");
		if (!gap) {
			free(g.v);
			return -ENOMEM;
		}
		uint64_t end = all[i].t1_ns ? all[i].t1_ns : rec_t1(r);
		gap->n++;
		gap->ns += end > all[i].t0_ns ? end - all[i].t0_ns : 0;
	}
	struct doc_node *rows = doc_section(doc_array(root, "gaps"), "NOT READ", DOC_TABLE);
	for (size_t i = 0; i < g.n; i++) {
		struct doc_node *row = doc_object(rows, NULL);
		doc_show(doc_string(row, "metric", g.v[i].name), "metric", NULL);
		doc_show(doc_string(row, "reason", g.v[i].detail), "reason", NULL);
		doc_show(doc_int(row, "gaps", (int64_t)g.v[i].n, "count"), "gaps", NULL);
		doc_show(doc_number(row, "total_s", (double)g.v[i].ns / (double)NS_PER_S, "s"),
			 "together", NULL);
	}
	free(g.v);
	return 0;
}

static void add_notices(struct rec_reader *r, struct doc_node *root)
{
	const struct rec_notice_info *all;
	size_t n = rec_notices(r, &all);
	struct doc_node *list = doc_array(root, "notices");
	struct doc_node *rows = doc_section(doc_array(root, NULL), "NOTICES (the last)", DOC_TABLE);
	for (size_t i = 0; i < n; i++) {
		char at[32];
		struct doc_node *item = doc_object(list, NULL);
		doc_int(item, "t_ns", (int64_t)all[i].t_ns, "ns");
		doc_string(item, "kind", all[i].kind);
		doc_string(item, "text", all[i].text);
		if (i + NOTICES_SHOWN < n)
			continue;
		time_of(r, all[i].t_ns, "%H:%M:%S", at, sizeof(at));
		struct doc_node *row = doc_object(rows, NULL);
		doc_show(doc_string(row, NULL, at), "time", NULL);
		doc_show(doc_string(row, NULL, all[i].kind), "kind", NULL);
		doc_show(doc_string(row, NULL, all[i].text), "what", NULL);
	}
}

static void add_findings(struct rec_reader *r, struct doc_node *root)
{
	const struct rec_finding *all;
	size_t n = rec_kept_findings(r, &all);
	struct doc_node *list = doc_array(root, "findings");
	for (size_t i = 0; i < n; i++)
		doc_string(list, NULL, all[i].id);
}

/* ------------------------------------------------------------------------------------------- whole */

static int build(struct rec_reader *r, const char *path, struct doc_node *root, struct err *e)
{
	struct groups of_metrics = { 0 }, of_tracks = { 0 };
	int rc = count_metrics(r, &of_metrics, e);
	if (!rc)
		rc = count_tracks(r, &of_tracks, e);
	if (!rc) {
		add_head(r, path, root);
		add_file(r, path, &of_metrics, &of_tracks, root);
		add_entities(r, root);
		add_facts(r, root);
		add_metrics(&of_metrics, root);
		add_tracks(&of_tracks, root);
		rc = add_gaps(r, root);
		add_notices(r, root);
		add_findings(r, root);
	}
	free(of_metrics.v);
	free(of_tracks.v);
	return rc;
}

int inventory_build(struct rec_reader *r, const char *path, struct doc **ret, struct err *e)
{
	struct err words = { 0 };
	struct doc *doc = doc_new();
	int rc = doc ? build(r, path, doc_root(doc), &words) : -ENOMEM;
	if (!rc && doc_failed(doc))
		rc = -ENOMEM;
	if (rc) {
		doc_free(doc);
		return err_set(e, -rc, "%s", words.text[0] ? words.text : strerror(-rc));
	}
	*ret = doc;
	return 0;
}
