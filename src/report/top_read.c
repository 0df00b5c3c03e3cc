/* Reading the last moments of a recording; see top_read.h. */
#include "report/top_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

#define KEY(entity, metric) ((uint64_t)(entity) << 16 | (uint64_t)(metric))

static uint64_t interval_of(const struct rec_reader *r)
{
	const char *text = rec_get(r, "interval_ns");
	uint64_t ns = text ? strtoull(text, NULL, 10) : 0;
	return ns && ns < 3600 * NS_PER_S ? ns : NS_PER_S;
}

static int index_series(struct top_reader *t)
{
	const struct rec_series_info *all;
	size_t n = rec_serieses(t->r, &all);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		if (all[i].metric >= 0)
			rc = map_put(&t->series, KEY(all[i].entity, all[i].metric), all[i].id);
	return rc;
}

/* The samples of a series in the last `window` before `now`; false if there are none. */
static bool read_window(struct top_reader *t, uint64_t id, uint64_t window, struct rec_points *ret)
{
	uint64_t from = t->now > window ? t->now - window : 0;
	int rc = rec_read(t->r, (uint32_t)id, from, t->now + 1, ret, NULL);
	if (rc < 0) {
		t->rc = t->rc ? t->rc : rc;
		return false;
	}
	if (!ret->n)
		rec_points_free(ret);
	return ret->n > 0;
}

/* The last tick: an event may reach beyond it, so what ticks the most surely is asked. */
static void find_now(struct top_reader *t)
{
	static const struct {
		enum entity_kind kind;
		enum metric_id metric;
	} steady[] = {
		{ ENTITY_HOST, METRIC_CPU_USER },
		{ ENTITY_JOB, METRIC_CPU_USER },
		{ ENTITY_HOST, METRIC_MEMORY_AVAILABLE },
	};
	uint64_t end = rec_t1(t->r), last = 0;
	t->now = end;
	for (size_t i = 0; i < sizeof(steady) / sizeof(*steady); i++) {
		const struct rec_entity_info *e = rec_entity_first(t->r, steady[i].kind);
		uint64_t id;
		if (!e || !map_get(&t->series, KEY(e->id, steady[i].metric), &id))
			continue;
		for (uint64_t w = t->window_ns; w <= t->window_ns * 256; w *= 16) {
			struct rec_points p = { 0 };
			if (!read_window(t, id, w, &p))
				continue;
			last = p.t_ns[p.n - 1] > last ? p.t_ns[p.n - 1] : last;
			rec_points_free(&p);
			break;
		}
	}
	if (last)
		t->now = last;
}

/* Of a run that has ended, the last moment at which something of it was there: what comes after is empty. */
static uint64_t before_the_end(const struct rec_reader *r, uint64_t now)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(r, &all);
	uint64_t end = 0;
	for (size_t i = 0; i < n; i++) {
		if (all[i].kind != ENTITY_PROCESS)
			continue;
		if (!all[i].t1_ns)
			return now;
		end = all[i].t1_ns > end ? all[i].t1_ns : end;
	}
	return end && end <= now ? end - 1 : now;
}

/* Series whose entity is there, times ticks per second. */
static void count_rate(struct top_reader *t, uint64_t interval_ns)
{
	const struct rec_series_info *all;
	size_t n = rec_serieses(t->r, &all), alive = 0;
	for (size_t i = 0; i < n; i++) {
		const struct rec_entity_info *e = rec_entity_by_id(t->r, all[i].entity);
		alive += e && (!e->t1_ns || e->t1_ns >= t->now);
	}
	t->samples_per_s = alive ? (double)alive * (double)NS_PER_S / (double)interval_ns : NAN;
}

int top_reader_init(struct top_reader *t, struct rec_reader *r)
{
	uint64_t interval = interval_of(r);
	*t = (struct top_reader){ .r = r };
	map_init(&t->series);
	t->window_ns = interval * 3 > 2 * NS_PER_S ? interval * 3 : 2 * NS_PER_S;
	int rc = index_series(t);
	if (rc) {
		top_reader_release(t);
		return rc;
	}
	find_now(t);
	if (!rec_is_live(r))
		t->now = before_the_end(r, t->now);
	count_rate(t, interval);
	return 0;
}

void top_reader_release(struct top_reader *t)
{
	map_free(&t->series);
}

static double last_within(struct top_reader *t, uint32_t entity, enum metric_id metric,
			  uint64_t window)
{
	struct rec_points p = { 0 };
	uint64_t id;
	if (!map_get(&t->series, KEY(entity, metric), &id) || !read_window(t, id, window, &p))
		return NAN;
	double v = p.v[p.n - 1];
	rec_points_free(&p);
	return v;
}

double top_last(struct top_reader *t, uint32_t entity, enum metric_id metric)
{
	return last_within(t, entity, metric, t->window_ns);
}

double top_recent(struct top_reader *t, uint32_t entity, enum metric_id metric)
{
	return last_within(t, entity, metric, TOP_CHART_SECONDS * NS_PER_S);
}

double top_rate(struct top_reader *t, uint32_t entity, enum metric_id metric)
{
	struct rec_points p = { 0 };
	uint64_t id;
	if (!map_get(&t->series, KEY(entity, metric), &id) || !read_window(t, id, t->window_ns, &p))
		return NAN;
	uint64_t dt = p.t_ns[p.n - 1] - p.t_ns[0];
	double rate = p.n > 1 && dt ? (p.v[p.n - 1] - p.v[0]) / (double)dt * (double)NS_PER_S : NAN;
	rec_points_free(&p);
	return rate;
}

double top_sum(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

void top_chart(struct top_reader *t, uint32_t entity, enum metric_id metric, double scale,
	       double *v)
{
	struct rec_bucket buckets[TOP_CHART_PARTS];
	uint64_t id, span = TOP_CHART_SECONDS * NS_PER_S;
	uint64_t from = t->now > span ? t->now - span : 0;
	if (!map_get(&t->series, KEY(entity, metric), &id))
		return;
	int rc = rec_chart(t->r, (uint32_t)id, from, from + span, TOP_CHART_PARTS, buckets, NULL);
	if (rc < 0) {
		t->rc = t->rc ? t->rc : rc;
		return;
	}
	for (size_t i = 0; i < TOP_CHART_PARTS; i++)
		v[i] = top_sum(v[i], buckets[i].mean * scale);
}
