/*
 * The recordings that one SQLite connection reads through the extension: its own main database, and others that
 * were named as samples('other.spot'). A reader is opened when it is first needed, kept, and refreshed when
 * no cursor is in the middle of it.
 *
 * Used by one thread at a time: SQLite holds the connection's mutex around every call into a virtual table.
 */
#ifndef SPOTTER_EXTENSION_SESSION_H
#define SPOTTER_EXTENSION_SESSION_H

#include <sqlite3.h>

#include "base/err.h"
#include "recording/recording.h"

struct session;

/* A recording in use; r is not refreshed before the matching session_leave. */
struct session_run {
	struct rec_reader *r;
	char *path;
	unsigned users;
	unsigned long long device, inode; /* of the file that was opened */
	struct session_run *next;
};

/* For a connection; counted: each module holds one. NULL where memory is short. */
struct session *session_new(sqlite3 *db);
struct session *session_ref(struct session *s);
void session_unref(void *session); /* the last one closes all readers */

/* The recording at path, or with NULL the connection's main database. 0 or -errno with words. */
int session_enter(struct session *s, const char *path, struct session_run **ret, struct err *e);
void session_leave(struct session *s, struct session_run *run); /* NULL is fine */

#endif
