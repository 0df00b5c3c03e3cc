/*
 * The virtual table `events`, with what is particular to a kind as JSON in `args`, and one table for each kind of
 * event (`steps`, `epochs`, ...) with columns of its own. Rows come in the order of time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/columns.h"
#include "export/scan.h"
#include "export/text.h"
#include "extension/filter.h"
#include "extension/table.h"

/* Both sorts of table begin the same; what comes behind is told apart by `own`. */
enum {
	COL_T,
	COL_TIME,
	COL_DUR,
	COL_ENTITY,
	COL_ENTITY_KIND,
	COL_ENTITY_ID,
	COL_ENTITY_KEY,
	COL_OWN,
};
#define SHARED                                                                     \
	"t_ns INTEGER, time TEXT, dur_ns INTEGER, entity TEXT, entity_kind TEXT, " \
	"entity_id INTEGER, entity_key INTEGER"
enum { COL_TRACK = COL_OWN, COL_NAME, COL_ARGS, COL_EVENTS__COUNT };

struct events_table {
	struct table table;
	struct columns columns; /* of the kind, where the table is of one kind */
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct session_run *run;
	const struct rec_track_info **tracks;
	struct scan_events *scan;
	struct scan_event event;
	sqlite3_int64 rowid;
	bool eof;
};

static int kind_of(const struct cursor *c)
{
	return ((const struct table *)c->base.pVtab)->aux->track;
}

/* The number of columns before the hidden one, which comes last. */
static int visible(const struct events_table *t)
{
	return t->table.aux->track < 0 ? COL_EVENTS__COUNT : COL_OWN + t->columns.n - EV_DUR - 1;
}

/* ------------------------------------------------------------------------------------------- table */

static int events_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
			  sqlite3_vtab **ret, char **ret_error)
{
	const struct table_aux *a = aux;
	struct events_table *t = calloc(1, sizeof(*t));
	struct buf schema = BUF_INIT;
	if (!t)
		return SQLITE_NOMEM;
	t->table.aux = a;
	buf_adds(&schema, "CREATE TABLE events(" SHARED);
	if (a->track < 0) {
		buf_adds(&schema, ", track TEXT, name TEXT, args TEXT");
	} else {
		columns_of_kind((enum track_kind)a->track, &t->columns);
		for (int i = EV_DUR + 1; i < t->columns.n; i++)
			buf_addf(&schema, ", \"%s\"", t->columns.names[i]);
	}
	buf_adds(&schema, ", recording TEXT HIDDEN)");
	int rc = schema.failed ? SQLITE_NOMEM : sqlite3_declare_vtab(db, schema.data);
	buf_free(&schema);
	if (rc)
		free(t);
	else
		*ret = &t->table.base;
	return rc;
}

static int events_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct events_table *t = (const struct events_table *)vtab;
	const struct filter_column columns[] = {
		{ COL_T, FILTER_TIME, 0.0001 },
		{ COL_ENTITY, FILTER_ENTITY, 0.3 },
		{ COL_ENTITY_KIND, FILTER_KIND, 0.5 },
		{ COL_ENTITY_ID, FILTER_ID, 0.3 },
		{ COL_ENTITY_KEY, FILTER_KEY, 0.3 },
		{ visible(t), FILTER_FILE, 1 },
		{ t->table.aux->track < 0 ? COL_TRACK : -1, FILTER_TRACK, 0.2 },
		{ -1, FILTER_TIME, 1 },
	};
	return filter_plan(info, columns);
}

/* ------------------------------------------------------------------------------------------ cursor */

static int events_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
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
	scan_events_free(c->scan);
	free(c->tracks);
	session_leave(t->aux->session, c->run);
	c->scan = NULL;
	c->tracks = NULL;
	c->run = NULL;
}

static int events_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	cursor_clear(c);
	free(c);
	return SQLITE_OK;
}

static int events_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	struct err e = { 0 };
	int rc = scan_events_next(c->scan, &c->event, &e);
	c->rowid++;
	c->eof = rc <= 0;
	return rc < 0 ? table_error(base->pVtab, rc, &e) : SQLITE_OK;
}

static size_t choose(struct cursor *c, const struct filter *f)
{
	const struct rec_track_info *all;
	size_t n = rec_tracks(c->run->r, &all), chosen = 0;
	int kind = kind_of(c);
	for (size_t i = 0; i < n; i++)
		if ((kind < 0 || all[i].kind == kind) &&
		    (!f->track || !strcmp(f->track, all[i].name)) &&
		    filter_entity(f, c->run->r, all[i].entity))
			c->tracks[chosen++] = &all[i];
	return chosen;
}

static int begin(struct cursor *c, const struct filter *f, struct err *e)
{
	const struct table *t = (const struct table *)c->base.pVtab;
	const struct rec_track_info *all;
	int rc = session_enter(t->aux->session, f->file, &c->run, e);
	if (rc)
		return rc;
	c->tracks = calloc(rec_tracks(c->run->r, &all) + 1, sizeof(*c->tracks));
	if (!c->tracks)
		return -ENOMEM;
	return scan_events_new(c->run->r, c->tracks, choose(c, f), f->t0, f->t1, &c->scan);
}

static int events_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
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
	return events_next(base);
}

static int events_eof(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->eof;
}

/* ----------------------------------------------------------------------------------------- columns */

static void result_cell(sqlite3_context *ctx, struct cell cell)
{
	if (cell.type == CELL_I64)
		sqlite3_result_int64(ctx, cell.i);
	else
		table_result_text(ctx, cell.type == CELL_TEXT ? cell.s : NULL);
}

/* A column of a table of one kind. The recording may be older and have fewer than the table. */
static void result_own(const struct cursor *c, sqlite3_context *ctx, int i)
{
	const struct events_table *t = (const struct events_table *)c->base.pVtab;
	if (i < c->event.ncolumns && i < t->columns.n)
		result_cell(ctx, columns_cell(&t->columns, c->run->r, c->event.row, i));
}

static void result_name(const struct cursor *c, sqlite3_context *ctx, const struct columns *columns)
{
	for (int i = EV_DUR + 1; i < columns->n; i++)
		if (!strcmp(columns->names[i], "name"))
			result_cell(ctx, columns_cell(columns, c->run->r, c->event.row, i));
}

/* A column of `events`. */
static void result_any(const struct cursor *c, sqlite3_context *ctx, int column)
{
	const struct rec_track_info *track = c->tracks[c->event.index];
	struct columns columns;
	struct buf b = BUF_INIT;
	columns_of(track, &columns);
	if (column == COL_TRACK) {
		table_result_text(ctx, track->name);
	} else if (column == COL_NAME) {
		result_name(c, ctx, &columns);
	} else {
		columns_args(&b, c->run->r, &columns, c->event.row);
		table_result_buf(ctx, &b);
	}
}

static int events_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
	const struct cursor *c = (const struct cursor *)base;
	const int64_t *row = c->event.row;
	if (column == COL_T) {
		sqlite3_result_int64(ctx, row[EV_T]);
	} else if (column == COL_TIME) {
		table_result_time(ctx, c->run->r, (uint64_t)row[EV_T]);
	} else if (column == COL_DUR) {
		if (row[EV_DUR] != REC_NONE)
			sqlite3_result_int64(ctx, row[EV_DUR]);
	} else if (column < COL_OWN) {
		table_result_entity(ctx, c->run->r, c->tracks[c->event.index]->entity,
				    column - COL_ENTITY);
	} else if (column == visible((const struct events_table *)base->pVtab)) {
		table_result_text(ctx, c->run->path);
	} else if (kind_of(c) < 0) {
		result_any(c, ctx, column);
	} else {
		result_own(c, ctx, column - COL_OWN + EV_DUR + 1);
	}
	return SQLITE_OK;
}

static int events_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct cursor *)base)->rowid;
	return SQLITE_OK;
}

const sqlite3_module table_events = {
	.xConnect = events_connect,
	.xBestIndex = events_best_index,
	.xDisconnect = table_disconnect,
	.xOpen = events_open,
	.xClose = events_close,
	.xFilter = events_filter,
	.xNext = events_next,
	.xEof = events_eof,
	.xColumn = events_column,
	.xRowid = events_rowid,
};
