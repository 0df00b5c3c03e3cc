/*
 * Events: all chunks of a track that touch a span of time, decoded, their columns by name, sorted
 * by time.
 */
#include "recording/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/varint.h"

struct rows {
	int64_t *at;
	size_t n, cap;
	uint32_t ncolumns;
};

static int reserve(struct rows *rows, size_t more)
{
	if (rows->n + more <= rows->cap)
		return 0;
	size_t cap = rows->cap * 2 > rows->n + more ? rows->cap * 2 : rows->n + more;
	int64_t *at = realloc(rows->at, cap * rows->ncolumns * sizeof(*at));
	if (!at)
		return -ENOMEM;
	rows->at = at;
	rows->cap = cap;
	return 0;
}

/* The columns of one chunk into n rows of values, each column where it belongs. */
static int decode(struct rec_reader *r, const struct reader_track *t, const uint8_t *p, size_t len,
		  int64_t *rows, size_t n, uint32_t ncolumns, int64_t *column)
{
	const uint8_t *end;
	if (!codec_unseal(&r->codec, p, &len))
		return -EBADMSG;
	end = p + len;
	for (size_t i = 0; i < n * ncolumns; i++)
		rows[i] = REC_NONE;
	for (int k = 0; k < t->ncolumns; k++) {
		uint64_t size;
		p = varint_get(p, end, &size);
		if (!p || size > (size_t)(end - p))
			return -EBADMSG;
		int rc = codec_decode_i64(&r->codec, p, size, column, n);
		if (rc)
			return rc;
		p += size;
		for (size_t i = 0; t->to[k] >= 0 && i < n; i++)
			rows[i * ncolumns + (size_t)t->to[k]] = column[i];
	}
	return p == end ? 0 : -EBADMSG;
}

static int add_chunk(struct rec_reader *r, const struct reader_track *t, sqlite3_stmt *st,
		     uint64_t t0, uint64_t t1, struct rows *rows)
{
	int64_t n = sqlite3_column_int64(st, 0);
	const void *data = sqlite3_column_blob(st, 1);
	if (n < 1 || n > CODEC_MAX || !data)
		return -EBADMSG;
	if (reserve(rows, (size_t)n))
		return -ENOMEM;
	int64_t *column = malloc((size_t)n * sizeof(*column));
	if (!column)
		return -ENOMEM;
	int64_t *out = rows->at + rows->n * rows->ncolumns;
	int rc = decode(r, t, data, (size_t)sqlite3_column_bytes(st, 1), out, (size_t)n,
			rows->ncolumns, column);
	free(column);
	size_t kept = 0;
	for (size_t i = 0; !rc && i < (size_t)n; i++) {
		const int64_t *row = out + i * rows->ncolumns;
		if (row[EV_T] < 0 || (uint64_t)row[EV_T] < t0 || (uint64_t)row[EV_T] >= t1)
			continue;
		memmove(out + kept++ * rows->ncolumns, row, rows->ncolumns * sizeof(*row));
	}
	rows->n += kept;
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (x[EV_T] > y[EV_T]) - (x[EV_T] < y[EV_T]);
}

static void sort(struct rows *rows)
{
	for (size_t i = 1; i < rows->n; i++) {
		if (rows->at[i * rows->ncolumns] >= rows->at[(i - 1) * rows->ncolumns])
			continue;
		qsort(rows->at, rows->n, rows->ncolumns * sizeof(*rows->at), by_time);
		return;
	}
}

/* The bounds as SQLite's integers can hold them. */
static int64_t bound(uint64_t t)
{
	return t > INT64_MAX ? INT64_MAX : (int64_t)t;
}

static int read_rows(struct rec_reader *r, size_t place, uint64_t t0, uint64_t t1,
		     struct rows *rows)
{
	static const char sql[] =
		"SELECT n,data FROM event WHERE track=?1 AND t0<=?2 AND t1>=?3 ORDER BY id";
	sqlite3_stmt **st = &r->st[RD_EVENTS];
	int sq = db_prepare(r->db, sql, st), rc = 0;
	if (sq != SQLITE_OK)
		return db_errno(r->db, sq);
	sqlite3_bind_int64(*st, 1, r->tracks.at[place].id);
	sqlite3_bind_int64(*st, 2, bound(t1));
	sqlite3_bind_int64(*st, 3, bound(t0));
	while (!rc && (sq = sqlite3_step(*st)) == SQLITE_ROW) {
		rc = add_chunk(r, &r->track.at[place], *st, t0, t1, rows);
		if (rc == -EBADMSG) {
			r->damaged++;
			rc = 0;
		}
	}
	sqlite3_reset(*st);
	if (!rc && (sq & 0xff) == SQLITE_CORRUPT)
		r->damaged++;
	else if (!rc && sq != SQLITE_DONE)
		rc = db_errno(r->db, sq);
	return rc;
}

static int64_t find_track(const struct rec_reader *r, uint32_t id)
{
	for (size_t i = 0; i < r->tracks.n; i++)
		if (r->tracks.at[i].id == id)
			return (int64_t)i;
	return -ENOENT;
}

int rec_read_events(struct rec_reader *r, uint32_t track, uint64_t t0, uint64_t t1,
		    int64_t **ret_rows, size_t *ret_n, struct err *e)
{
	int64_t place = find_track(r, track);
	if (place < 0)
		return err_set(e, ENOENT, "%s: there is no track %u", r->path, track);
	struct rows rows = { .ncolumns = (uint32_t)r->tracks.at[place].ncolumns };
	int rc = reserve(&rows, 1);
	if (!rc)
		rc = read_rows(r, (size_t)place, t0, t1, &rows);
	if (rc) {
		free(rows.at);
		return err_set(e, -rc, "%s: %s", r->path, strerror(-rc));
	}
	sort(&rows);
	*ret_rows = rows.at;
	*ret_n = rows.n;
	return 0;
}

int rec_track_size(struct rec_reader *r, uint32_t track, struct rec_size *ret, struct err *e)
{
	static const char sql[] = "SELECT total(n),total(length(data)) FROM event WHERE track=?1";
	sqlite3_stmt **st = &r->st[RD_TRACK_SIZE];
	if (find_track(r, track) < 0)
		return err_set(e, ENOENT, "%s: there is no track %u", r->path, track);
	int rc = db_prepare(r->db, sql, st);
	if (rc != SQLITE_OK)
		return db_error(e, r->db, rc, r->path);
	sqlite3_bind_int64(*st, 1, track);
	rc = sqlite3_step(*st);
	if (rc == SQLITE_ROW)
		*ret = (struct rec_size){ .n = (uint64_t)sqlite3_column_int64(*st, 0),
					  .bytes = (uint64_t)sqlite3_column_int64(*st, 1) };
	sqlite3_reset(*st);
	return rc == SQLITE_ROW ? 0 : db_error(e, r->db, rc, r->path);
}
