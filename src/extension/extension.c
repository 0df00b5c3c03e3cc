/*
 * spotter.so: plain SQL over a recording. `.load spotter` in sqlite3, or load_extension() from any language,
 * gives the virtual tables samples, events, and one per kind of event (steps, epochs, ...); doc/sql.md.
 *
 * The reader needs SQLite, and it runs here inside a program that has one already. Linking a second copy would be
 * wrong: POSIX locks belong to the process, and closing any descriptor of a file drops all locks the process
 * has on it, so two copies that do not know of each other would take each other's locks away and a writer
 * in another process could overwrite what is being read. Therefore nothing of SQLite is linked into this file:
 * the reader is compiled once more with host/sqlite3.h in front of the real header, which sends each call
 * through the table of functions that the host hands to an extension. There is one SQLite in the process, it
 * knows all its descriptors of the file, and the reader's own connection is an ordinary second connection to
 * it, read-only. It never writes, and changes nothing in the connection that loaded it.
 */
#include <sqlite3ext.h>
#include <stdio.h>
#include <stdlib.h>

#include "extension/table.h"

SQLITE_EXTENSION_INIT1

#define OLDEST_SQLITE 3035000

/* The table of one kind of events: the kind's name in the plural. */
static void table_name(enum track_kind kind, char *name, size_t cap)
{
	snprintf(name, cap, kind == TRACK_GC ? "%s_pauses" : "%ss", track_info(kind)->name);
}

static int add_table(sqlite3 *db, const char *name, const sqlite3_module *module,
		     struct session *session, int track)
{
	struct table_aux *aux = calloc(1, sizeof(*aux));
	if (!aux)
		return SQLITE_NOMEM;
	*aux = (struct table_aux){ .session = session_ref(session), .track = track };
	return sqlite3_create_module_v2(db, name, module, aux, table_aux_free);
}

static int add_tables(sqlite3 *db, struct session *session)
{
	int rc = add_table(db, "samples", &table_samples, session, -1);
	if (!rc)
		rc = add_table(db, "events", &table_events, session, -1);
	for (int kind = 0; !rc && kind < TRACK__COUNT; kind++) {
		char name[64];
		table_name((enum track_kind)kind, name, sizeof(name));
		rc = add_table(db, name, &table_events, session, kind);
	}
	return rc;
}

__attribute__((visibility("default"))) int sqlite3_spotter_init(sqlite3 *db, char **ret_error,
								const sqlite3_api_routines *api);

int sqlite3_spotter_init(sqlite3 *db, char **ret_error, const sqlite3_api_routines *api)
{
	SQLITE_EXTENSION_INIT2(api);
	if (sqlite3_libversion_number() < OLDEST_SQLITE) {
		*ret_error = sqlite3_mprintf("spotter needs SQLite 3.35 or newer, this is %s",
					     sqlite3_libversion());
		return SQLITE_ERROR;
	}
	struct session *session = session_new(db);
	if (!session)
		return SQLITE_NOMEM;
	int rc = add_tables(db, session);
	session_unref(session);
	return rc;
}
