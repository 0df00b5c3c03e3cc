/*
 * The writer: its life, the path of ticks, and flushes; see writer.h for how the parts fit. It must
 * never hold up the recorder: it waits only some milliseconds for a lock, and where the disk is
 * slow or full it keeps what it has, within bounds, and tries again.
 */
#include "recording/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/live.h"

#define FLUSH_NS         (500 * NS_PER_MS)
#define BATCH_TICKS      600
#define BATCH_TICKS_MAX  (CODEC_MAX / 2)
#define BATCH_VALUES     (512u << 10)
#define BATCH_VALUES_MAX (4u << 20)
#define SYNC_S           5
#define RETRY_NS         NS_PER_S
#define CLOCK_NS         (60 * NS_PER_S)
#define SPARE            20 /* a slow disk may hold the recorder up for 1/20 of the time */
#define BUSY_MS          20
#define CREATE_BUSY_MS   2000
#define CLOSE_BUSY_MS    500

enum flush { FLUSH_TAIL, FLUSH_BATCH, FLUSH_FINAL };

/* ------------------------------------------------------------------------------------- flushing */

/*
 * Rows of the tail are written over those of the batch before: a flush that changes one page of the
 * file instead of taking one from the free list and giving it back later. Which batch a row belongs
 * to stands in it.
 */
static int write_tail(struct rec_writer *w)
{
	buf_clear(&w->scratch);
	int rc = db_prepare(w->db, "INSERT OR REPLACE INTO tail VALUES(?1,?2,?3)", &w->st[ST_TAIL]);
	if (rc != SQLITE_OK)
		return rc;
	if (tail_encode(&w->tail, &w->codec, &w->log, w->in_tail, &w->scratch))
		return SQLITE_NOMEM;
	sqlite3_bind_int64(w->st[ST_TAIL], 1, w->tail_id);
	sqlite3_bind_int64(w->st[ST_TAIL], 2, w->batch_id);
	sqlite3_bind_blob(w->st[ST_TAIL], 3, w->scratch.data, (int)w->scratch.len, SQLITE_STATIC);
	return db_run(w->st[ST_TAIL]);
}

static int begin(struct rec_writer *w)
{
	int rc = db_prepare(w->db, "BEGIN IMMEDIATE", &w->st[ST_BEGIN]);
	if (rc == SQLITE_OK)
		rc = db_prepare(w->db, "COMMIT", &w->st[ST_COMMIT]);
	return rc == SQLITE_OK ? db_run(w->st[ST_BEGIN]) : rc;
}

/*
 * Everything of one flush, as one transaction. Rows of the catalogue come last: batches may add
 * some.
 */
static int write_all(struct rec_writer *w, bool batch, bool final)
{
	int rc = begin(w);
	if (rc == SQLITE_OK && w->log.n)
		rc = batch ? batch_write(w) : w->in_tail < w->log.n ? write_tail(w) : SQLITE_OK;
	if (rc == SQLITE_OK && final)
		rc = db_exec(w->db, "DELETE FROM tail");
	if (rc == SQLITE_OK)
		rc = events_write(w, final);
	if (rc == SQLITE_OK)
		rc = ops_write(w);
	if (rc == SQLITE_OK)
		rc = db_run(w->st[ST_COMMIT]);
	return rc;
}

static void committed(struct rec_writer *w, bool batch)
{
	ops_clear(w);
	events_committed(w);
	w->stats.flushes++;
	w->flushed_ns = w->tick_ns;
	w->retry_ns = 0;
	if (batch) {
		w->batch_id += w->log.n > 0;
		w->in_tail = 0;
		w->tail_id = 1;
		ticks_clear(&w->log);
		tail_state_reset(&w->tail);
	} else if (w->in_tail < w->log.n) {
		w->tail_id++;
		w->in_tail = w->log.n;
	}
}

/*
 * Without a WAL each commit waits for the disk: a slow one gets them less often, but not too
 * seldom.
 */
static void spare_disk(struct rec_writer *w, uint64_t start)
{
	uint64_t end = clock_mono_ns(), most = w->opt.sync_every_s * NS_PER_S;
	if (!w->wal)
		w->spare_until_ns =
			end + ((end - start) * SPARE < most ? (end - start) * SPARE : most);
}

static int flush(struct rec_writer *w, enum flush how, struct err *e)
{
	bool batch = how != FLUSH_TAIL;
	if (w->abandoned || (!batch && !w->ops.len && w->in_tail == w->log.n && !w->event_values))
		return 0;
	uint64_t start = clock_mono_ns();
	int rc = write_all(w, batch, how == FLUSH_FINAL);
	if (rc != SQLITE_OK) {
		int code = db_error(e, w->db, rc, w->path);
		if (!sqlite3_get_autocommit(w->db))
			db_exec(w->db, "ROLLBACK");
		tail_state_reset(&w->tail);
		w->retry_ns = w->tick_ns + RETRY_NS;
		return code;
	}
	committed(w, batch);
	spare_disk(w, start);
	if (how != FLUSH_FINAL)
		sync_wal(w);
	return 0;
}

static bool is_full(const struct rec_writer *w)
{
	return w->log.n >= w->opt.batch_ticks || w->log.nvals >= w->opt.batch_values;
}

/*
 * What is held decides whether a flush closes the batch. Few flushes per batch are not worth a
 * tail.
 */
static enum flush kind_of_flush(const struct rec_writer *w)
{
	bool half = (w->log.n - w->in_tail) * 2 >= w->opt.batch_ticks;
	return is_full(w) || half ? FLUSH_BATCH : FLUSH_TAIL;
}

int rec_flush(struct rec_writer *w, struct err *e)
{
	/*
	 * The values of a tick that is open lie behind those of the log and would be cleared with
	 * them.
	 */
	return flush(w, w->in_tick ? FLUSH_TAIL : kind_of_flush(w), e);
}

/* ---------------------------------------------------------------------------------------- ticks */

void rec_tick_begin(struct rec_writer *w, uint64_t t_ns)
{
	w->in_tick = true;
	w->tick_lost = 0;
	w->tick_no++;
	/* Time only goes forward, whatever the caller's clock does. */
	w->tick_ns = t_ns > w->tick_ns ? t_ns : w->tick_ns + 1;
	if (ticks_begin(&w->log))
		w->in_tick = false;
}

void rec_put_i64(struct rec_writer *w, uint32_t series, int64_t value)
{
	if (series < w->nseries && w->in_tick && ticks_add(&w->log, series, value))
		w->tick_lost++;
}

void rec_put_f64(struct rec_writer *w, uint32_t series, double value)
{
	int64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	if (value == value) /* not NaN */
		rec_put_i64(w, series, bits);
}

/* Nothing can be written and memory has its bounds. */
static bool is_over(const struct rec_writer *w)
{
	return w->log.n >= 2 * w->opt.batch_ticks || w->log.nvals >= 2 * w->opt.batch_values;
}

static bool is_due(const struct rec_writer *w, uint64_t interval)
{
	if (w->retry_ns)
		return w->tick_ns >= w->retry_ns;
	if (is_full(w))
		return true;
	/* The tick that comes nearest to the flush time: a jitter must not turn 500 ms into 1 s. */
	return w->tick_ns + interval / 2 >= w->flushed_ns + w->opt.flush_ns &&
	       clock_mono_ns() >= w->spare_until_ns;
}

static uint64_t last_tick(const struct ticks *l)
{
	return l->n ? l->tick[l->n - 1].t_ns : 0;
}

int rec_tick_end(struct rec_writer *w, struct err *e)
{
	if (!w->in_tick) {
		w->stats.lost_ticks++;
		return err_set(e, ENOMEM, "%s: out of memory, a tick is lost", w->path);
	}
	w->in_tick = false;
	w->stats.lost_samples += w->tick_lost;
	bool lost = w->tick_lost > 0;
	uint64_t before = last_tick(&w->log);
	if (is_over(w)) {
		ticks_drop(&w->log);
		w->stats.lost_ticks++;
	} else {
		ticks_end(&w->log, w->tick_ns);
		w->stats.ticks++;
		w->stats.samples += w->log.tick[w->log.n - 1].n;
	}
	gaps_tick(w);
	if (w->tick_ns >= w->clock_ns + CLOCK_NS && !op_add_clock(w))
		w->clock_ns = w->tick_ns;
	int rc = lost ? err_set(e, ENOMEM, "%s: out of memory, values of a tick are lost", w->path)
		      : 0;
	if (!is_due(w, before ? w->tick_ns - before : 0))
		return rc;
	int flushed = flush(w, kind_of_flush(w), e);
	return flushed == -EBUSY && !is_over(w) ? rc : flushed ? flushed : rc;
}

void rec_writer_stats(const struct rec_writer *w, struct rec_writer_stats *ret)
{
	struct stat s;
	char wal[PATH_MAX + 16];
	snprintf(wal, sizeof(wal), "%s-wal", w->path);
	*ret = w->stats;
	ret->bytes = stat(w->path, &s) ? 0 : (uint64_t)s.st_size;
	ret->bytes += stat(wal, &s) ? 0 : (uint64_t)s.st_size;
}

/* ------------------------------------------------------------------------------- life and death */

static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	((struct rec_writer *)arg)->wal_pages = pages;
	return SQLITE_OK;
}

/* Journal mode in words, as the file now has it. */
static bool set_journal(sqlite3 *db, const char *sql, const char *expect)
{
	sqlite3_stmt *st = NULL;
	bool ok = sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
		  sqlite3_step(st) == SQLITE_ROW &&
		  !sqlite3_stricmp((const char *)sqlite3_column_text(st, 0), expect);
	sqlite3_finalize(st);
	return ok;
}

static void choose_journal(struct rec_writer *w)
{
	enum rec_journal want = w->opt.journal;
	if (want == REC_JOURNAL_AUTO)
		want = db_journal_for(w->path);
	w->wal = want == REC_JOURNAL_WAL && set_journal(w->db, "PRAGMA journal_mode=WAL", "wal");
	if (!w->wal)
		set_journal(w->db, "PRAGMA journal_mode=TRUNCATE", "truncate");
	else
		sqlite3_wal_hook(w->db, on_commit, w);
}

static int make_tables(struct rec_writer *w)
{
	char sql[512];
	snprintf(
		sql, sizeof(sql),
		"PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=MEMORY;"
		"PRAGMA synchronous=NORMAL; PRAGMA cache_size=-512; PRAGMA wal_autocheckpoint=0;"
		"BEGIN; PRAGMA application_id=%d; PRAGMA user_version=%d;",
		DB_APPLICATION_ID, DB_USER_VERSION);
	int rc = db_exec(w->db, sql);
	if (rc == SQLITE_OK)
		rc = db_exec(w->db, db_schema);
	if (rc == SQLITE_OK)
		rc = db_exec(w->db, "COMMIT");
	return rc;
}

static int first_facts(struct rec_writer *w)
{
	struct live me;
	int rc = rec_set(w, "state", "running");
	if (!live_self(&me)) {
		rc = rc ? rc : rec_set(w, "boot_id", me.boot_id);
		rc = rc ? rc : rec_setf(w, "recorder_pid", "%d", me.pid);
		rc = rc ? rc : rec_setf(w, "recorder_start", "%llu", (unsigned long long)me.start);
	}
	rc = rc ? rc : rec_set(w, "journal", w->wal ? "wal" : "rollback");
	rc = rc ? rc : op_add_clock(w);
	w->clock_ns = clock_mono_ns();
	return rc;
}

/* Make the file ourselves, so that nobody's file is ever opened or overwritten. */
static int make_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST)
		return err_set(e, EEXIST,
			       "%s exists already: remove it, or choose another name with -o",
			       path);
	if (fd < 0) {
		int code = errno;
		return err_set(e, code, "cannot write a recording to %s: %s", path, strerror(code));
	}
	close(fd);
	return 0;
}

/* No memory is asked for: perhaps there is none. */
static void remove_files(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char file[PATH_MAX + 16];
		snprintf(file, sizeof(file), "%s%s", path, suffixes[i]);
		unlink(file);
	}
}

static void free_writer(struct rec_writer *w)
{
	sync_stop(w);
	for (size_t i = 0; i < OP__COUNT; i++)
		sqlite3_finalize(w->op_st[i]);
	for (size_t i = 0; i < ST__COUNT; i++)
		sqlite3_finalize(w->st[i]);
	sqlite3_close(w->db);
	events_free(w);
	gaps_free(w);
	buf_free(&w->ops);
	buf_free(&w->scratch);
	map_free(&w->series_of);
	map_free(&w->track_of);
	map_free(&w->string_of);
	ticks_free(&w->log);
	tail_state_free(&w->tail);
	codec_free(&w->codec);
	free(w->series);
	free(w->path);
	free(w);
}

static void fill_options(struct rec_options *o, const struct rec_options *from)
{
	if (from)
		memcpy(o, from, from->size < sizeof(*o) ? from->size : sizeof(*o));
	o->flush_ns = o->flush_ns ? o->flush_ns : FLUSH_NS;
	o->batch_ticks = o->batch_ticks ? o->batch_ticks : BATCH_TICKS;
	o->batch_values = o->batch_values ? o->batch_values : BATCH_VALUES;
	o->sync_every_s = o->sync_every_s ? o->sync_every_s : SYNC_S;
	if (o->batch_ticks > BATCH_TICKS_MAX)
		o->batch_ticks = BATCH_TICKS_MAX;
	if (o->batch_values > BATCH_VALUES_MAX)
		o->batch_values = BATCH_VALUES_MAX;
}

static struct rec_writer *new_writer(const char *path, const struct rec_options *options)
{
	struct rec_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	buf_init(&w->ops);
	buf_init(&w->scratch);
	fill_options(&w->opt, options);
	tail_state_reset(&w->tail);
	w->tail_id = w->batch_id = w->event_id = 1;
	w->sync.next_ns = clock_mono_ns() + w->opt.sync_every_s * NS_PER_S;
	w->path = strdup(path);
	if (w->path && !codec_init(&w->codec))
		return w;
	free_writer(w);
	return NULL;
}

static int open_database(struct rec_writer *w, struct err *e)
{
	int rc =
		sqlite3_open_v2(w->path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_extended_result_codes(w->db, 1);
		/* Somebody who waits for the recording may look at the file just now. */
		sqlite3_busy_timeout(w->db, CREATE_BUSY_MS);
		rc = make_tables(w);
	}
	if (rc != SQLITE_OK)
		return db_error(e, w->db, rc, w->path);
	choose_journal(w);
	sqlite3_busy_timeout(w->db, BUSY_MS);
	rc = first_facts(w);
	return rc ? err_set(e, -rc, "%s: out of memory", w->path) : flush(w, FLUSH_TAIL, e);
}

int rec_create(const char *path, const struct rec_options *options, struct rec_writer **ret,
	       struct err *e)
{
	int rc = make_file(path, e);
	if (rc)
		return rc;
	struct rec_writer *w = new_writer(path, options);
	if (!w) {
		remove_files(path);
		return err_set(e, ENOMEM, "%s: out of memory", path);
	}
	rc = open_database(w, e);
	if (rc) {
		free_writer(w);
		remove_files(path);
		return rc;
	}
	*ret = w;
	return 0;
}

static int last_facts(struct rec_writer *w)
{
	const struct {
		const char *key;
		uint64_t value;
	} facts[] = {
		{ "recording.ticks", w->stats.ticks },
		{ "recording.samples", w->stats.samples },
		{ "recording.lost_ticks", w->stats.lost_ticks },
		{ "recording.lost_samples", w->stats.lost_samples },
		{ "recording.lost_events", w->stats.lost_events },
	};
	int rc = rec_set(w, "state", "finished");
	for (size_t i = 0; !rc && i < sizeof(facts) / sizeof(*facts); i++)
		rc = rec_setf(w, facts[i].key, "%llu", (unsigned long long)facts[i].value);
	return rc ? rc : op_add_clock(w);
}

int rec_close(struct rec_writer *w, struct err *e)
{
	if (!w || w->abandoned)
		return 0;
	w->in_tick = false;
	ticks_drop(&w->log);
	sync_stop(w);
	sqlite3_busy_timeout(w->db, CLOSE_BUSY_MS);
	int rc = last_facts(w);
	if (rc)
		err_set(e, -rc, "%s: out of memory", w->path);
	int flushed = flush(w, FLUSH_FINAL, e);
	if (flushed) { /* perhaps there is room for the little that is not in the tail yet */
		rc = rc ? rc : flushed;
		flush(w, FLUSH_TAIL, NULL);
	} else {
		db_exec(w->db, "PRAGMA incremental_vacuum");
		if (w->wal)
			sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
						  NULL);
	}
	/*
	 * One file. Not possible while somebody has it open: then SQLite's own files stay until
	 * they leave.
	 */
	set_journal(w->db, "PRAGMA journal_mode=DELETE", "delete");
	free_writer(w);
	return rc;
}

void rec_abandon(struct rec_writer *w)
{
	/* SQLite forbids even closing here. The memory goes with the process. */
	if (w)
		w->abandoned = true;
}
