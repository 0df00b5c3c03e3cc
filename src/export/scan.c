/* Walking series and tracks in the order of time; see scan.h. */
#include "export/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/*
 * The stretch of time that is in memory, and how long the next one should be. It begins short, so that the first
 * rows come at once, and then follows the density of what was found.
 */
struct window {
	uint64_t a, b; /* now */
	uint64_t end;
	uint64_t size;
	size_t target; /* values to hold at a time, about */
};

#define TARGET_MIN 65536 /* values: some MB */
#define STRETCH    8     /* the most that one window is longer than the one before */

static void window_init(struct window *w, const struct rec_reader *r, uint64_t t0, uint64_t t1,
			size_t n)
{
	uint64_t first = rec_t0(r), last = rec_t1(r);
	const char *text = rec_get(r, "interval_ns");
	uint64_t interval = text ? strtoull(text, NULL, 10) : 0;
	if (!interval || interval > 3600 * NS_PER_S)
		interval = NS_PER_S;
	w->a = w->b = t0 > first ? t0 : first;
	w->end = t1 <= last ? t1 : last + (last < UINT64_MAX);
	w->size = 64 * interval;
	w->target = n > TARGET_MIN / 16 ? n * 16 : TARGET_MIN;
}

static bool window_next(struct window *w)
{
	if (w->b >= w->end)
		return false;
	w->a = w->b;
	w->b = w->end - w->a > w->size ? w->a + w->size : w->end;
	return true;
}

static void window_adapt(struct window *w, size_t found)
{
	size_t room = found ? w->target / found : STRETCH;
	if (found > w->target)
		w->size = w->size / (found / w->target + 1) + 1;
	else if (room > 1 && w->size < UINT64_MAX / STRETCH)
		w->size *= room < STRETCH ? room : STRETCH;
}

/* ----------------------------------------------------------------------------------------- samples */

/* Samples of a series are looked for only while its entity is there, give or take this much. */
#define LIFE_SLACK (120 * NS_PER_S)

struct scan_series {
	uint32_t id;
	enum metric_type type;
	uint64_t from, until; /* when its entity was there; until 0: it still is */
};

struct scan_head {
	uint32_t index;
	size_t at;
	struct rec_points points;
};

struct scan {
	struct rec_reader *r;
	struct window window;
	struct scan_series *series;
	size_t n;
	struct scan_head *heads; /* series that have something in this window */
	size_t nheads;
	struct scan_value *values;
};

static void head_release(struct scan *s)
{
	for (size_t i = 0; i < s->nheads; i++)
		rec_points_free(&s->heads[i].points);
	s->nheads = 0;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	head_release(s);
	free(s->series);
	free(s->heads);
	free(s->values);
	free(s);
}

static struct scan_series series_of(const struct rec_reader *r, const struct rec_series_info *info)
{
	struct scan_series s = { .id = info->id, .type = info->type };
	const struct rec_entity_info *entity = rec_entity_by_id(r, info->entity);
	if (entity) {
		s.from = entity->t0_ns > LIFE_SLACK ? entity->t0_ns - LIFE_SLACK : 0;
		s.until = entity->t1_ns;
		if (s.until && s.until < UINT64_MAX - LIFE_SLACK)
			s.until += LIFE_SLACK;
	}
	return s;
}

int scan_new(struct rec_reader *r, const struct rec_series_info *const *series, size_t n,
	     uint64_t t0, uint64_t t1, struct scan **ret)
{
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->r = r;
	s->n = n;
	s->series = calloc(n + 1, sizeof(*s->series));
	s->heads = calloc(n + 1, sizeof(*s->heads));
	s->values = calloc(n + 1, sizeof(*s->values));
	if (!s->series || !s->heads || !s->values) {
		scan_free(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		s->series[i] = series_of(r, series[i]);
	window_init(&s->window, r, t0, t1, n);
	if (!n)
		s->window.b = s->window.end;
	*ret = s;
	return 0;
}

/* Read the window that was just begun. */
static int scan_fill(struct scan *s, struct err *e)
{
	size_t found = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct scan_series *series = &s->series[i];
		if (series->from >= s->window.b || (series->until && series->until < s->window.a))
			continue;
		struct scan_head head = { .index = (uint32_t)i };
		int rc = rec_read(s->r, series->id, s->window.a, s->window.b, &head.points, e);
		if (rc < 0)
			return rc;
		found += head.points.n;
		if (head.points.n)
			s->heads[s->nheads++] = head;
		else
			rec_points_free(&head.points);
	}
	window_adapt(&s->window, found);
	return 0;
}

/* Take every value of the earliest moment; drop the heads that are used up, keeping the order. */
static void scan_take(struct scan *s, struct scan_row *ret)
{
	uint64_t t = UINT64_MAX;
	for (size_t i = 0; i < s->nheads; i++) {
		uint64_t mine = s->heads[i].points.t_ns[s->heads[i].at];
		t = mine < t ? mine : t;
	}
	size_t n = 0, kept = 0;
	for (size_t i = 0; i < s->nheads; i++) {
		struct scan_head *h = &s->heads[i];
		if (h->points.t_ns[h->at] == t) {
			struct scan_value *v = &s->values[n++];
			v->index = h->index;
			v->type = h->points.i ? METRIC_I64 : METRIC_F64;
			v->i = h->points.i ? h->points.i[h->at] : 0;
			v->v = h->points.v[h->at];
			h->at++;
		}
		if (h->at == h->points.n)
			rec_points_free(&h->points);
		else
			s->heads[kept++] = *h;
	}
	s->nheads = kept;
	*ret = (struct scan_row){ .t_ns = t, .n = n, .values = s->values };
}

int scan_next(struct scan *s, struct scan_row *ret, struct err *e)
{
	while (!s->nheads) {
		if (!window_next(&s->window))
			return 0;
		int rc = scan_fill(s, e);
		if (rc < 0) {
			head_release(s);
			return rc;
		}
	}
	scan_take(s, ret);
	return 1;
}

/* ------------------------------------------------------------------------------------------ events */

struct event_head {
	uint32_t index;
	int ncolumns;
	size_t at, n;
	int64_t *rows;
};

struct scan_events {
	struct rec_reader *r;
	struct window window;
	struct event_head *heads; /* one per track */
	uint32_t *ids;
	size_t n;
};

void scan_events_free(struct scan_events *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->heads && i < s->n; i++)
		free(s->heads[i].rows);
	free(s->heads);
	free(s->ids);
	free(s);
}

int scan_events_new(struct rec_reader *r, const struct rec_track_info *const *tracks, size_t n,
		    uint64_t t0, uint64_t t1, struct scan_events **ret)
{
	struct scan_events *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->r = r;
	s->n = n;
	s->heads = calloc(n + 1, sizeof(*s->heads));
	s->ids = calloc(n + 1, sizeof(*s->ids));
	if (!s->heads || !s->ids) {
		scan_events_free(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		s->heads[i] = (struct event_head){ .index = (uint32_t)i,
						   .ncolumns = tracks[i]->ncolumns };
		s->ids[i] = tracks[i]->id;
	}
	window_init(&s->window, r, t0, t1, n);
	if (!n)
		s->window.b = s->window.end;
	*ret = s;
	return 0;
}

static int events_fill(struct scan_events *s, struct err *e)
{
	size_t found = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct event_head *h = &s->heads[i];
		free(h->rows);
		h->rows = NULL;
		h->at = h->n = 0;
		if (h->ncolumns < 2)
			continue;
		int rc = rec_read_events(s->r, s->ids[i], s->window.a, s->window.b, &h->rows, &h->n,
					 e);
		if (rc < 0)
			return rc;
		found += h->n * (size_t)h->ncolumns;
	}
	window_adapt(&s->window, found);
	return 0;
}

int scan_events_next(struct scan_events *s, struct scan_event *ret, struct err *e)
{
	for (;;) {
		struct event_head *first = NULL;
		for (size_t i = 0; i < s->n; i++) {
			struct event_head *h = &s->heads[i];
			if (h->at < h->n &&
			    (!first || h->rows[h->at * (size_t)h->ncolumns] <
					       first->rows[first->at * (size_t)first->ncolumns]))
				first = h;
		}
		if (first) {
			*ret = (struct scan_event){
				.index = first->index,
				.ncolumns = first->ncolumns,
				.row = first->rows + first->at++ * (size_t)first->ncolumns,
			};
			return 1;
		}
		if (!window_next(&s->window))
			return 0;
		int rc = events_fill(s, e);
		if (rc < 0)
			return rc;
	}
}
