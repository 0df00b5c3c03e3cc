/*
 * The reader: opening a recording in whatever state it was left, refreshing, and what is asked of
 * the catalogue. Files come from anywhere, so SQLite is told to trust nothing in them; see reader.h
 * for the parts.
 */
#include "recording/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define BLOB_MAX     (64 << 20)
#define BUSY_MS      250
#define OPEN_BUSY_MS 2000

/* -------------------------------------------------------------------------------------- opening */

/*
 * Ways to open, tried in turn. A recorder that was killed may leave a log that has to be read
 * together with the file: SQLite does that by itself where it may write beside the file. Where it
 * may not (a read-only folder, a copy), the log is read without shared memory, and as a last resort
 * left out.
 */
static const struct way {
	int flags;
	const char *parameters; /* of the URI; NULL: the plain path */
	const char *pragma;     /* before anything is read */
	bool writes;            /* rolls back a journal: what any opener would do */
} ways[] = {
	{ SQLITE_OPEN_READONLY, NULL, NULL, false },
	{ SQLITE_OPEN_READWRITE, NULL, NULL, true },
	{ SQLITE_OPEN_READONLY, "?mode=ro&vfs=unix-none", "PRAGMA locking_mode=EXCLUSIVE", false },
	{ SQLITE_OPEN_READONLY, "?immutable=1", NULL, false },
};

/* path as a URI with parameters, in malloc'ed memory. */
static char *make_uri(const char *path, const char *parameters)
{
	struct buf b = BUF_INIT;
	char absolute[PATH_MAX];
	buf_adds(&b, "file:");
	for (const char *p = realpath(path, absolute) ? absolute : path; *p; p++)
		if (strchr("?#%", *p))
			buf_addf(&b, "%%%02x", (unsigned char)*p);
		else
			buf_addc(&b, *p);
	buf_adds(&b, parameters);
	return buf_detach(&b);
}

static void trust_nothing(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, BLOB_MAX);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_timeout(db, OPEN_BUSY_MS);
}

/* One number from one statement. SQLite's result code; SQLITE_DONE where there is no row. */
static int number(sqlite3 *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			*ret = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int open_way(struct rec_reader *r, const struct way *way)
{
	int64_t tables;
	char *uri = way->parameters ? make_uri(r->path, way->parameters) : NULL;
	if (way->parameters && !uri)
		return SQLITE_NOMEM;
	int rc = sqlite3_open_v2(uri ? uri : r->path, &r->db,
				 way->flags | SQLITE_OPEN_NOMUTEX | (uri ? SQLITE_OPEN_URI : 0),
				 NULL);
	free(uri);
	if (rc != SQLITE_OK)
		return rc;
	trust_nothing(r->db);
	if (way->pragma)
		rc = db_exec(r->db, way->pragma);
	if (rc == SQLITE_OK)
		rc = db_exec(
			r->db,
			"PRAGMA mmap_size=0; PRAGMA cache_size=-1024; PRAGMA cell_size_check=ON");
	if (rc == SQLITE_OK)
		rc = number(r->db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (rc == SQLITE_OK && way->writes)
		rc = db_exec(r->db, "PRAGMA query_only=ON");
	return rc;
}

/* Failures that another way of opening may get round. (Not a lock: who holds it is writing.) */
static bool try_on(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_IOERR:
		return true;
	}
	return false;
}

static int open_any(struct rec_reader *r, struct err *e)
{
	int first = SQLITE_OK, code = 0;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int rc = open_way(r, &ways[i]);
		if (rc == SQLITE_OK)
			return 0;
		if (first == SQLITE_OK) { /* what the plain way said is what there is to say */
			first = rc;
			code = (rc & 0xff) == SQLITE_NOTADB
				       ? err_set(e, EINVAL, "%s is not a recording", r->path)
				       : db_error(e, r->db, rc, r->path);
		}
		sqlite3_close(r->db);
		r->db = NULL;
		if (!try_on(rc))
			return code;
	}
	return code;
}

/* Is it a recording, and one that this program can read? */
static int check(struct rec_reader *r, struct err *e)
{
	int64_t id = 0, version = 0, virtual = 0;
	int rc = number(r->db, "PRAGMA application_id", &id);
	if (rc == SQLITE_OK)
		rc = number(r->db, "PRAGMA user_version", &version);
	if (rc == SQLITE_OK && id != DB_APPLICATION_ID)
		return err_set(e, EINVAL, "%s is not a recording of spotter", r->path);
	if (rc == SQLITE_OK && (version & 0xffff) > DB_VERSION)
		return err_set(
			e, EPROTONOSUPPORT,
			"%s was made by a newer spotter (format %d, this one reads up to %d)",
			r->path, (int)(version >> 16), DB_VERSION);
	/* Tables that are not tables would run code on what is in the file. */
	if (rc == SQLITE_OK)
		rc = number(r->db,
			    "SELECT count(*) FROM sqlite_schema WHERE type='table' AND rootpage<=0",
			    &virtual);
	if (rc == SQLITE_OK && virtual)
		return err_set(e, EBADMSG, "%s: the file is damaged", r->path);
	return rc == SQLITE_OK ? 0 : db_error(e, r->db, rc, r->path);
}

static int check_file(const char *path, struct err *e)
{
	struct stat s;
	if (stat(path, &s)) {
		int code = errno;
		return err_set(e, code, "%s: %s", path, strerror(code));
	}
	if (S_ISDIR(s.st_mode))
		return err_set(e, EISDIR, "%s is a folder, not a recording", path);
	if (!S_ISREG(s.st_mode))
		return err_set(e, EINVAL, "%s is not a recording", path);
	if (access(path, R_OK))
		return err_set(e, EACCES, "%s: no permission to read it", path);
	return 0;
}

int rec_open(const char *path, struct rec_reader **ret, struct err *e)
{
	int rc = check_file(path, e);
	if (rc)
		return rc;
	struct rec_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	r->version = -1;
	for (size_t i = 0; i < CATALOGUE__COUNT; i++)
		r->cursor[i] = -1;
	tail_state_reset(&r->tail);
	r->path = strdup(path);
	rc = r->path && !codec_init(&r->codec) ? open_any(r, e)
					       : err_set(e, ENOMEM, "out of memory");
	if (!rc)
		rc = check(r, e);
	if (!rc)
		rc = rec_refresh(r, e);
	if (rc < 0) {
		rec_reader_free(r);
		return rc;
	}
	sqlite3_busy_timeout(r->db, BUSY_MS);
	*ret = r;
	return 0;
}

void rec_reader_free(struct rec_reader *r)
{
	if (!r)
		return;
	size_t i = 0;
	struct map_slot *s;
	while ((s = map_next(&r->strings, &i)))
		free((char *)(uintptr_t)s->value);
	map_free(&r->strings);
	catalogue_free(r);
	for (size_t k = 0; k < RD__COUNT; k++)
		sqlite3_finalize(r->st[k]);
	sqlite3_close(r->db);
	tail_state_free(&r->tail);
	ticks_free(&r->tail_log);
	codec_free(&r->codec);
	free(r->vals);
	free(r->times);
	free(r->path);
	free(r);
}

/* ----------------------------------------------------------------------------------- refreshing */

int reader_begin(struct rec_reader *r, struct err *e)
{
	int rc = db_prepare(r->db, "BEGIN", &r->st[RD_BEGIN]);
	if (rc == SQLITE_OK)
		rc = db_prepare(r->db, "COMMIT", &r->st[RD_COMMIT]);
	if (rc == SQLITE_OK)
		rc = db_run(r->st[RD_BEGIN]);
	return rc == SQLITE_OK ? 0 : db_error(e, r->db, rc, r->path);
}

void reader_end(struct rec_reader *r)
{
	if (!sqlite3_get_autocommit(r->db))
		db_run(r->st[RD_COMMIT]);
}

/* A number that changes with each commit of somebody else. */
static int read_version(struct rec_reader *r, int64_t *ret)
{
	sqlite3_stmt **st = &r->st[RD_VERSION];
	int rc = db_prepare(r->db, "PRAGMA data_version", st);
	if (rc != SQLITE_OK)
		return rc;
	if (sqlite3_step(*st) == SQLITE_ROW)
		*ret = sqlite3_column_int64(*st, 0);
	return sqlite3_reset(*st);
}

int rec_refresh(struct rec_reader *r, struct err *e)
{
	int64_t version = -1, facts = 0;
	int rc = read_version(r, &version);
	if (rc != SQLITE_OK)
		return db_error(e, r->db, rc, r->path);
	if (version == r->version)
		return 0;
	int code = reader_begin(r, e);
	if (code)
		return code;
	/* The first read takes the lock: before anything in memory is given up. */
	rc = number(r->db, "SELECT count(*) FROM run", &facts);
	code = rc == SQLITE_OK || rc == SQLITE_CORRUPT ? catalogue_load(r, e)
						       : db_error(e, r->db, rc, r->path);
	reader_end(r);
	if (code)
		return code;
	r->version = version;
	return r->newer;
}

/* ---------------------------------------------------------------------------------- being asked */

uint64_t rec_damaged(const struct rec_reader *r)
{
	return r->damaged;
}

const char *rec_get(const struct rec_reader *r, const char *key)
{
	for (size_t i = 0; i < r->facts.n; i++)
		if (!strcmp(r->facts.at[i].key, key))
			return r->facts.at[i].value;
	return NULL;
}

bool rec_is_live(const struct rec_reader *r)
{
	const char *state = rec_get(r, "state"), *boot = rec_get(r, "boot_id");
	const char *pid = rec_get(r, "recorder_pid"), *start = rec_get(r, "recorder_start");
	struct live l = { 0 };
	if (!state || strcmp(state, "running") || !boot || !pid || !start)
		return false;
	snprintf(l.boot_id, sizeof(l.boot_id), "%s", boot);
	l.pid = atoi(pid);
	l.start = strtoull(start, NULL, 10);
	return l.pid > 0 && live_check(&l);
}

uint64_t rec_t0(const struct rec_reader *r)
{
	uint64_t t = r->batches.n ? r->batches.at[0].t0 : r->tail_times.n ? r->tail_times.at[0] : 0;
	return r->event_t0 && (!t || r->event_t0 < t) ? r->event_t0 : t;
}

uint64_t rec_t1(const struct rec_reader *r)
{
	uint64_t t = r->tail_times.n ? r->tail_times.at[r->tail_times.n - 1]
		     : r->batches.n  ? r->batches.at[r->batches.n - 1].t1
				     : 0;
	return r->event_t1 > t ? r->event_t1 : t;
}

size_t rec_entities(const struct rec_reader *r, const struct rec_entity_info **ret)
{
	*ret = r->entities.at;
	return r->entities.n;
}

size_t rec_serieses(const struct rec_reader *r, const struct rec_series_info **ret)
{
	*ret = r->serieses.at;
	return r->serieses.n;
}

size_t rec_tracks(const struct rec_reader *r, const struct rec_track_info **ret)
{
	*ret = r->tracks.at;
	return r->tracks.n;
}

size_t rec_notices(const struct rec_reader *r, const struct rec_notice_info **ret)
{
	*ret = r->notices.at;
	return r->notices.n;
}

size_t rec_gaps(const struct rec_reader *r, const struct rec_gap_info **ret)
{
	*ret = r->gaps.at;
	return r->gaps.n;
}

size_t rec_facts(const struct rec_reader *r, const struct rec_fact **ret)
{
	*ret = r->facts.at;
	return r->facts.n;
}

size_t rec_kept_findings(const struct rec_reader *r, const struct rec_finding **ret)
{
	*ret = r->findings.at;
	return r->findings.n;
}

const struct rec_entity_info *rec_entity_first(const struct rec_reader *r, enum entity_kind kind)
{
	for (size_t i = 0; i < r->entities.n; i++)
		if (r->entities.at[i].kind == kind)
			return &r->entities.at[i];
	return NULL;
}

const struct rec_entity_info *rec_entity_by_id(const struct rec_reader *r, uint32_t id)
{
	return catalogue_entity(r, id);
}

const struct rec_series_info *rec_series_of(const struct rec_reader *r, uint32_t entity,
					    enum metric_id metric)
{
	uint64_t place;
	return map_get(&r->series_of, (uint64_t)entity << 32 | metric, &place)
		       ? &r->serieses.at[place]
		       : NULL;
}

uint64_t rec_realtime_ns(const struct rec_reader *r, uint64_t mono_ns)
{
	/* The pair before it; the clock may have been set between two. */
	const struct reader_clock *best = r->clocks.n ? &r->clocks.at[0] : NULL;
	for (size_t i = 1; i < r->clocks.n && r->clocks.at[i].mono <= mono_ns; i++)
		best = &r->clocks.at[i];
	return best ? best->real + (mono_ns - best->mono) : 0;
}

const char *rec_string_get(struct rec_reader *r, uint32_t id)
{
	uint64_t known;
	if (map_get(&r->strings, id, &known))
		return (const char *)(uintptr_t)known;
	sqlite3_stmt **st = &r->st[RD_STRING];
	if (db_prepare(r->db, "SELECT text FROM string WHERE id=?1", st) != SQLITE_OK)
		return NULL;
	sqlite3_bind_int64(*st, 1, id);
	char *copy = NULL;
	if (sqlite3_step(*st) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(*st, 0);
		copy = text ? strdup(text) : NULL;
	}
	sqlite3_reset(*st);
	if (copy && map_put(&r->strings, id, (uintptr_t)copy)) {
		free(copy);
		copy = NULL;
	}
	return copy;
}
