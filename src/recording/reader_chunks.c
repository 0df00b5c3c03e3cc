/*
 * Chunks: the columns of one series in one batch, found by number and decoded on demand; see
 * reader.h.
 */
#include "recording/reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recording/varint.h"

#define TIMES_HELD (1u << 20) /* decoded times kept over all batches, in values */

enum { COL_N, COL_T0, COL_T1, COL_MIN, COL_MAX, COL_SUM, COL_FIRST, COL_LAST, COL_DATA };

/* First batch that ends at or behind t. */
static size_t first_batch(const struct rec_reader *r, uint64_t t)
{
	size_t lo = 0, hi = r->batches.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (r->batches.at[mid].t1 < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void chunk_range(const struct rec_reader *r, size_t series, uint64_t t0, uint64_t t1, size_t *from,
		 size_t *to)
{
	const struct reader_series *s = &r->series.at[series];
	const struct reader_batch *b = r->batches.at;
	size_t lo = first_batch(r, t0), hi = lo;
	while (hi < r->batches.n && b[hi].t0 < t1 && (!s->batch1 || b[hi].id <= s->batch1))
		hi++;
	/* A series that began late is not looked for before. */
	while (lo < hi && b[lo].id < s->batch0)
		lo++;
	*from = lo;
	*to = hi;
}

static double column_number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? NAN
							      : sqlite3_column_double(st, column);
}

static int64_t column_bits(sqlite3_stmt *st, int column, enum metric_type type)
{
	if (type == METRIC_I64)
		return sqlite3_column_int64(st, column);
	double d = sqlite3_column_double(st, column);
	int64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static bool read_summary(sqlite3_stmt *st, const struct reader_batch *b, enum metric_type type,
			 struct chunk_summary *ret)
{
	int64_t n = sqlite3_column_int64(st, COL_N);
	bool t0 = sqlite3_column_type(st, COL_T0) != SQLITE_NULL;
	bool t1 = sqlite3_column_type(st, COL_T1) != SQLITE_NULL;
	*ret = (struct chunk_summary){
		.n = (uint32_t)n,
		.t0 = t0 ? (uint64_t)sqlite3_column_int64(st, COL_T0) : b->t0,
		.t1 = t1 ? (uint64_t)sqlite3_column_int64(st, COL_T1) : b->t1,
		.min = column_number(st, COL_MIN),
		.max = column_number(st, COL_MAX),
		.sum = sqlite3_column_double(st, COL_SUM),
		.first = column_bits(st, COL_FIRST, type),
		.last = column_bits(st, COL_LAST, type),
	};
	return n >= 1 && n <= b->n && ret->t0 >= b->t0 && ret->t0 <= ret->t1 && ret->t1 <= b->t1;
}

int chunk_open(struct rec_reader *r, size_t batch, size_t series, struct chunk_summary *ret)
{
	static const char sql[] =
		"SELECT n,t0,t1,min,max,sum,first,last,data FROM chunk WHERE id=?1";
	const struct reader_batch *b = &r->batches.at[batch];
	sqlite3_stmt **st = &r->st[RD_CHUNK];
	int rc = db_prepare(r->db, sql, st);
	if (rc != SQLITE_OK)
		return db_errno(r->db, rc);
	sqlite3_bind_int64(*st, 1, DB_CHUNK_ID(b->id, r->serieses.at[series].id));
	rc = sqlite3_step(*st);
	if (rc == SQLITE_ROW && read_summary(*st, b, r->serieses.at[series].type, ret))
		return 1;
	sqlite3_reset(*st);
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW && (rc & 0xff) != SQLITE_CORRUPT)
		return db_errno(r->db, rc);
	r->damaged++;
	return 0;
}

void chunk_done(struct rec_reader *r)
{
	sqlite3_reset(r->st[RD_CHUNK]);
}

/* ---------------------------------------------------------------------------------------- times */

static void forget_times(struct rec_reader *r)
{
	for (size_t i = 0; i < r->batches.n; i++) {
		free(r->batches.at[i].times);
		r->batches.at[i].times = NULL;
	}
	r->times_held = 0;
}

/* Increasing, and from the batch's t0 to its t1. */
static bool times_are_sane(const struct reader_batch *b, const uint64_t *t)
{
	if (t[0] != b->t0 || t[b->n - 1] != b->t1)
		return false;
	for (uint32_t i = 1; i < b->n; i++)
		if (t[i] <= t[i - 1])
			return false;
	return true;
}

static int decode_times(struct rec_reader *r, const struct reader_batch *b, uint64_t *t)
{
	sqlite3_stmt **st = &r->st[RD_TIMES];
	int rc = db_prepare(r->db, "SELECT times FROM batch WHERE id=?1", st);
	if (rc != SQLITE_OK)
		return db_errno(r->db, rc);
	sqlite3_bind_int64(*st, 1, b->id);
	rc = sqlite3_step(*st) == SQLITE_ROW ? 0 : -EBADMSG;
	const void *data = rc ? NULL : sqlite3_column_blob(*st, 0);
	size_t len = data ? (size_t)sqlite3_column_bytes(*st, 0) : 0;
	if (!rc)
		rc = data && codec_unseal(&r->codec, data, &len)
			     ? codec_decode_i64(&r->codec, data, len, (int64_t *)t, b->n)
			     : -EBADMSG;
	sqlite3_reset(*st);
	return !rc && !times_are_sane(b, t) ? -EBADMSG : rc;
}

/* The times of a batch; NULL with *ret_rc where they cannot be had (damage is counted once). */
static const uint64_t *batch_times(struct rec_reader *r, size_t batch, int *ret_rc)
{
	struct reader_batch *b = &r->batches.at[batch];
	*ret_rc = -EBADMSG;
	if (b->times || b->bad)
		return b->times;
	if (r->times_held > TIMES_HELD)
		forget_times(r);
	uint64_t *t = malloc(b->n * sizeof(*t));
	if (!t) {
		*ret_rc = -ENOMEM;
		return NULL;
	}
	int rc = decode_times(r, b, t);
	if (rc) {
		free(t);
		b->bad = rc == -EBADMSG;
		*ret_rc = rc;
		return NULL;
	}
	b->times = t;
	r->times_held += b->n;
	return t;
}

/* --------------------------------------------------------------------------------------- values */

static int reserve(struct rec_reader *r, size_t n)
{
	if (n <= r->chunk_cap)
		return 0;
	int64_t *vals = malloc(n * sizeof(*vals));
	uint64_t *times = malloc(n * sizeof(*times));
	if (!vals || !times) {
		free(vals);
		free(times);
		return -ENOMEM;
	}
	free(r->vals);
	free(r->times);
	r->vals = vals;
	r->times = times;
	r->chunk_cap = n;
	return 0;
}

/* Pick the times of the ticks that are present; behind the list, or NULL. */
static const uint8_t *get_presence(const uint8_t *p, const uint8_t *end, const uint64_t *t,
				   size_t nticks, uint64_t *out, size_t n)
{
	uint64_t runs, absent, present;
	size_t tick = 0, done = 0;
	p = varint_get(p, end, &runs);
	for (; p && runs; runs--) {
		p = varint_get(p, end, &absent);
		p = p ? varint_get(p, end, &present) : NULL;
		if (!p || absent > nticks - tick || present > nticks - tick - absent ||
		    present > n - done)
			return NULL;
		tick += absent;
		memcpy(out + done, t + tick, present * sizeof(*out));
		tick += present;
		done += present;
	}
	return p && done == n ? p : NULL;
}

static int decode(struct rec_reader *r, size_t batch, enum metric_type type, const uint8_t *data,
		  size_t len, struct chunk_values *ret)
{
	int rc;
	const struct reader_batch *b = &r->batches.at[batch];
	const uint64_t *t = batch_times(r, batch, &rc);
	if (!t)
		return rc;
	const uint8_t *end = data + len;
	ret->t = t;
	if (ret->n < b->n) {
		data = get_presence(data, end, t, b->n, r->times, ret->n);
		ret->t = r->times;
	}
	if (!data)
		return -EBADMSG;
	ret->v = r->vals;
	len = (size_t)(end - data);
	return type == METRIC_F64 ? codec_decode_f64(&r->codec, data, len, r->vals, ret->n)
				  : codec_decode_i64(&r->codec, data, len, r->vals, ret->n);
}

int chunk_values(struct rec_reader *r, size_t batch, size_t series, const struct chunk_summary *s,
		 struct chunk_values *ret)
{
	struct chunk_values v = { .n = s->n };
	const void *data = sqlite3_column_blob(r->st[RD_CHUNK], COL_DATA);
	size_t len = (size_t)sqlite3_column_bytes(r->st[RD_CHUNK], COL_DATA);
	int rc = reserve(r, s->n);
	if (!rc)
		rc = data && codec_unseal(&r->codec, data, &len)
			     ? decode(r, batch, r->serieses.at[series].type, data, len, &v)
			     : -EBADMSG;
	r->damaged += rc == -EBADMSG;
	if (!rc)
		*ret = v;
	return rc;
}
