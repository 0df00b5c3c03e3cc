/* What the writer and the reader share about SQLite; see db.h. */
#include "recording/db.h"

#include <errno.h>
#include <string.h>

static const struct {
	int sqlite, code;
} codes[] = {
	{ SQLITE_FULL, ENOSPC },      { SQLITE_NOMEM, ENOMEM },    { SQLITE_BUSY, EBUSY },
	{ SQLITE_LOCKED, EBUSY },     { SQLITE_PERM, EACCES },     { SQLITE_AUTH, EACCES },
	{ SQLITE_READONLY, EROFS },   { SQLITE_CANTOPEN, EACCES }, { SQLITE_CORRUPT, EBADMSG },
	{ SQLITE_NOTADB, EBADMSG },   { SQLITE_FORMAT, EBADMSG },  { SQLITE_PROTOCOL, EBUSY },
	{ SQLITE_TOOBIG, EFBIG },     { SQLITE_ERROR, EBADMSG },   { SQLITE_SCHEMA, EBADMSG },
	{ SQLITE_MISMATCH, EBADMSG }, { SQLITE_NOLFS, EFBIG },     { SQLITE_CONSTRAINT, EBADMSG },
};

int db_errno(sqlite3 *db, int rc)
{
	int primary = rc & 0xff;
	int os = db ? sqlite3_system_errno(db) : 0;
	if (rc == SQLITE_IOERR_NOMEM)
		return -ENOMEM;
	if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && os > 0)
		return os == EDQUOT ? -ENOSPC : -os;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (codes[i].sqlite == primary)
			return -codes[i].code;
	return -EIO;
}

static const char *explain(int code)
{
	switch (code) {
	case ENOSPC:
		return "no space left on device (free some, or record to another disk with -o)";
	case EBADMSG:
		return "the file is damaged";
	case EBUSY:
		return "another process has locked the file";
	case ENOMEM:
		return "out of memory";
	default:
		return strerror(code);
	}
}

int db_error(struct err *e, sqlite3 *db, int rc, const char *path)
{
	int code = -db_errno(db, rc);
	return err_set(e, code, "%s: %s", path, explain(code));
}

int db_exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **st)
{
	if (*st)
		return SQLITE_OK;
	return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, st, NULL);
}

int db_run(sqlite3_stmt *st)
{
	sqlite3_step(st);
	return sqlite3_reset(st);
}

void db_bind_number(sqlite3_stmt *st, int column, int64_t bits, enum metric_type type)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	if (type == METRIC_F64)
		sqlite3_bind_double(st, column, d);
	else
		sqlite3_bind_int64(st, column, bits);
}
