/* All samples of a series in a span of time: chunks first, then the tail. And how much there is. */
#include "recording/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct points {
	struct rec_points p;
	size_t cap;
	enum metric_type type;
};

static int grow(struct points *p, size_t more)
{
	if (p->p.n + more <= p->cap)
		return 0;
	size_t cap = p->cap * 2 > p->p.n + more ? p->cap * 2 : p->p.n + more;
	uint64_t *t = realloc(p->p.t_ns, cap * sizeof(*t));
	if (t)
		p->p.t_ns = t;
	double *v = t ? realloc(p->p.v, cap * sizeof(*v)) : NULL;
	if (v)
		p->p.v = v;
	int64_t *i = NULL;
	if (v && p->type == METRIC_I64) {
		i = realloc(p->p.i, cap * sizeof(*i));
		if (i)
			p->p.i = i;
	}
	if (!v || (p->type == METRIC_I64 && !i))
		return -ENOMEM;
	p->cap = cap;
	return 0;
}

static void add(struct points *p, uint64_t t, int64_t bits)
{
	p->p.t_ns[p->p.n] = t;
	p->p.v[p->p.n] = reader_number(bits, p->type);
	if (p->type == METRIC_I64)
		p->p.i[p->p.n] = bits;
	p->p.n++;
}

static int add_chunk(struct points *p, const struct chunk_values *v, uint64_t t0, uint64_t t1)
{
	if (grow(p, v->n))
		return -ENOMEM;
	for (size_t i = 0; i < v->n; i++)
		if (v->t[i] >= t0 && v->t[i] < t1)
			add(p, v->t[i], v->v[i]);
	return 0;
}

static int add_tail(struct rec_reader *r, struct points *p, size_t series, uint64_t t0, uint64_t t1)
{
	const struct reader_tail *t = &r->series.at[series].tail;
	if (grow(p, t->n))
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++) {
		uint64_t at = r->tail_times.at[t->tick[i]];
		if (at >= t0 && at < t1)
			add(p, at, t->v[i]);
	}
	return 0;
}

static int read_points(struct rec_reader *r, size_t series, uint64_t t0, uint64_t t1,
		       struct points *p)
{
	size_t from, to;
	chunk_range(r, series, t0, t1, &from, &to);
	for (size_t b = from; b < to; b++) {
		struct chunk_summary s;
		struct chunk_values v;
		int rc = chunk_open(r, b, series, &s);
		if (rc < 0)
			return rc;
		if (!rc)
			continue;
		if (s.t0 < t1 && s.t1 >= t0) {
			rc = chunk_values(r, b, series, &s, &v);
			rc = rc ? rc : add_chunk(p, &v, t0, t1);
		}
		chunk_done(r);
		if (rc < 0 && rc != -EBADMSG)
			return rc;
	}
	return add_tail(r, p, series, t0, t1);
}

int rec_read(struct rec_reader *r, uint32_t series, uint64_t t0, uint64_t t1,
	     struct rec_points *ret, struct err *e)
{
	int64_t place = catalogue_series(r, series);
	if (place < 0)
		return err_set(e, ENOENT, "%s: there is no series %u", r->path, series);
	struct points p = { .type = r->serieses.at[place].type };
	int rc = reader_begin(r, e);
	if (rc)
		return rc;
	rc = read_points(r, (size_t)place, t0, t1, &p);
	reader_end(r);
	if (rc) {
		rec_points_free(&p.p);
		return err_set(e, -rc, "%s: %s", r->path, strerror(-rc));
	}
	*ret = p.p;
	return 0;
}

void rec_points_free(struct rec_points *p)
{
	if (!p)
		return;
	free(p->t_ns);
	free(p->i);
	free(p->v);
	*p = (struct rec_points){ 0 };
}

static int chunk_size(struct rec_reader *r, size_t batch, size_t series, struct rec_size *size)
{
	sqlite3_stmt **st = &r->st[RD_SIZE];
	int rc = db_prepare(r->db, "SELECT n,length(data) FROM chunk WHERE id=?1", st);
	if (rc != SQLITE_OK)
		return db_errno(r->db, rc);
	sqlite3_bind_int64(*st, 1, DB_CHUNK_ID(r->batches.at[batch].id, r->serieses.at[series].id));
	rc = sqlite3_step(*st);
	if (rc == SQLITE_ROW) {
		size->n += (uint64_t)sqlite3_column_int64(*st, 0);
		size->bytes += (uint64_t)sqlite3_column_int64(*st, 1);
	}
	sqlite3_reset(*st);
	r->damaged += (rc & 0xff) == SQLITE_CORRUPT;
	return rc == SQLITE_ROW || rc == SQLITE_DONE || (rc & 0xff) == SQLITE_CORRUPT
		       ? 0
		       : db_errno(r->db, rc);
}

int rec_series_size(struct rec_reader *r, uint32_t series, struct rec_size *ret, struct err *e)
{
	int64_t place = catalogue_series(r, series);
	if (place < 0)
		return err_set(e, ENOENT, "%s: there is no series %u", r->path, series);
	struct rec_size size = { .n = r->series.at[place].tail.n };
	size_t from, to;
	int rc = reader_begin(r, e);
	if (rc)
		return rc;
	chunk_range(r, (size_t)place, 0, UINT64_MAX, &from, &to);
	for (size_t b = from; !rc && b < to; b++)
		rc = chunk_size(r, b, (size_t)place, &size);
	reader_end(r);
	if (rc)
		return err_set(e, -rc, "%s: %s", r->path, strerror(-rc));
	*ret = size;
	return 0;
}
