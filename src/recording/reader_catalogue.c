/*
 * What is small and kept in memory: facts, entities, series, tracks, notices, gaps, clocks, the
 * list of batches, and the decoded tail. Tables only grow, so a refresh reads the rows behind the
 * last one seen; rows that were changed are named in the table `change`. One function per table
 * takes one row.
 */
#include "recording/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOLE_MAX 65536 /* ids of series may be missing (damage), but not many: arrays go by id */

static reader_row_fn metric_row, entity_row, series_row, track_row, notice_row, gap_row, clock_row,
	event_row;

/* Column 0 is the rowid, by which all are read in order. */
static const struct {
	const char *sql;
	reader_row_fn *row;
} tables[CATALOGUE__COUNT] = {
	[CATALOGUE_METRIC] = { "SELECT id,name,unit,kind,type FROM metric WHERE id>?1 ORDER BY id",
			       metric_row },
	[CATALOGUE_ENTITY] = { "SELECT id,kind,parent,name,key,t0,t1,attrs FROM entity WHERE id>?1"
			       " ORDER BY id",
			       entity_row },
	[CATALOGUE_SERIES] = { "SELECT id,entity,metric,source,batch0,batch1 FROM series WHERE "
			       "id>?1"
			       " ORDER BY id",
			       series_row },
	[CATALOGUE_TRACK] = { "SELECT id,entity,name,columns FROM track WHERE id>?1 ORDER BY id",
			      track_row },
	[CATALOGUE_NOTICE] = { "SELECT id,t,entity,kind,text,attrs FROM notice WHERE id>?1 ORDER "
			       "BY id",
			       notice_row },
	[CATALOGUE_GAP] = { "SELECT id,series,t0,t1,reason FROM gap WHERE id>?1 ORDER BY id",
			    gap_row },
	[CATALOGUE_CLOCK] = { "SELECT mono,real FROM clock WHERE mono>?1 ORDER BY mono",
			      clock_row },
	[CATALOGUE_EVENT] = { "SELECT id,t0,t1 FROM event WHERE id>?1 ORDER BY id", event_row },
	[CATALOGUE_CHANGE] = { "SELECT id,what,row FROM change WHERE id>?1 ORDER BY id",
			       reader_change_row },
	[CATALOGUE_BATCH] = { "SELECT id,t0,t1,n FROM batch WHERE id>?1 ORDER BY id",
			      reader_batch_row },
	[CATALOGUE_TAIL] = { "SELECT id,data FROM tail WHERE id>?1 AND batch="
			     "(SELECT coalesce(max(id),0)+1 FROM batch) ORDER BY id",
			     reader_tail_row },
};

int reader_grow(void *array, size_t size)
{
	READER_ARRAY(void) *a = array;
	if (a->n < a->cap)
		return 0;
	size_t cap = a->cap ? a->cap * 2 : 16;
	void *at = realloc(a->at, cap * size);
	if (!at)
		return -ENOMEM;
	a->at = at;
	a->cap = cap;
	return 0;
}

/* The text of a column in malloc'ed memory; NULL stays NULL. */
static int copy_text(sqlite3_stmt *st, int column, char **ret)
{
	const char *s = (const char *)sqlite3_column_text(st, column);
	if (!s) {
		*ret = NULL;
		return 0;
	}
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

static int copy_name(sqlite3_stmt *st, int column, char **ret)
{
	const char *s = (const char *)sqlite3_column_text(st, column);
	*ret = strdup(s ? s : "");
	return *ret ? 0 : -ENOMEM;
}

static int metric_row(struct rec_reader *r, sqlite3_stmt *st)
{
	struct rec_series_info m = { .metric = -1 };
	char *name = NULL, *unit = NULL;
	const char *kind = (const char *)sqlite3_column_text(st, 3);
	const char *type = (const char *)sqlite3_column_text(st, 4);
	m.kind = kind && !strcmp(kind, "counter") ? METRIC_COUNTER : METRIC_GAUGE;
	m.type = type && !strcmp(type, "f64") ? METRIC_F64 : METRIC_I64;
	if (READER_GROW(r->metric_info) || copy_name(st, 1, &name) || copy_name(st, 2, &unit) ||
	    map_put(&r->metrics, (uint64_t)sqlite3_column_int64(st, 0), r->metric_info.n)) {
		free(name);
		free(unit);
		return -ENOMEM;
	}
	int known = metric_find(name);
	m.metric = known >= 0 ? known : -1;
	m.name = name;
	m.unit = unit;
	r->metric_info.at[r->metric_info.n++] = m;
	return 0;
}

static enum entity_kind kind_of(const char *name)
{
	int kind = 0;
	while (kind < ENTITY__COUNT && (!name || strcmp(entity_kind_name(kind), name)))
		kind++;
	return kind;
}

void catalogue_free_entity(struct rec_entity_info *e)
{
	free((char *)(uintptr_t)e->name);
	free((char *)(uintptr_t)e->attrs);
}

int catalogue_read_entity(sqlite3_stmt *st, struct rec_entity_info *ret)
{
	char *name = NULL, *attrs = NULL;
	if (copy_name(st, 3, &name) || copy_text(st, 7, &attrs)) {
		free(name);
		return -ENOMEM;
	}
	*ret = (struct rec_entity_info){
		.id = (uint32_t)sqlite3_column_int64(st, 0),
		.kind = kind_of((const char *)sqlite3_column_text(st, 1)),
		.parent = (uint32_t)sqlite3_column_int64(st, 2),
		.name = name,
		.key = sqlite3_column_int64(st, 4),
		.t0_ns = (uint64_t)sqlite3_column_int64(st, 5),
		.t1_ns = (uint64_t)sqlite3_column_int64(st, 6),
		.attrs = attrs,
	};
	return 0;
}

static int entity_row(struct rec_reader *r, sqlite3_stmt *st)
{
	int64_t id = sqlite3_column_int64(st, 0);
	if (id < 1 || id > UINT32_MAX)
		return reader_damaged(r);
	if (READER_GROW(r->entities) || catalogue_read_entity(st, &r->entities.at[r->entities.n]))
		return -ENOMEM;
	r->entities.n++;
	return 0;
}

static int series_row(struct rec_reader *r, sqlite3_stmt *st)
{
	int64_t id = sqlite3_column_int64(st, 0), entity = sqlite3_column_int64(st, 1);
	uint64_t metric;
	if (id < 0 || (uint64_t)id > r->serieses.n + HOLE_MAX || entity < 1 ||
	    entity > UINT32_MAX ||
	    !map_get(&r->metrics, (uint64_t)sqlite3_column_int64(st, 2), &metric))
		return reader_damaged(r);
	struct rec_series_info s = r->metric_info.at[metric];
	char *source;
	if (READER_GROW(r->serieses) || READER_GROW(r->series) || copy_name(st, 3, &source))
		return -ENOMEM;
	s.id = (uint32_t)id;
	s.entity = (uint32_t)entity;
	s.source = source;
	if (s.metric >= 0 &&
	    map_put(&r->series_of, (uint64_t)s.entity << 32 | (uint32_t)s.metric, r->serieses.n)) {
		free(source);
		return -ENOMEM;
	}
	r->serieses.at[r->serieses.n++] = s;
	r->series.at[r->series.n++] =
		(struct reader_series){ .batch0 = sqlite3_column_int64(st, 4),
					.batch1 = sqlite3_column_int64(st, 5) };
	return 0;
}

/* The next word of a list separated by blanks; its length, 0 at the end. */
static size_t next_word(const char **p)
{
	*p += strspn(*p, " ");
	return strcspn(*p, " ");
}

static int8_t column_of(int kind, const char *word, size_t len)
{
	int8_t place = 0;
	const char *p = track_info((enum track_kind)kind)->columns;
	for (size_t n; (n = next_word(&p)); p += n, place++)
		if (n == len && !memcmp(p, word, n))
			return place;
	return -1;
}

/* Fill in where each column of the file goes; false if there are none or too many. */
static bool map_columns(struct reader_track *t, int kind, const char *columns)
{
	for (size_t n; (n = next_word(&columns)); columns += n) {
		if (t->ncolumns == (int)(sizeof(t->to) / sizeof(*t->to)))
			return false;
		t->to[t->ncolumns] = kind >= 0 ? column_of(kind, columns, n) : (int8_t)t->ncolumns;
		t->ncolumns++;
	}
	return t->ncolumns > 0;
}

static int track_row(struct rec_reader *r, sqlite3_stmt *st)
{
	int64_t id = sqlite3_column_int64(st, 0), entity = sqlite3_column_int64(st, 1);
	const char *columns = (const char *)sqlite3_column_text(st, 3);
	struct reader_track t = { 0 };
	char *name = NULL, *list = NULL;
	if (id < 0 || id > UINT32_MAX || entity < 1 || entity > UINT32_MAX || !columns)
		return reader_damaged(r);
	if (READER_GROW(r->tracks) || READER_GROW(r->track) || copy_name(st, 2, &name))
		return -ENOMEM;
	int kind = 0;
	while (kind < TRACK__COUNT && strcmp(track_info((enum track_kind)kind)->name, name))
		kind++;
	kind = kind < TRACK__COUNT ? kind : -1;
	if (!map_columns(&t, kind, columns)) {
		free(name);
		return reader_damaged(r);
	}
	list = strdup(kind >= 0 ? track_info((enum track_kind)kind)->columns : columns);
	if (!list) {
		free(name);
		return -ENOMEM;
	}
	r->track.at[r->track.n++] = t;
	r->tracks.at[r->tracks.n++] = (struct rec_track_info){
		.id = (uint32_t)id,
		.entity = (uint32_t)entity,
		.kind = kind,
		.name = name,
		.ncolumns = kind >= 0 ? track_ncolumns((enum track_kind)kind) : t.ncolumns,
		.columns = list,
	};
	return 0;
}

static void free_notice(struct rec_notice_info *n)
{
	free((char *)(uintptr_t)n->kind);
	free((char *)(uintptr_t)n->text);
	free((char *)(uintptr_t)n->attrs);
}

static int notice_row(struct rec_reader *r, sqlite3_stmt *st)
{
	char *kind = NULL, *text = NULL, *attrs = NULL;
	if (READER_GROW(r->notices) || copy_name(st, 3, &kind) || copy_name(st, 4, &text) ||
	    copy_text(st, 5, &attrs)) {
		free(kind);
		free(text);
		return -ENOMEM;
	}
	r->notices.at[r->notices.n++] = (struct rec_notice_info){
		.t_ns = (uint64_t)sqlite3_column_int64(st, 1),
		.entity = (uint32_t)sqlite3_column_int64(st, 2),
		.kind = kind,
		.text = text,
		.attrs = attrs,
	};
	return 0;
}

static int gap_row(struct rec_reader *r, sqlite3_stmt *st)
{
	char *reason;
	if (READER_GROW(r->gaps) || READER_GROW(r->gap_ids) || copy_name(st, 4, &reason))
		return -ENOMEM;
	r->gap_ids.at[r->gap_ids.n++] = sqlite3_column_int64(st, 0);
	r->gaps.at[r->gaps.n++] = (struct rec_gap_info){
		.series = (uint32_t)sqlite3_column_int64(st, 1),
		.t0_ns = (uint64_t)sqlite3_column_int64(st, 2),
		.t1_ns = (uint64_t)sqlite3_column_int64(st, 3),
		.reason = reason,
	};
	return 0;
}

static int clock_row(struct rec_reader *r, sqlite3_stmt *st)
{
	if (READER_GROW(r->clocks))
		return -ENOMEM;
	r->clocks.at[r->clocks.n++] =
		(struct reader_clock){ .mono = (uint64_t)sqlite3_column_int64(st, 0),
				       .real = (uint64_t)sqlite3_column_int64(st, 1) };
	return 0;
}

static int event_row(struct rec_reader *r, sqlite3_stmt *st)
{
	int64_t t0 = sqlite3_column_int64(st, 1), t1 = sqlite3_column_int64(st, 2);
	if (t0 < 0 || t1 < t0)
		return reader_damaged(r);
	if (!r->event_t0 || (uint64_t)t0 < r->event_t0)
		r->event_t0 = (uint64_t)t0;
	if ((uint64_t)t1 > r->event_t1)
		r->event_t1 = (uint64_t)t1;
	return 0;
}

/* --------------------------------------------------------------------------------- whole tables */

static void clear_facts(struct rec_reader *r)
{
	for (size_t i = 0; i < r->facts.n; i++) {
		free((char *)(uintptr_t)r->facts.at[i].key);
		free((char *)(uintptr_t)r->facts.at[i].value);
	}
	r->facts.n = 0;
}

static void clear_findings(struct rec_reader *r)
{
	for (size_t i = 0; i < r->findings.n; i++) {
		struct rec_finding *f = &r->findings.at[i];
		const char *texts[] = { f->id, f->severity, f->text, f->evidence, f->advice };
		for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
			free((char *)(uintptr_t)texts[k]);
	}
	r->findings.n = 0;
}

static int fact_row(struct rec_reader *r, sqlite3_stmt *st)
{
	char *key = NULL, *value = NULL;
	if (READER_GROW(r->facts) || copy_name(st, 0, &key) || copy_name(st, 1, &value)) {
		free(key);
		return -ENOMEM;
	}
	r->facts.at[r->facts.n++] = (struct rec_fact){ .key = key, .value = value };
	return 0;
}

static int finding_row(struct rec_reader *r, sqlite3_stmt *st)
{
	char *t[5] = { 0 };
	if (READER_GROW(r->findings))
		return -ENOMEM;
	for (int i = 0; i < 5; i++) {
		if (!copy_name(st, i + 1, &t[i]))
			continue;
		while (i--)
			free(t[i]);
		return -ENOMEM;
	}
	r->findings.at[r->findings.n++] = (struct rec_finding){
		.id = t[0], .severity = t[1], .text = t[2], .evidence = t[3], .advice = t[4]
	};
	return 0;
}

/* -------------------------------------------------------------------------------------- loading */

/*
 * Give all rows of a statement to fn. What SQLite finds damaged is counted and left out; other
 * errors end it. With a cursor, rows behind it only, and it moves on.
 */
static int each_row(struct rec_reader *r, const char *sql, reader_row_fn *fn, int64_t *cursor,
		    struct err *e)
{
	sqlite3_stmt *st = NULL;
	int sq = sqlite3_prepare_v2(r->db, sql, -1, &st, NULL), rc = 0;
	if (sq != SQLITE_OK)
		return db_error(e, r->db, sq, r->path);
	if (cursor)
		sqlite3_bind_int64(st, 1, *cursor);
	while (!rc && (sq = sqlite3_step(st)) == SQLITE_ROW) {
		rc = fn(r, st);
		r->newer = true;
		if (cursor && !rc)
			*cursor = sqlite3_column_int64(st, 0);
	}
	if (rc)
		err_set(e, -rc, "%s: out of memory", r->path);
	else if ((sq & 0xff) == SQLITE_CORRUPT)
		r->damaged++;
	else if (sq != SQLITE_DONE)
		rc = db_error(e, r->db, sq, r->path);
	sqlite3_finalize(st);
	return rc;
}

static int cursor_row(struct rec_reader *r, sqlite3_stmt *st)
{
	r->cursor[CATALOGUE_CHANGE] = sqlite3_column_int64(st, 0);
	return 0;
}

int catalogue_load(struct rec_reader *r, struct err *e)
{
	int rc = 0;
	r->newer = false;
	clear_facts(r);
	clear_findings(r);
	rc = each_row(r, "SELECT key,value FROM run ORDER BY key", fact_row, NULL, e);
	if (!rc)
		rc = each_row(
			r,
			"SELECT id,finding,severity,text,evidence,advice FROM finding ORDER BY id",
			finding_row, NULL, e);
	/* The first time everything is read as it is now: earlier changes are in it. */
	if (!rc && r->version < 0)
		rc = each_row(r, "SELECT coalesce(max(id),0) FROM change", cursor_row, NULL, e);
	for (size_t i = 0; !rc && i < CATALOGUE__COUNT; i++)
		rc = each_row(r, tables[i].sql, tables[i].row, &r->cursor[i], e);
	return rc;
}

struct rec_entity_info *catalogue_entity(const struct rec_reader *r, uint32_t id)
{
	size_t lo = 0, hi = r->entities.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (r->entities.at[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->entities.n && r->entities.at[lo].id == id ? &r->entities.at[lo] : NULL;
}

int64_t catalogue_series(const struct rec_reader *r, uint32_t id)
{
	if (id < r->serieses.n && r->serieses.at[id].id == id)
		return id;
	size_t lo = 0, hi = r->serieses.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (r->serieses.at[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->serieses.n && r->serieses.at[lo].id == id ? (int64_t)lo : -ENOENT;
}

void catalogue_free(struct rec_reader *r)
{
	clear_facts(r);
	clear_findings(r);
	for (size_t i = 0; i < r->entities.n; i++)
		catalogue_free_entity(&r->entities.at[i]);
	for (size_t i = 0; i < r->metric_info.n; i++) {
		free((char *)(uintptr_t)r->metric_info.at[i].name);
		free((char *)(uintptr_t)r->metric_info.at[i].unit);
	}
	for (size_t i = 0; i < r->serieses.n; i++) {
		free((char *)(uintptr_t)r->serieses.at[i].source);
		free(r->series.at[i].tail.tick);
		free(r->series.at[i].tail.v);
	}
	for (size_t i = 0; i < r->tracks.n; i++) {
		free((char *)(uintptr_t)r->tracks.at[i].name);
		free((char *)(uintptr_t)r->tracks.at[i].columns);
	}
	for (size_t i = 0; i < r->notices.n; i++)
		free_notice(&r->notices.at[i]);
	for (size_t i = 0; i < r->gaps.n; i++)
		free((char *)(uintptr_t)r->gaps.at[i].reason);
	for (size_t i = 0; i < r->batches.n; i++)
		free(r->batches.at[i].times);
	void *arrays[] = { r->facts.at,    r->findings.at,  r->entities.at, r->metric_info.at,
			   r->serieses.at, r->series.at,    r->tracks.at,   r->track.at,
			   r->notices.at,  r->gaps.at,      r->gap_ids.at,  r->clocks.at,
			   r->batches.at,  r->tail_times.at };
	for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++)
		free(arrays[i]);
	for (size_t i = 0; i < sizeof(r->change_st) / sizeof(*r->change_st); i++)
		sqlite3_finalize(r->change_st[i]);
	map_free(&r->metrics);
	map_free(&r->series_of);
}
