/*
 * What the writer and the reader share about SQLite: the schema, errors in words, prepared
 * statements. Private to src/recording/.
 */
#ifndef SPOTTER_RECORDING_DB_H
#define SPOTTER_RECORDING_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/err.h"
#include "recording/recording.h"

#define DB_APPLICATION_ID 0x53504f54 /* "SPOT" */
#define DB_VERSION        1          /* of the format that is written */
#define DB_MIN_READER     1          /* the oldest format version a reader must know to read it */
#define DB_USER_VERSION   (DB_VERSION << 16 | DB_MIN_READER)

/* A chunk is found by its batch and series in one number, the rowid. */
#define DB_CHUNK_ID(batch, series) ((int64_t)(batch) << 32 | (int64_t)(series))

extern const char db_schema[]; /* SQL that makes the tables of an empty database */

/* Which journal suits the file system of path (a file, or the folder it will be in). */
enum rec_journal db_journal_for(const char *path);

/* An SQLite result code as -errno; db may be NULL. Never 0 for an error. */
int db_errno(sqlite3 *db, int rc);

/* Fill e with "path: what happened (what to do)" and return db_errno(). */
int db_error(struct err *e, sqlite3 *db, int rc, const char *path);

/* Run SQL without results; SQLite's result code. */
int db_exec(sqlite3 *db, const char *sql);

/* Prepare once, on first use, and keep in *st. SQLite's result code. */
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **st);

/* Step a statement that gives no rows, and reset it. SQLITE_OK or the error. */
int db_run(sqlite3_stmt *st);

/* A value with its type: what chunk summaries hold. */
void db_bind_number(sqlite3_stmt *st, int column, int64_t bits, enum metric_type type);

#endif
