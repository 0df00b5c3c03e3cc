/*
 * Events: rows wait in memory per track. A flush writes the new ones as a small chunk; once a few
 * thousand are together, or there are many small chunks, one chunk of all of them replaces the
 * small ones.
 */
#include "recording/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/varint.h"

#define CHUNK_ROWS   4096
#define SMALL_CHUNKS 128
#define FLUSH_VALUES (128u << 10) /* values held unwritten that start a flush */
#define HELD_VALUES  (1u << 20)   /* and at which new rows are dropped and counted */

int rec_track(struct rec_writer *w, uint32_t entity, enum track_kind kind, uint32_t *ret_track)
{
	uint64_t key = (uint64_t)entity << 32 | kind, known;
	if (!entity || entity > w->entities || kind >= TRACK__COUNT)
		return -EINVAL;
	if (map_get(&w->track_of, key, &known)) {
		*ret_track = (uint32_t)known;
		return 0;
	}
	if (w->ntracks == w->tracks_cap) {
		uint32_t cap = w->tracks_cap ? w->tracks_cap * 2 : 16;
		struct writer_track *t = realloc(w->track, cap * sizeof(*t));
		if (!t)
			return -ENOMEM;
		w->track = t;
		w->tracks_cap = cap;
	}
	int rc = map_put(&w->track_of, key, w->ntracks);
	if (!rc)
		rc = op_add(w, OP_TRACK, (int64_t)w->ntracks, (int64_t)entity,
			    track_info(kind)->name, track_info(kind)->columns);
	if (rc) {
		map_del(&w->track_of, key);
		return rc;
	}
	w->track[w->ntracks] = (struct writer_track){ .ncolumns = (uint32_t)track_ncolumns(kind) };
	*ret_track = w->ntracks++;
	return 0;
}

static int grow_rows(struct writer_track *t, size_t n)
{
	if (t->n + n <= t->cap)
		return 0;
	size_t cap = t->cap ? t->cap : 64;
	while (cap < t->n + n)
		cap *= 2;
	int64_t *rows = realloc(t->rows, cap * t->ncolumns * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	t->rows = rows;
	t->cap = cap;
	return 0;
}

int rec_events(struct rec_writer *w, uint32_t track, const int64_t *rows, size_t n)
{
	if (track >= w->ntracks)
		return -EINVAL;
	struct writer_track *t = &w->track[track];
	if (w->event_values + n * t->ncolumns > HELD_VALUES) {
		w->stats.lost_events += n;
		return -ENOMEM;
	}
	int rc = grow_rows(t, n);
	if (rc) {
		w->stats.lost_events += n;
		return rc;
	}
	memcpy(t->rows + t->n * t->ncolumns, rows, n * t->ncolumns * sizeof(*rows));
	t->n += n;
	w->event_values += n * t->ncolumns;
	w->stats.events += n;
	if (w->event_values > FLUSH_VALUES)
		rec_flush(w, NULL); /* where it fails, the next flush tries again and says why */
	return 0;
}

static int encode_rows(struct rec_writer *w, const struct writer_track *t, const int64_t *rows,
		       size_t n)
{
	struct buf *b = &w->scratch;
	struct buf column = BUF_INIT;
	int64_t *v = malloc(n * sizeof(*v));
	int rc = v ? 0 : -ENOMEM;
	buf_clear(b);
	for (uint32_t k = 0; !rc && k < t->ncolumns; k++) {
		for (size_t i = 0; i < n; i++)
			v[i] = rows[i * t->ncolumns + k];
		buf_clear(&column);
		rc = codec_encode_i64(&w->codec, v, n, &column);
		if (!rc)
			rc = buf_reserve(b, column.len + VARINT_MAX);
		if (rc)
			break;
		uint8_t *p = (uint8_t *)b->data + b->len;
		b->len += (size_t)(varint_put(p, column.len) - p);
		buf_add(b, column.data, column.len);
	}
	if (!rc)
		rc = codec_seal(&w->codec, b, 0);
	buf_free(&column);
	free(v);
	return rc ? SQLITE_NOMEM : SQLITE_OK;
}

static int write_rows(struct rec_writer *w, uint32_t track, size_t from, size_t to)
{
	const struct writer_track *t = &w->track[track];
	const int64_t *rows = t->rows + from * t->ncolumns;
	size_t n = to - from;
	int rc = encode_rows(w, t, rows, n);
	if (rc == SQLITE_OK)
		rc = db_prepare(w->db, "INSERT INTO event VALUES(?1,?2,?3,?4,?5,?6)",
				&w->st[ST_EVENT]);
	if (rc != SQLITE_OK)
		return rc;
	int64_t t0 = INT64_MAX, t1 = INT64_MIN;
	for (size_t i = 0; i < n; i++) {
		int64_t begin = rows[i * t->ncolumns + EV_T], dur = rows[i * t->ncolumns + EV_DUR];
		int64_t end = dur > 0 && begin <= INT64_MAX - dur ? begin + dur : begin;
		t0 = begin < t0 ? begin : t0;
		t1 = end > t1 ? end : t1;
	}
	sqlite3_stmt *st = w->st[ST_EVENT];
	sqlite3_bind_int64(st, 1, w->event_id++);
	sqlite3_bind_int64(st, 2, track);
	sqlite3_bind_int64(st, 3, (int64_t)n);
	sqlite3_bind_int64(st, 4, t0);
	sqlite3_bind_int64(st, 5, t1);
	sqlite3_bind_blob(st, 6, w->scratch.data, (int)w->scratch.len, SQLITE_STATIC);
	return db_run(st);
}

static int drop_small(struct rec_writer *w, uint32_t track)
{
	const struct writer_track *t = &w->track[track];
	static const char sql[] = "DELETE FROM event WHERE id BETWEEN ?1 AND ?2 AND track=?3";
	int rc = t->chunks ? db_prepare(w->db, sql, &w->st[ST_EVENT_DEL]) : SQLITE_OK;
	if (rc != SQLITE_OK || !t->chunks)
		return rc;
	sqlite3_bind_int64(w->st[ST_EVENT_DEL], 1, t->chunk0);
	sqlite3_bind_int64(w->st[ST_EVENT_DEL], 2, t->chunk1);
	sqlite3_bind_int64(w->st[ST_EVENT_DEL], 3, track);
	return db_run(w->st[ST_EVENT_DEL]);
}

static int write_track(struct rec_writer *w, uint32_t track, bool final)
{
	struct writer_track *t = &w->track[track];
	bool full = t->n >= CHUNK_ROWS;
	bool merge = full || t->chunks >= SMALL_CHUNKS || (final && t->chunks);
	size_t from = merge ? 0 : t->written;
	int rc = merge ? drop_small(w, track) : SQLITE_OK;
	t->next.full = full;
	t->next.written = t->n;
	t->next.chunk0 = merge || !t->chunks ? w->event_id : t->chunk0;
	t->next.chunks = merge ? 0 : t->chunks;
	while (rc == SQLITE_OK && from < t->n) {
		size_t to = t->n - from > CHUNK_ROWS * 2 ? from + CHUNK_ROWS : t->n;
		rc = write_rows(w, track, from, to);
		t->next.chunks++;
		from = to;
	}
	t->next.chunk1 = w->event_id - 1;
	return rc;
}

int events_write(struct rec_writer *w, bool final)
{
	int rc = SQLITE_OK;
	for (uint32_t i = 0; rc == SQLITE_OK && i < w->ntracks; i++) {
		struct writer_track *t = &w->track[i];
		t->next.written = 0;
		if (t->n > t->written || (final && t->chunks > 1))
			rc = write_track(w, i, final);
	}
	return rc;
}

void events_committed(struct rec_writer *w)
{
	for (uint32_t i = 0; i < w->ntracks; i++) {
		struct writer_track *t = &w->track[i];
		if (!t->next.written)
			continue;
		w->event_values -= (t->n - t->written) * t->ncolumns;
		t->written = t->next.written;
		t->chunk0 = t->next.chunk0;
		t->chunk1 = t->next.chunk1;
		t->chunks = t->next.chunks;
		if (!t->next.full)
			continue;
		t->n = t->written = 0;
		t->chunks = 0;
		if (t->cap > CHUNK_ROWS * 2) {
			free(t->rows);
			t->rows = NULL;
			t->cap = 0;
		}
	}
}

void events_free(struct rec_writer *w)
{
	for (uint32_t i = 0; i < w->ntracks; i++)
		free(w->track[i].rows);
	free(w->track);
}
