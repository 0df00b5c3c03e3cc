/*
 * A writer that remembers instead of writing: the functions of recording.h that sources call, for tests that
 * want to see what a source put at a tick. Include it in one test file, which then links no real writer.
 *
 * Entities and series are kept with all that was said about them; of the samples only the last of each
 * series, and how many there were.
 */
#ifndef SPOTTER_TESTS_FAKE_WRITER_H
#define SPOTTER_TESTS_FAKE_WRITER_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

enum { FAKE_ENTITIES = 1024, FAKE_SERIES = 8192, FAKE_FACTS = 64 };

struct fake_entity {
	enum entity_kind kind;
	uint32_t parent;
	char name[256];
	int64_t key;
	char attrs[1024];
	bool ended;
};

struct fake_series {
	uint32_t entity;
	enum metric_id metric;
	char source[64];
	bool ended;
	unsigned puts, gaps;
	bool put_now, gap_now; /* at this tick */
	int64_t i;
	double f;
	char reason[128];
};

struct rec_writer {
	struct fake_entity entities[FAKE_ENTITIES]; /* id - 1 */
	uint32_t nentities;
	struct fake_series series[FAKE_SERIES];
	uint32_t nseries;
	char facts[FAKE_FACTS][2][512];
	unsigned nfacts;
	char notice_kind[64], notice[512]; /* the last one */
	unsigned nnotices;
	unsigned bad; /* calls that a real writer would have to refuse */
};

int rec_set(struct rec_writer *w, const char *key, const char *value)
{
	unsigned i = 0;
	while (i < w->nfacts && strcmp(w->facts[i][0], key))
		i++;
	if (i == FAKE_FACTS)
		return -1;
	if (i == w->nfacts)
		w->nfacts++;
	snprintf(w->facts[i][0], sizeof(w->facts[i][0]), "%s", key);
	snprintf(w->facts[i][1], sizeof(w->facts[i][1]), "%s", value);
	return 0;
}

int rec_setf(struct rec_writer *w, const char *key, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rec_set(w, key, text);
}

int rec_entity(struct rec_writer *w, enum entity_kind kind, uint32_t parent, const char *name,
	       int64_t key, uint64_t t_start_ns, uint32_t *ret_id)
{
	(void)t_start_ns;
	if (w->nentities == FAKE_ENTITIES)
		return -1;
	struct fake_entity *e = &w->entities[w->nentities++];
	*e = (struct fake_entity){ .kind = kind, .parent = parent, .key = key };
	snprintf(e->name, sizeof(e->name), "%s", name);
	*ret_id = w->nentities;
	return 0;
}

int rec_entity_attrs(struct rec_writer *w, uint32_t entity, const char *json)
{
	if (!entity || entity > w->nentities) {
		w->bad++;
		return -1;
	}
	snprintf(w->entities[entity - 1].attrs, sizeof(w->entities[0].attrs), "%s", json);
	return 0;
}

int rec_entity_rename(struct rec_writer *w, uint32_t entity, const char *name)
{
	if (!entity || entity > w->nentities) {
		w->bad++;
		return -1;
	}
	snprintf(w->entities[entity - 1].name, sizeof(w->entities[0].name), "%s", name);
	return 0;
}

int rec_notice(struct rec_writer *w, uint64_t t_ns, uint32_t entity, const char *kind,
	       const char *text, const char *attrs)
{
	(void)t_ns;
	(void)attrs;
	if (entity > w->nentities)
		w->bad++;
	snprintf(w->notice_kind, sizeof(w->notice_kind), "%s", kind);
	snprintf(w->notice, sizeof(w->notice), "%s", text);
	w->nnotices++;
	return 0;
}

int rec_entity_end(struct rec_writer *w, uint32_t entity, uint64_t t_ns)
{
	(void)t_ns;
	if (!entity || entity > w->nentities || w->entities[entity - 1].ended) {
		w->bad++;
		return -1;
	}
	w->entities[entity - 1].ended = true;
	return 0;
}

int rec_series(struct rec_writer *w, uint32_t entity, enum metric_id metric, const char *source,
	       uint32_t *ret_series)
{
	uint32_t i = 0;
	if (!entity || entity > w->nentities)
		w->bad++;
	while (i < w->nseries && (w->series[i].entity != entity || w->series[i].metric != metric))
		i++;
	if (i == FAKE_SERIES)
		return -1;
	if (i == w->nseries) {
		w->series[w->nseries++] =
			(struct fake_series){ .entity = entity, .metric = metric };
		snprintf(w->series[i].source, sizeof(w->series[i].source), "%s", source);
	}
	*ret_series = i;
	return 0;
}

void rec_series_end(struct rec_writer *w, uint32_t series)
{
	if (series < w->nseries)
		w->series[series].ended = true;
	else
		w->bad++;
}

/* One value a tick, of the metric's type, into a series that goes on. */
static struct fake_series *fake_at(struct rec_writer *w, uint32_t series, int type)
{
	if (series >= w->nseries) /* a real writer ignores it */
		return NULL;
	struct fake_series *s = &w->series[series];
	if (s->put_now || s->gap_now || s->ended ||
	    (type >= 0 && metrics[s->metric].type != (enum metric_type)type))
		w->bad++;
	return s;
}

void rec_put_i64(struct rec_writer *w, uint32_t series, int64_t value)
{
	struct fake_series *s = fake_at(w, series, METRIC_I64);
	if (!s)
		return;
	if (metrics[s->metric].kind == METRIC_COUNTER && s->puts && value < s->i)
		w->bad++;
	s->i = value;
	s->f = (double)value;
	s->puts++;
	s->put_now = true;
}

void rec_put_f64(struct rec_writer *w, uint32_t series, double value)
{
	struct fake_series *s = fake_at(w, series, METRIC_F64);
	if (!s)
		return;
	s->f = value;
	s->puts++;
	s->put_now = true;
}

void rec_gap(struct rec_writer *w, uint32_t series, const char *reason)
{
	struct fake_series *s = fake_at(w, series, -1);
	if (!s)
		return;
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
	s->gaps++;
	s->gap_now = true;
}

static inline struct rec_writer *fake_new(void)
{
	return calloc(1, sizeof(struct rec_writer));
}

/* A new tick: what was put before is no longer "now". */
static inline void fake_tick(struct rec_writer *w)
{
	for (uint32_t i = 0; i < w->nseries; i++)
		w->series[i].put_now = w->series[i].gap_now = false;
}

/* The newest entity of a kind and name (NULL: any name); 0 if there is none. */
static inline uint32_t fake_entity(const struct rec_writer *w, enum entity_kind kind,
				   const char *name)
{
	for (uint32_t i = w->nentities; i-- > 0;)
		if (w->entities[i].kind == kind && (!name || !strcmp(w->entities[i].name, name)))
			return i + 1;
	return 0;
}

/* The series of a metric on an entity; NULL if it was never made. */
static inline struct fake_series *fake_find(struct rec_writer *w, uint32_t entity,
					    enum metric_id metric)
{
	for (uint32_t i = 0; i < w->nseries; i++)
		if (w->series[i].entity == entity && w->series[i].metric == metric)
			return &w->series[i];
	return NULL;
}

/* What was put at this tick; INT64_MIN and NaN where nothing was. */
static inline int64_t fake_i64(struct rec_writer *w, uint32_t entity, enum metric_id metric)
{
	const struct fake_series *s = fake_find(w, entity, metric);
	return s && s->put_now ? s->i : INT64_MIN;
}

static inline double fake_f64(struct rec_writer *w, uint32_t entity, enum metric_id metric)
{
	const struct fake_series *s = fake_find(w, entity, metric);
	return s && s->put_now ? s->f : NAN;
}

/* The reason of the gap at this tick; "" if there is none. */
static inline const char *fake_gap(struct rec_writer *w, uint32_t entity, enum metric_id metric)
{
	const struct fake_series *s = fake_find(w, entity, metric);
	return s && s->gap_now ? s->reason : "";
}

static inline const char *fake_fact(const struct rec_writer *w, const char *key)
{
	for (unsigned i = 0; i < w->nfacts; i++)
		if (!strcmp(w->facts[i][0], key))
			return w->facts[i][1];
	return "";
}

#endif
