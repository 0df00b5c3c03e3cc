/*
 * From ticks to columns: when enough ticks are held they become one batch (the times, once for all
 * series) and one chunk per series (its values, and the summary that charts are drawn from).
 */
#include "recording/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recording/varint.h"

#define GROUP 65536 /* values turned into columns at a time: bounds the working memory */

/* Working memory of one batch. */
struct columns {
	uint64_t *times;  /* of the ticks */
	uint32_t *at;     /* by series: where its values begin, then where the next one goes */
	uint32_t *counts; /* by series */
	int64_t *vals;
	uint16_t *ticks; /* of each value, its tick */
	size_t cap;
	struct buf *blob;
};

static void columns_free(struct columns *c)
{
	free(c->times);
	free(c->at);
	free(c->counts);
	free(c->vals);
	free(c->ticks);
}

static int columns_alloc(struct columns *c, const struct rec_writer *w)
{
	c->times = malloc(w->log.n * sizeof(*c->times));
	c->at = malloc((w->nseries + 1) * sizeof(*c->at));
	c->counts = calloc(w->nseries + 1, sizeof(*c->counts));
	return c->times && c->at && c->counts ? SQLITE_OK : SQLITE_NOMEM;
}

static void count_values(const struct ticks *l, struct columns *c)
{
	for (size_t i = 0; i < l->n;) {
		/* Ticks that share their list of series are counted together. */
		const struct tick *t = &l->tick[i];
		size_t run = 1;
		while (i + run < l->n && t[run].ids == t->ids && t[run].n == t->n)
			run++;
		for (size_t k = 0; k < t->n; k++)
			c->counts[l->ids[t->ids + k]] += (uint32_t)run;
		i += run;
	}
}

/*
 * How many series from `from` on fit into one group, at least one; where their values will stand.
 */
static uint32_t plan_group(const struct rec_writer *w, struct columns *c, uint32_t from,
			   size_t *ret_n)
{
	size_t n = 0;
	uint32_t s = from;
	for (; s < w->nseries && (s == from || n + c->counts[s] <= GROUP); s++) {
		c->at[s] = (uint32_t)n;
		n += c->counts[s];
	}
	*ret_n = n;
	return s;
}

static int grow_group(struct columns *c, size_t n)
{
	if (n <= c->cap)
		return SQLITE_OK;
	free(c->vals);
	free(c->ticks);
	c->cap = 0;
	c->vals = malloc(n * sizeof(*c->vals));
	c->ticks = malloc(n * sizeof(*c->ticks));
	if (!c->vals || !c->ticks)
		return SQLITE_NOMEM;
	c->cap = n;
	return SQLITE_OK;
}

/*
 * Sort the values of the series [from, to) by series. A second value at one tick replaces the
 * first.
 */
static void fill_group(const struct ticks *l, struct columns *c, uint32_t from, uint32_t to)
{
	uint32_t *counts = c->counts, *at = c->at;
	for (size_t i = 0; i < l->n; i++) {
		const uint32_t *ids = l->ids + l->tick[i].ids;
		const int64_t *vals = l->vals + l->tick[i].vals;
		for (size_t k = 0; k < l->tick[i].n; k++) {
			uint32_t s = ids[k];
			if (s - from >= to - from)
				continue;
			c->vals[at[s]] = vals[k];
			c->ticks[at[s]++] = (uint16_t)i;
		}
	}
	/* at is now the end of each column; drop doubles in place. */
	for (uint32_t s = from; s < to; s++) {
		uint32_t begin = at[s] - counts[s], out = begin;
		for (uint32_t i = begin; i < at[s]; i++) {
			if (out > begin && c->ticks[out - 1] == c->ticks[i])
				out--;
			c->ticks[out] = c->ticks[i];
			c->vals[out++] = c->vals[i];
		}
		at[s] = begin;
		counts[s] = out - begin;
	}
}

/* Which ticks have a value: lengths of runs, absent and present in turn, up to the last value. */
static int put_presence(struct buf *b, const uint16_t *ticks, size_t n)
{
	size_t runs = 0;
	for (size_t i = 0; i < n; i++)
		runs += !i || ticks[i] != ticks[i - 1] + 1;
	if (buf_reserve(b, (2 * runs + 1) * VARINT_MAX))
		return SQLITE_NOMEM;
	uint8_t *p = varint_put((uint8_t *)b->data + b->len, runs);
	size_t tick = 0;
	for (size_t i = 0; i < n;) {
		size_t begin = i++;
		while (i < n && ticks[i] == ticks[i - 1] + 1)
			i++;
		p = varint_put(p, ticks[begin] - tick);
		p = varint_put(p, i - begin);
		tick = (size_t)ticks[i - 1] + 1;
	}
	b->len = (size_t)((char *)p - b->data);
	return SQLITE_OK;
}

static double number(int64_t bits, enum metric_type type)
{
	double d;
	if (type == METRIC_I64)
		return (double)bits;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* min, max and sum of a gauge into parameters 5, 6, 7. */
static void bind_levels(sqlite3_stmt *st, const int64_t *v, size_t n, enum metric_type type)
{
	size_t min = 0, max = 0;
	int64_t whole = 0;
	double sum = 0;
	bool exact = type == METRIC_I64;
	for (size_t i = 0; i < n; i++) {
		double x = number(v[i], type);
		if (type == METRIC_I64 ? v[i] < v[min] : x < number(v[min], type))
			min = i;
		if (type == METRIC_I64 ? v[i] > v[max] : x > number(v[max], type))
			max = i;
		sum += x;
		exact = exact && !__builtin_add_overflow(whole, v[i], &whole);
	}
	db_bind_number(st, 5, v[min], type);
	db_bind_number(st, 6, v[max], type);
	if (exact)
		sqlite3_bind_int64(st, 7, whole);
	else
		sqlite3_bind_double(st, 7, sum);
}

/* The same of a counter: least and greatest rate per second, and the increase. */
static void bind_rates(sqlite3_stmt *st, const struct columns *c, uint32_t at, size_t n,
		       enum metric_type type)
{
	double min = INFINITY, max = -INFINITY, sum = 0;
	const uint16_t *ticks = c->ticks + at;
	for (size_t i = 1; i < n; i++) {
		double d = number(c->vals[at + i], type) - number(c->vals[at + i - 1], type);
		if (type == METRIC_I64)
			d = (double)wrap_sub(c->vals[at + i], c->vals[at + i - 1]);
		if (!(d > 0)) /* a counter that goes backwards was reset: no increase is known */
			d = 0;
		double rate = d * 1e9 / (double)(c->times[ticks[i]] - c->times[ticks[i - 1]]);
		min = rate < min ? rate : min;
		max = rate > max ? rate : max;
		sum += d;
	}
	if (n > 1) {
		sqlite3_bind_double(st, 5, min);
		sqlite3_bind_double(st, 6, max);
	}
	if (sum < 0x1p53 && sum == floor(sum))
		sqlite3_bind_int64(st, 7, (int64_t)sum);
	else
		sqlite3_bind_double(st, 7, sum);
}

static int write_chunk(struct rec_writer *w, struct columns *c, uint32_t series)
{
	size_t n = c->counts[series], last = c->at[series] + n - 1;
	const struct writer_series *s = &w->series[series];
	const int64_t *v = c->vals + c->at[series];
	const uint16_t *ticks = c->ticks + c->at[series];
	sqlite3_stmt *st = w->st[ST_CHUNK];
	buf_clear(c->blob);
	if (n < w->log.n && put_presence(c->blob, ticks, n))
		return SQLITE_NOMEM;
	if ((s->type == METRIC_F64 ? codec_encode_f64 : codec_encode_i64)(&w->codec, v, n,
									  c->blob) ||
	    codec_seal(&w->codec, c->blob, 0))
		return SQLITE_NOMEM;
	sqlite3_clear_bindings(st);
	sqlite3_bind_int64(st, 1, DB_CHUNK_ID(w->batch_id, series));
	sqlite3_bind_int64(st, 2, (int64_t)n);
	if (ticks[0])
		sqlite3_bind_int64(st, 3, (int64_t)c->times[ticks[0]]);
	if ((size_t)c->ticks[last] + 1 < w->log.n)
		sqlite3_bind_int64(st, 4, (int64_t)c->times[c->ticks[last]]);
	if (s->kind == METRIC_COUNTER)
		bind_rates(st, c, c->at[series], n, s->type);
	else
		bind_levels(st, v, n, s->type);
	db_bind_number(st, 8, v[0], s->type);
	db_bind_number(st, 9, c->vals[last], s->type);
	sqlite3_bind_blob(st, 10, c->blob->data, (int)c->blob->len, SQLITE_STATIC);
	return db_run(st);
}

static int write_chunks(struct rec_writer *w, struct columns *c)
{
	int rc = db_prepare(w->db, "INSERT INTO chunk VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
			    &w->st[ST_CHUNK]);
	count_values(&w->log, c);
	for (uint32_t from = 0, to; rc == SQLITE_OK && from < w->nseries; from = to) {
		size_t n;
		to = plan_group(w, c, from, &n);
		if (!n)
			continue;
		rc = grow_group(c, n);
		if (rc != SQLITE_OK)
			break;
		fill_group(&w->log, c, from, to);
		for (uint32_t s = from; rc == SQLITE_OK && s < to; s++)
			if (c->counts[s])
				rc = write_chunk(w, c, s);
	}
	return rc;
}

static int write_times(struct rec_writer *w, struct columns *c)
{
	const struct ticks *l = &w->log;
	int rc = db_prepare(w->db, "INSERT INTO batch VALUES(?1,?2,?3,?4,?5)", &w->st[ST_BATCH]);
	if (rc != SQLITE_OK)
		return rc;
	for (size_t i = 0; i < l->n; i++)
		c->times[i] = l->tick[i].t_ns;
	buf_clear(c->blob);
	if (codec_encode_i64(&w->codec, (const int64_t *)c->times, l->n, c->blob) ||
	    codec_seal(&w->codec, c->blob, 0))
		return SQLITE_NOMEM;
	sqlite3_stmt *st = w->st[ST_BATCH];
	sqlite3_bind_int64(st, 1, w->batch_id);
	sqlite3_bind_int64(st, 2, (int64_t)c->times[0]);
	sqlite3_bind_int64(st, 3, (int64_t)c->times[l->n - 1]);
	sqlite3_bind_int64(st, 4, (int64_t)l->n);
	sqlite3_bind_blob(st, 5, c->blob->data, (int)c->blob->len, SQLITE_STATIC);
	return db_run(st);
}

/* Series that were said to have ended in an earlier batch, and then had values after all, go on. */
static int resume_series(struct rec_writer *w, const struct columns *c)
{
	for (uint32_t s = 0; s < w->nseries; s++) {
		uint32_t ended = w->series[s].ended;
		if (!ended || ended >= w->batch_id || !c->counts[s])
			continue;
		if (op_add(w, OP_SERIES_LAST, (int64_t)s, (int64_t)0))
			return SQLITE_NOMEM;
		w->series[s].ended = 0;
		if (op_add_change(w, "series", s))
			return SQLITE_NOMEM;
	}
	return SQLITE_OK;
}

int batch_write(struct rec_writer *w)
{
	struct columns c = { .blob = &w->scratch };
	int rc = columns_alloc(&c, w);
	if (rc == SQLITE_OK)
		rc = write_times(w, &c);
	if (rc == SQLITE_OK)
		rc = write_chunks(w, &c);
	if (rc == SQLITE_OK)
		rc = resume_series(w, &c);
	columns_free(&c);
	return rc;
}
