/*
 * The newest end of a growing recording: batches as they come, and the decoded tail, which holds
 * what is in no batch yet, by series.
 */
#include "recording/reader.h"

#include <errno.h>
#include <stdlib.h>

int reader_batch_row(struct rec_reader *r, sqlite3_stmt *st)
{
	struct reader_batch b = { .id = sqlite3_column_int64(st, 0) };
	int64_t t0 = sqlite3_column_int64(st, 1), t1 = sqlite3_column_int64(st, 2);
	int64_t n = sqlite3_column_int64(st, 3);
	uint64_t before = r->batches.n ? r->batches.at[r->batches.n - 1].t1 : 0;
	/* The tail that was held is in this batch now. */
	for (size_t i = 0; i < r->series.n; i++)
		r->series.at[i].tail.n = 0;
	r->tail_times.n = 0;
	r->cursor[CATALOGUE_TAIL] = -1;
	if (b.id < 1 || b.id > INT32_MAX || t0 < 0 || t1 < t0 || (uint64_t)t0 < before || n < 1 ||
	    n > CODEC_MAX)
		return reader_damaged(r);
	if (READER_GROW(r->batches))
		return -ENOMEM;
	b.t0 = (uint64_t)t0;
	b.t1 = (uint64_t)t1;
	b.n = (uint32_t)n;
	r->batches.at[r->batches.n++] = b;
	return 0;
}

static int add_tail_value(struct rec_reader *r, uint32_t id, uint32_t tick, int64_t v)
{
	int64_t place = catalogue_series(r, id);
	if (place < 0)
		return reader_damaged(r);
	struct reader_tail *t = &r->series.at[place].tail;
	if (t->n && t->tick[t->n - 1] == tick) /* put twice at one tick: the last one counts */
		t->n--;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 32;
		uint32_t *ticks = realloc(t->tick, cap * sizeof(*ticks));
		if (ticks)
			t->tick = ticks;
		int64_t *vals = ticks ? realloc(t->v, cap * sizeof(*vals)) : NULL;
		if (!vals)
			return -ENOMEM;
		t->v = vals;
		t->cap = cap;
	}
	t->tick[t->n] = tick;
	t->v[t->n++] = v;
	return 0;
}

int reader_tail_row(struct rec_reader *r, sqlite3_stmt *st)
{
	struct ticks *l = &r->tail_log;
	const void *data = sqlite3_column_blob(st, 1);
	size_t len = (size_t)sqlite3_column_bytes(st, 1);
	uint32_t nseries = r->serieses.n ? r->serieses.at[r->serieses.n - 1].id + 1 : 0;
	ticks_clear(l);
	int rc = data ? tail_decode(&r->tail, &r->codec, data, len, nseries, l, &r->damaged)
		      : -EBADMSG;
	if (rc == -ENOMEM)
		return rc;
	r->damaged += rc != 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct tick *t = &l->tick[i];
		uint64_t before = r->tail_times.n ? r->tail_times.at[r->tail_times.n - 1]
				  : r->batches.n  ? r->batches.at[r->batches.n - 1].t1
						  : 0;
		if (t->t_ns <= before && (r->tail_times.n || r->batches.n))
			return reader_damaged(r);
		if (READER_GROW(r->tail_times))
			return -ENOMEM;
		uint32_t tick = (uint32_t)r->tail_times.n;
		r->tail_times.at[r->tail_times.n++] = t->t_ns;
		for (size_t k = 0; k < t->n; k++)
			if (add_tail_value(r, l->ids[t->ids + k], tick, l->vals[t->vals + k]))
				return -ENOMEM;
	}
	return 0;
}
