/*
 * Charts: n buckets of a span of time. A chunk that lies in one bucket is taken from its summary;
 * others are decoded. A counter is shown as its rate: the rate between two samples belongs to the
 * bucket of the second, and a bucket's mean is the increase over the time it took. A counter that
 * goes back was reset: that counts as no increase.
 */
#include "recording/reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recording/varint.h"

__extension__ typedef unsigned __int128 wide;

struct chart {
	struct rec_bucket *bucket; /* mean holds a sum until the end */
	double *seconds;           /* by bucket, for counters */
	uint64_t t0, t1;
	size_t n;
	enum metric_kind kind;
	enum metric_type type;
	uint64_t last_t; /* of a counter: the sample before; 0: none yet */
	int64_t last;
};

static bool inside(const struct chart *c, uint64_t t)
{
	return t >= c->t0 && t < c->t1;
}

static size_t place(const struct chart *c, uint64_t t)
{
	return (size_t)((wide)(t - c->t0) * c->n / (c->t1 - c->t0));
}

static void add(struct chart *c, uint64_t t, uint64_t count, double min, double max, double sum)
{
	struct rec_bucket *b = &c->bucket[place(c, t)];
	b->min = !b->count || min < b->min ? min : b->min;
	b->max = !b->count || max > b->max ? max : b->max;
	b->mean += sum;
	b->count += count;
}

static double increase(const struct chart *c, int64_t from, int64_t to)
{
	double d = c->type == METRIC_I64
			   ? (double)wrap_sub(to, from)
			   : reader_number(to, c->type) - reader_number(from, c->type);
	return d > 0 ? d : 0;
}

static void add_sample(struct chart *c, uint64_t t, int64_t v)
{
	if (c->kind == METRIC_GAUGE) {
		double x = reader_number(v, c->type);
		if (inside(c, t))
			add(c, t, 1, x, x, x);
		return;
	}
	if (c->last_t && t > c->last_t && inside(c, t)) {
		double d = increase(c, c->last, v), s = (double)(t - c->last_t) * 1e-9;
		add(c, t, 1, d / s, d / s, d);
		c->seconds[place(c, t)] += s;
	}
	c->last_t = t;
	c->last = v;
}

static void add_summary(struct chart *c, const struct chunk_summary *s)
{
	if (c->kind == METRIC_GAUGE) {
		add(c, s->t0, s->n, s->min, s->max, s->sum);
		return;
	}
	add_sample(c, s->t0, s->first);
	if (s->n > 1) {
		add(c, s->t0, s->n - 1, s->min, s->max, s->sum);
		c->seconds[place(c, s->t0)] += (double)(s->t1 - s->t0) * 1e-9;
	}
	c->last_t = s->t1;
	c->last = s->last;
}

static int add_chunk(struct rec_reader *r, struct chart *c, size_t batch, size_t series)
{
	struct chunk_summary s;
	struct chunk_values v;
	int rc = chunk_open(r, batch, series, &s);
	if (rc <= 0)
		return rc;
	rc = 0;
	if (s.t1 < c->t0) { /* only what comes before a counter's first sample */
		c->last_t = s.t1;
		c->last = s.last;
	} else if (inside(c, s.t0) && inside(c, s.t1) && place(c, s.t0) == place(c, s.t1)) {
		add_summary(c, &s);
	} else if (s.t0 < c->t1) {
		rc = chunk_values(r, batch, series, &s, &v);
		for (size_t i = 0; !rc && i < v.n; i++)
			add_sample(c, v.t[i], v.v[i]);
	}
	chunk_done(r);
	return rc == -EBADMSG ? 0 : rc;
}

static int fill(struct rec_reader *r, struct chart *c, size_t series)
{
	const struct reader_tail *t = &r->series.at[series].tail;
	size_t from, to;
	int rc = 0;
	chunk_range(r, series, c->t0, c->t1, &from, &to);
	if (from && c->kind == METRIC_COUNTER)
		from--;
	for (size_t b = from; !rc && b < to; b++)
		rc = add_chunk(r, c, b, series);
	for (uint32_t i = 0; !rc && i < t->n; i++)
		add_sample(c, r->tail_times.at[t->tick[i]], t->v[i]);
	return rc;
}

static void finish(struct chart *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct rec_bucket *b = &c->bucket[i];
		if (!b->count)
			b->min = b->max = b->mean = NAN;
		else
			b->mean /= c->kind == METRIC_COUNTER ? c->seconds[i] : (double)b->count;
	}
}

int rec_chart(struct rec_reader *r, uint32_t series, uint64_t t0, uint64_t t1, size_t n,
	      struct rec_bucket *ret, struct err *e)
{
	int64_t at = catalogue_series(r, series);
	if (at < 0)
		return err_set(e, ENOENT, "%s: there is no series %u", r->path, series);
	if (!n || t1 <= t0)
		return err_set(e, EINVAL, "a chart needs a span of time and at least one bucket");
	struct chart c = { .bucket = ret,
			   .t0 = t0,
			   .t1 = t1,
			   .n = n,
			   .kind = r->serieses.at[at].kind,
			   .type = r->serieses.at[at].type };
	c.seconds = calloc(n, sizeof(*c.seconds));
	if (!c.seconds)
		return err_set(e, ENOMEM, "%s: out of memory", r->path);
	memset(ret, 0, n * sizeof(*ret));
	int rc = reader_begin(r, e);
	if (!rc) {
		rc = fill(r, &c, (size_t)at);
		reader_end(r);
		if (rc)
			err_set(e, -rc, "%s: %s", r->path, strerror(-rc));
	}
	finish(&c);
	free(c.seconds);
	return rc;
}
