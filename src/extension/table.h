/* What the virtual tables have in common: connection to the session, errors, entity columns. */
#ifndef SPOTTER_EXTENSION_TABLE_H
#define SPOTTER_EXTENSION_TABLE_H

#include <sqlite3.h>

#include "base/buf.h"
#include "extension/session.h"

/* What a module is registered with; freed by table_aux_free. */
struct table_aux {
	struct session *session;
	int track; /* the track_kind of a table of one kind, or -1 */
};

struct table {
	sqlite3_vtab base;
	const struct table_aux *aux;
};

extern const sqlite3_module table_samples; /* samples */
extern const sqlite3_module table_events;  /* events, and one table per kind: steps, epochs, ... */

void table_aux_free(void *aux);

/* xConnect with the text of a CREATE TABLE; xDisconnect. */
int table_connect(sqlite3 *db, void *aux, const char *schema, sqlite3_vtab **ret);
int table_disconnect(sqlite3_vtab *vtab);

/* Leave words for the user; returns what SQLite is to be told for a -errno. */
int table_error(sqlite3_vtab *vtab, int rc, const struct err *e);

/* entity, entity_kind, entity_id, entity_key: the column `which` (0 to 3) of these. */
void table_result_entity(sqlite3_context *ctx, const struct rec_reader *r, uint32_t entity,
			 int which);
/* The real time of a moment; NULL where it is not known. */
void table_result_time(sqlite3_context *ctx, const struct rec_reader *r, uint64_t t_ns);
void table_result_text(sqlite3_context *ctx, const char *s); /* NULL is NULL */
void table_result_buf(sqlite3_context *ctx, struct buf *b);  /* releases b */

#endif
