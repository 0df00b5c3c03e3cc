/*
 * The rows of the catalogue: facts, entities, series, strings, notices, findings. Each call checks
 * what it is given and puts one row into the queue (op_add); ops_write runs the queue in the
 * transaction of a flush.
 */
#include "recording/writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define OPS_MAX (16u << 20) /* bytes that may wait while nothing can be written */

/* i: int64_t, z: int64_t with 0 for NULL, s: text or NULL, t: text and its length */
static const struct {
	const char *sql, *args;
} ops[OP__COUNT] = {
	[OP_RUN] = { "INSERT OR REPLACE INTO run VALUES(?1,?2)", "ss" },
	[OP_ENTITY] = { "INSERT INTO entity VALUES(?1,?2,?3,?4,?5,?6,NULL,NULL)", "iszsii" },
	[OP_ENTITY_ATTRS] = { "UPDATE entity SET attrs=?2 WHERE id=?1", "is" },
	[OP_ENTITY_NAME] = { "UPDATE entity SET name=?2 WHERE id=?1", "is" },
	[OP_ENTITY_END] = { "UPDATE entity SET t1=?2 WHERE id=?1", "ii" },
	[OP_METRIC] = { "INSERT INTO metric VALUES(?1,?2,?3,?4,?5,?6)", "isssss" },
	[OP_SERIES] = { "INSERT INTO series VALUES(?1,?2,?3,?4,?5,NULL)", "iiisi" },
	[OP_SERIES_LAST] = { "UPDATE series SET batch1=?2 WHERE id=?1", "iz" },
	[OP_TRACK] = { "INSERT INTO track VALUES(?1,?2,?3,?4)", "iiss" },
	[OP_STRING] = { "INSERT INTO string VALUES(?1,?2)", "it" },
	[OP_NOTICE] = { "INSERT INTO notice VALUES(?1,?2,?3,?4,?5,?6)", "iizsss" },
	[OP_GAP] = { "INSERT INTO gap VALUES(?1,?2,?3,NULL,?4)", "iiis" },
	[OP_GAP_END] = { "UPDATE gap SET t1=?2 WHERE id=?1", "ii" },
	[OP_CLOCK] = { "INSERT OR REPLACE INTO clock VALUES(?1,?2)", "ii" },
	[OP_FINDINGS_CLEAR] = { "DELETE FROM finding", "" },
	[OP_FINDING] = { "INSERT INTO finding VALUES(?1,?2,?3,?4,?5,?6)", "isssss" },
	[OP_CHANGE] = { "INSERT INTO change VALUES(?1,?2,?3)", "isi" },
};

static void add_text(struct buf *b, const char *s, size_t len)
{
	uint32_t n = s ? (uint32_t)len : UINT32_MAX;
	buf_add(b, &n, sizeof(n));
	if (s)
		buf_add(b, s, len);
}

int op_add(struct rec_writer *w, enum op op, ...)
{
	struct buf *b = &w->ops;
	size_t len = b->len;
	if (len > OPS_MAX)
		return -ENOBUFS;
	va_list ap;
	va_start(ap, op);
	buf_addc(b, (char)op);
	for (const char *a = ops[op].args; *a; a++) {
		if (*a == 'i' || *a == 'z') {
			int64_t v = va_arg(ap, int64_t);
			buf_add(b, &v, sizeof(v));
		} else {
			const char *s = va_arg(ap, const char *);
			size_t n = *a == 't' ? va_arg(ap, size_t) : s ? strlen(s) : 0;
			b->failed |= n > OPS_MAX;
			add_text(b, s, n);
		}
	}
	va_end(ap);
	if (!b->failed)
		return 0;
	b->len = len;
	b->failed = false;
	return -ENOMEM;
}

/* Bind the arguments of one op from the queue; returns behind them. */
static const char *bind(sqlite3_stmt *st, const char *args, const char *p)
{
	for (int i = 1; *args; args++, i++) {
		if (*args == 'i' || *args == 'z') {
			int64_t v;
			memcpy(&v, p, sizeof(v));
			p += sizeof(v);
			if (*args == 'z' && !v)
				sqlite3_bind_null(st, i);
			else
				sqlite3_bind_int64(st, i, v);
			continue;
		}
		uint32_t n;
		memcpy(&n, p, sizeof(n));
		p += sizeof(n);
		if (n == UINT32_MAX) {
			sqlite3_bind_null(st, i);
			continue;
		}
		sqlite3_bind_text(st, i, p, (int)n, SQLITE_STATIC);
		p += n;
	}
	return p;
}

int ops_write(struct rec_writer *w)
{
	const char *p = w->ops.data, *end = p + w->ops.len;
	int rc = SQLITE_OK;
	while (p < end && rc == SQLITE_OK) {
		unsigned op = (unsigned char)*p++;
		rc = db_prepare(w->db, ops[op].sql, &w->op_st[op]);
		if (rc != SQLITE_OK)
			break;
		p = bind(w->op_st[op], ops[op].args, p);
		rc = db_run(w->op_st[op]);
		sqlite3_clear_bindings(w->op_st[op]);
	}
	return rc;
}

void ops_clear(struct rec_writer *w)
{
	/* What a busy start needed is not kept for the rest of the run. */
	if (w->ops.cap > (256u << 10))
		buf_free(&w->ops);
	buf_clear(&w->ops);
}

/* A row that readers may have seen already was changed. */
int op_add_change(struct rec_writer *w, const char *what, int64_t row)
{
	int rc = op_add(w, OP_CHANGE, w->changes + 1, what, row);
	w->changes += !rc;
	return rc;
}

int op_add_clock(struct rec_writer *w)
{
	/* The smallest distance of two reads around the real clock gives the best pair. */
	uint64_t best = UINT64_MAX, mono = 0, real = 0;
	for (int i = 0; i < 3; i++) {
		uint64_t a = clock_mono_ns(), r = clock_real_ns(), b = clock_mono_ns();
		if (b - a >= best)
			continue;
		best = b - a;
		mono = a + best / 2;
		real = r;
	}
	return op_add(w, OP_CLOCK, (int64_t)mono, (int64_t)real);
}

int rec_set(struct rec_writer *w, const char *key, const char *value)
{
	return op_add(w, OP_RUN, key, value);
}

int rec_setf(struct rec_writer *w, const char *key, const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	int rc = b.failed ? -ENOMEM : rec_set(w, key, b.data);
	buf_free(&b);
	return rc;
}

int rec_entity(struct rec_writer *w, enum entity_kind kind, uint32_t parent, const char *name,
	       int64_t key, uint64_t t_start_ns, uint32_t *ret_id)
{
	if (kind >= ENTITY__COUNT || parent > w->entities)
		return -EINVAL;
	uint32_t id = w->entities + 1;
	int rc = op_add(w, OP_ENTITY, (int64_t)id, entity_kind_name(kind), (int64_t)parent, name,
			key, (int64_t)t_start_ns);
	if (rc)
		return rc;
	w->entities = id;
	*ret_id = id;
	return 0;
}

static bool is_entity(const struct rec_writer *w, uint32_t id)
{
	return id && id <= w->entities;
}

int rec_entity_attrs(struct rec_writer *w, uint32_t entity, const char *json)
{
	if (!is_entity(w, entity))
		return -EINVAL;
	int rc = op_add(w, OP_ENTITY_ATTRS, (int64_t)entity, json);
	return rc ? rc : op_add_change(w, "entity", entity);
}

int rec_entity_rename(struct rec_writer *w, uint32_t entity, const char *name)
{
	if (!is_entity(w, entity))
		return -EINVAL;
	int rc = op_add(w, OP_ENTITY_NAME, (int64_t)entity, name);
	return rc ? rc : op_add_change(w, "entity", entity);
}

int rec_entity_end(struct rec_writer *w, uint32_t entity, uint64_t t_ns)
{
	if (!is_entity(w, entity))
		return -EINVAL;
	int rc = op_add(w, OP_ENTITY_END, (int64_t)entity, (int64_t)t_ns);
	return rc ? rc : op_add_change(w, "entity", entity);
}

static int add_metric(struct rec_writer *w, enum metric_id id)
{
	const struct metric *m = &metrics[id];
	if (w->metric_known[id])
		return 0;
	int rc = op_add(w, OP_METRIC, (int64_t)id + 1, m->name, m->unit,
			m->kind == METRIC_COUNTER ? "counter" : "gauge",
			m->type == METRIC_F64 ? "f64" : "i64", m->help);
	w->metric_known[id] = !rc;
	return rc;
}

static int grow_series(struct rec_writer *w)
{
	if (w->nseries < w->series_cap)
		return 0;
	uint32_t cap = w->series_cap ? w->series_cap * 2 : 256;
	struct writer_series *s = realloc(w->series, cap * sizeof(*s));
	if (!s)
		return -ENOMEM;
	w->series = s;
	w->series_cap = cap;
	return 0;
}

int rec_series(struct rec_writer *w, uint32_t entity, enum metric_id metric, const char *source,
	       uint32_t *ret_series)
{
	uint64_t key = (uint64_t)entity << 32 | metric, known;
	if (!is_entity(w, entity) || metric >= METRIC__COUNT)
		return -EINVAL;
	if (map_get(&w->series_of, key, &known)) {
		*ret_series = (uint32_t)known;
		return 0;
	}
	int rc = grow_series(w);
	if (!rc)
		rc = add_metric(w, metric);
	if (!rc)
		rc = map_put(&w->series_of, key, w->nseries);
	if (!rc)
		rc = op_add(w, OP_SERIES, (int64_t)w->nseries, (int64_t)entity, (int64_t)metric + 1,
			    source, w->batch_id);
	if (rc) {
		map_del(&w->series_of, key);
		return rc;
	}
	w->series[w->nseries] = (struct writer_series){ .kind = (uint8_t)metrics[metric].kind,
							.type = (uint8_t)metrics[metric].type };
	*ret_series = w->nseries++;
	return 0;
}

void rec_series_end(struct rec_writer *w, uint32_t series)
{
	if (series >= w->nseries || w->series[series].ended)
		return;
	gaps_end_series(w, series);
	/* Only saves readers from looking further: where it cannot be kept, nothing is lost. */
	if (!op_add(w, OP_SERIES_LAST, (int64_t)series, w->batch_id))
		w->series[series].ended = (uint32_t)w->batch_id;
	if (w->series[series].ended)
		op_add_change(w, "series", series);
}

static uint64_t hash(const char *s, size_t len, uint64_t seed)
{
	uint64_t h = seed ^ (len * 0x9e3779b97f4a7c15ULL);
	for (size_t i = 0; i < len; i++) {
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3ULL;
		h ^= h >> 29;
	}
	return (h ^ (h >> 32)) * 0xd6e8feb86659fd93ULL;
}

int rec_string(struct rec_writer *w, const char *s, size_t len, uint32_t *ret_id)
{
	/* Strings are known by 96 bits of hash; the text itself is not kept in memory. */
	uint64_t key = hash(s, len, 0x51ed270b27b4f3cfULL),
		 check = hash(s, len, 0xabc98388fb8fac03ULL);
	uint64_t known;
	for (; map_get(&w->string_of, key, &known); key++) {
		if (known >> 32 != check >> 32)
			continue;
		*ret_id = (uint32_t)known;
		return 0;
	}
	uint32_t id = w->strings + 1;
	int rc = map_put(&w->string_of, key, (check >> 32) << 32 | id);
	if (!rc)
		rc = op_add(w, OP_STRING, (int64_t)id, s, len);
	if (rc) {
		map_del(&w->string_of, key);
		return rc;
	}
	w->strings = id;
	*ret_id = id;
	return 0;
}

int rec_notice(struct rec_writer *w, uint64_t t_ns, uint32_t entity, const char *kind,
	       const char *text, const char *attrs)
{
	int rc = op_add(w, OP_NOTICE, w->notices + 1, (int64_t)t_ns, (int64_t)entity, kind, text,
			attrs);
	w->notices += !rc;
	return rc;
}

int rec_findings(struct rec_writer *w, const struct rec_finding *findings, size_t n)
{
	int rc = op_add(w, OP_FINDINGS_CLEAR);
	for (size_t i = 0; !rc && i < n; i++) {
		const struct rec_finding *f = &findings[i];
		rc = op_add(w, OP_FINDING, (int64_t)i + 1, f->id, f->severity, f->text, f->evidence,
			    f->advice);
	}
	return rc;
}
