/*
 * Read everything there is in a recording, in every way there is, and believe nothing: for damaged
 * files, where the point is that all of it returns.
 */
#ifndef SPOTTER_TESTS_RECORDING_WALK_H
#define SPOTTER_TESTS_RECORDING_WALK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

/* What was seen, so that the compiler cannot leave anything out. */
struct walk {
	uint64_t samples, events, texts, failed;
};

static inline void walk_text(struct walk *w, const char *s)
{
	w->texts += s ? strlen(s) : 0;
}

static inline void walk_series(struct rec_reader *r, const struct rec_series_info *s,
			       struct walk *w)
{
	struct rec_points p;
	struct rec_bucket b[7];
	struct rec_size size;
	walk_text(w, s->name);
	walk_text(w, s->unit);
	walk_text(w, s->source);
	w->failed += rec_series_size(r, s->id, &size, NULL) != 0;
	if (rec_read(r, s->id, 0, UINT64_MAX, &p, NULL)) {
		w->failed++;
	} else {
		for (size_t i = 0; i < p.n; i++)
			w->samples += p.t_ns[i] > 0 && p.v[i] == p.v[i] && (!p.i || p.i[i]);
		rec_points_free(&p);
	}
	uint64_t t0 = rec_t0(r), t1 = rec_t1(r);
	w->failed += rec_chart(r, s->id, t0, t1 > t0 ? t1 : t0 + 1, 7, b, NULL) != 0;
	w->failed += rec_chart(r, s->id, 0, UINT64_MAX, 3, b, NULL) != 0;
}

static inline void walk_track(struct rec_reader *r, const struct rec_track_info *t, struct walk *w)
{
	int64_t *rows;
	size_t n;
	struct rec_size size;
	walk_text(w, t->name);
	walk_text(w, t->columns);
	w->failed += rec_track_size(r, t->id, &size, NULL) != 0;
	if (rec_read_events(r, t->id, 0, UINT64_MAX, &rows, &n, NULL)) {
		w->failed++;
		return;
	}
	for (size_t i = 0; i < n * (size_t)t->ncolumns; i++)
		w->events += rows[i] != REC_NONE;
	free(rows);
}

static inline void walk_catalogue(struct rec_reader *r, struct walk *w)
{
	const struct rec_fact *facts;
	const struct rec_entity_info *entities;
	const struct rec_notice_info *notices;
	const struct rec_gap_info *gaps;
	const struct rec_finding *findings;
	for (size_t i = 0, n = rec_facts(r, &facts); i < n; i++) {
		walk_text(w, facts[i].key);
		walk_text(w, facts[i].value);
	}
	for (size_t i = 0, n = rec_entities(r, &entities); i < n; i++) {
		walk_text(w, entities[i].name);
		walk_text(w, entities[i].attrs);
		w->failed += rec_entity_by_id(r, entities[i].id) == NULL;
		rec_series_of(r, entities[i].id, METRIC_CPU_USER);
	}
	for (size_t i = 0, n = rec_notices(r, &notices); i < n; i++)
		walk_text(w, notices[i].text);
	for (size_t i = 0, n = rec_gaps(r, &gaps); i < n; i++)
		walk_text(w, gaps[i].reason);
	for (size_t i = 0, n = rec_kept_findings(r, &findings); i < n; i++)
		walk_text(w, findings[i].advice);
	for (uint32_t i = 0; i < 20; i++)
		walk_text(w, rec_string_get(r, i));
	w->texts += rec_realtime_ns(r, 12345) & 1;
	w->texts += rec_is_live(r);
}

static inline struct walk walk_all(struct rec_reader *r)
{
	struct walk w = { 0 };
	const struct rec_series_info *series;
	const struct rec_track_info *tracks;
	walk_catalogue(r, &w);
	for (size_t i = 0, n = rec_serieses(r, &series); i < n; i++)
		walk_series(r, &series[i], &w);
	for (size_t i = 0, n = rec_tracks(r, &tracks); i < n; i++)
		walk_track(r, &tracks[i], &w);
	w.failed += rec_refresh(r, NULL) < 0;
	return w;
}

#endif
