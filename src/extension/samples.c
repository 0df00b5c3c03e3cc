/* The virtual table `samples`: a row per sample, in the order of time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/scan.h"
#include "export/text.h"
#include "extension/filter.h"
#include "extension/table.h"

enum {
	COL_T,
	COL_TIME,
	COL_ENTITY,
	COL_ENTITY_KIND,
	COL_ENTITY_ID,
	COL_ENTITY_KEY,
	COL_METRIC,
	COL_VALUE,
	COL_UNIT,
	COL_SOURCE,
	COL_RECORDING,
};

static const char schema[] =
	"CREATE TABLE samples(t_ns INTEGER, time TEXT, entity TEXT, entity_kind TEXT, "
	"entity_id INTEGER, entity_key INTEGER, metric TEXT, value NUMERIC, unit TEXT, "
	"source TEXT, recording TEXT HIDDEN)";

static const struct filter_column columns[] = {
	{ COL_T, FILTER_TIME, 0.0001 },     { COL_METRIC, FILTER_METRIC, 0.02 },
	{ COL_ENTITY, FILTER_ENTITY, 0.1 }, { COL_ENTITY_KIND, FILTER_KIND, 0.2 },
	{ COL_ENTITY_ID, FILTER_ID, 0.05 }, { COL_ENTITY_KEY, FILTER_KEY, 0.1 },
	{ COL_RECORDING, FILTER_FILE, 1 },  { -1, FILTER_TIME, 1 },
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct session_run *run;
	const struct rec_series_info **series;
	struct scan *scan;
	struct scan_row row;
	size_t at; /* of row's values */
	sqlite3_int64 rowid;
	bool eof;
};

static int samples_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			   sqlite3_vtab **ret, char **ret_error)
{
	return table_connect(db, aux, schema, ret);
}

static int samples_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	return filter_plan(info, columns);
}

static int samples_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
	struct cursor *c = calloc(1, sizeof(*c));
	if (!c)
		return SQLITE_NOMEM;
	*ret = &c->base;
	return SQLITE_OK;
}

static void cursor_clear(struct cursor *c)
{
	const struct table *t = (const struct table *)c->base.pVtab;
	scan_free(c->scan);
	free(c->series);
	session_leave(t->aux->session, c->run);
	c->scan = NULL;
	c->series = NULL;
	c->run = NULL;
}

static int samples_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	cursor_clear(c);
	free(c);
	return SQLITE_OK;
}

static int samples_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	struct err e = { 0 };
	c->rowid++;
	if (++c->at < c->row.n)
		return SQLITE_OK;
	c->at = 0;
	int rc = scan_next(c->scan, &c->row, &e);
	c->eof = rc <= 0;
	return rc < 0 ? table_error(base->pVtab, rc, &e) : SQLITE_OK;
}

static size_t choose(struct cursor *c, const struct filter *f)
{
	const struct rec_series_info *all;
	size_t n = rec_serieses(c->run->r, &all), chosen = 0;
	for (size_t i = 0; i < n; i++)
		if ((!f->metric || !strcmp(f->metric, all[i].name)) &&
		    filter_entity(f, c->run->r, all[i].entity))
			c->series[chosen++] = &all[i];
	return chosen;
}

static int begin(struct cursor *c, const struct filter *f, struct err *e)
{
	const struct table *t = (const struct table *)c->base.pVtab;
	const struct rec_series_info *all;
	int rc = session_enter(t->aux->session, f->file, &c->run, e);
	if (rc)
		return rc;
	c->series = calloc(rec_serieses(c->run->r, &all) + 1, sizeof(*c->series));
	if (!c->series)
		return -ENOMEM;
	return scan_new(c->run->r, c->series, choose(c, f), f->t0, f->t1, &c->scan);
}

static int samples_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
			  sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	struct filter f;
	struct err e = { 0 };
	cursor_clear(c);
	filter_read(plan, argc, argv, &f);
	c->eof = f.nothing;
	if (c->eof)
		return SQLITE_OK;
	int rc = begin(c, &f, &e);
	if (rc) {
		c->eof = true;
		return table_error(base->pVtab, rc, &e);
	}
	c->row = (struct scan_row){ 0 };
	c->at = 0;
	return samples_next(base);
}

static int samples_eof(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->eof;
}

static int samples_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct cursor *c = (const struct cursor *)base;
	const struct scan_value *v = &c->row.values[c->at];
	const struct rec_series_info *s = c->series[v->index];
	switch (column) {
	case COL_T:
		sqlite3_result_int64(ctx, (sqlite3_int64)c->row.t_ns);
		break;
	case COL_TIME:
		table_result_time(ctx, c->run->r, c->row.t_ns);
		break;
	case COL_METRIC:
		table_result_text(ctx, s->name);
		break;
	case COL_VALUE:
		if (v->type == METRIC_I64)
			sqlite3_result_int64(ctx, v->i);
		else
			sqlite3_result_double(ctx, v->v);
		break;
	case COL_UNIT:
		table_result_text(ctx, s->unit);
		break;
	case COL_SOURCE:
		table_result_text(ctx, s->source);
		break;
	case COL_RECORDING:
		table_result_text(ctx, c->run->path);
		break;
	default:
		table_result_entity(ctx, c->run->r, s->entity, column - COL_ENTITY);
	}
	return SQLITE_OK;
}

static int samples_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct cursor *)base)->rowid;
	return SQLITE_OK;
}

/* Without xCreate the table is there by its name alone, in every database, and cannot be made again. */
const sqlite3_module table_samples = {
	.xConnect = samples_connect,
	.xBestIndex = samples_best_index,
	.xDisconnect = table_disconnect,
	.xOpen = samples_open,
	.xClose = samples_close,
	.xFilter = samples_filter,
	.xNext = samples_next,
	.xEof = samples_eof,
	.xColumn = samples_column,
	.xRowid = samples_rowid,
};
