/*
 * Rows that were read before and are different now: the table `change` names them, and they are
 * read again.
 */
#include "recording/reader.h"

#include <string.h>

static int entity_changed(struct rec_reader *r, sqlite3_stmt *st, int64_t id)
{
	struct rec_entity_info *e = catalogue_entity(r, (uint32_t)id), now;
	if (!e || e->id != id)
		return 0;
	int rc = catalogue_read_entity(st, &now);
	if (rc)
		return rc;
	catalogue_free_entity(e);
	*e = now;
	return 0;
}

static int series_changed(struct rec_reader *r, sqlite3_stmt *st, int64_t id)
{
	int64_t place = id >= 0 && id <= UINT32_MAX ? catalogue_series(r, (uint32_t)id) : -1;
	if (place >= 0)
		r->series.at[place].batch1 = sqlite3_column_int64(st, 1);
	return 0;
}

static int gap_changed(struct rec_reader *r, sqlite3_stmt *st, int64_t id)
{
	size_t lo = 0, hi = r->gap_ids.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (r->gap_ids.at[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < r->gap_ids.n && r->gap_ids.at[lo] == id)
		r->gaps.at[lo].t1_ns = (uint64_t)sqlite3_column_int64(st, 1);
	return 0;
}

static const struct {
	const char *what, *sql;
	int (*changed)(struct rec_reader *r, sqlite3_stmt *st, int64_t id);
} changes[] = {
	{ "entity", "SELECT id,kind,parent,name,key,t0,t1,attrs FROM entity WHERE id=?1",
	  entity_changed },
	{ "series", "SELECT id,batch1 FROM series WHERE id=?1", series_changed },
	{ "gap", "SELECT id,t1 FROM gap WHERE id=?1", gap_changed },
};

/* A row that may have been read before is different now. (Of what is not known nothing is kept.) */
int reader_change_row(struct rec_reader *r, sqlite3_stmt *st)
{
	const char *what = (const char *)sqlite3_column_text(st, 1);
	int64_t id = sqlite3_column_int64(st, 2);
	for (size_t i = 0; what && i < sizeof(changes) / sizeof(*changes); i++) {
		if (strcmp(changes[i].what, what))
			continue;
		if (db_prepare(r->db, changes[i].sql, &r->change_st[i]) != SQLITE_OK)
			return reader_damaged(r);
		sqlite3_bind_int64(r->change_st[i], 1, id);
		int rc = sqlite3_step(r->change_st[i]) == SQLITE_ROW
				 ? changes[i].changed(r, r->change_st[i], id)
				 : 0;
		sqlite3_reset(r->change_st[i]);
		return rc;
	}
	return 0;
}
