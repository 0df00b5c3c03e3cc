/*
 * The inside of the writer, shared by its parts: writer.c (life, ticks, flushes), writer_ops.c (the
 * rows of the catalogue), writer_batch.c (columns), writer_events.c, writer_gaps.c, writer_sync.c
 * (the disk). Private to src/recording/.
 *
 * Nothing reaches the file but in a flush, and a flush is one transaction: what is new waits in
 * memory in `ops` (rows of the catalogue), `log` (ticks) and `track` (events) until it is
 * committed. Inside a flush errors are SQLite's result codes; SQLITE_NOMEM stands for any lack of
 * memory.
 */
#ifndef SPOTTER_RECORDING_WRITER_H
#define SPOTTER_RECORDING_WRITER_H

#include <pthread.h>

#include "base/buf.h"
#include "base/map.h"
#include "recording/codec.h"
#include "recording/db.h"
#include "recording/ticks.h"

/* Rows that wait for the next flush, by the statement that writes them. */
enum op {
	OP_RUN,
	OP_ENTITY,
	OP_ENTITY_ATTRS,
	OP_ENTITY_NAME,
	OP_ENTITY_END,
	OP_METRIC,
	OP_SERIES,
	OP_SERIES_LAST,
	OP_TRACK,
	OP_STRING,
	OP_NOTICE,
	OP_GAP,
	OP_GAP_END,
	OP_CLOCK,
	OP_FINDINGS_CLEAR,
	OP_FINDING,
	OP_CHANGE,
	OP__COUNT
};

struct writer_series {
	uint32_t gap; /* its place in gaps, from 1; 0: no reason is known for a gap */
	uint8_t kind, type;
	uint32_t ended; /* the batch in which rec_series_end was called, 0: it goes on */
};

struct writer_gap { /* a gap with a reason that still goes on */
	uint32_t series;
	uint32_t reason; /* in reasons */
	uint64_t tick;   /* the last tick that said so */
	int64_t id;
};

struct writer_track {
	uint32_t ncolumns;
	/* Those since the last full chunk, also when they are in small chunks already. */
	int64_t *rows;
	size_t n, cap, written;
	int64_t chunk0, chunk1; /* the small chunks of these rows in the file, 0 if none */
	uint32_t chunks;
	struct { /* what holds once the transaction is committed */
		size_t written;
		int64_t chunk0, chunk1;
		uint32_t chunks;
		bool full;
	} next;
};

/* The thread that waits for the disk. Under lock: asked, busy, spare_until_ns. */
struct writer_sync {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool running;
	unsigned asked; /* what to do next */
	bool busy;
	uint64_t spare_until_ns; /* the disk is slow: not before */
	uint64_t next_ns;        /* when the log is synced again */
	int copied_at;           /* pages of the log when it was last copied into the file */
	sqlite3 *db;             /* the thread's own */
	int fd;                  /* of the log */
};

/* Statements that are not ops. */
enum { ST_BEGIN, ST_COMMIT, ST_TAIL, ST_BATCH, ST_CHUNK, ST_EVENT, ST_EVENT_DEL, ST__COUNT };

struct rec_writer {
	sqlite3 *db;
	char *path;
	struct rec_options opt; /* with all defaults filled in */
	bool wal, abandoned;
	struct codec codec;
	sqlite3_stmt *op_st[OP__COUNT];
	sqlite3_stmt *st[ST__COUNT];

	struct buf ops;
	uint32_t entities, strings;
	int64_t notices, gap_ids, changes;
	struct map series_of; /* entity << 32 | metric: id */
	struct map track_of;  /* entity << 32 | kind: id */
	struct map string_of; /* hash: other hash << 32 | id */
	uint8_t metric_known[METRIC__COUNT];

	struct writer_series *series;
	uint32_t nseries, series_cap;
	struct writer_gap *gaps;
	size_t ngaps, gaps_cap;
	char **reasons;
	size_t nreasons;

	struct ticks log;
	size_t in_tail; /* ticks of log that are in the tail on disk */
	bool in_tick;
	uint64_t tick_ns; /* of the tick that is open, or was last */
	uint64_t tick_no;
	uint64_t tick_lost; /* values of the open tick there was no memory for */
	uint64_t flushed_ns, retry_ns, clock_ns;
	struct tail_state tail;
	int64_t tail_id, batch_id, event_id; /* the next ones */
	struct buf scratch;

	struct writer_track *track;
	uint32_t ntracks, tracks_cap;
	size_t event_values; /* held and not written */

	int wal_pages; /* of the log at the last commit */
	struct writer_sync sync;
	uint64_t spare_until_ns; /* the file system is slow: no flush before */
	struct rec_writer_stats stats;
};

/* writer_ops.c. op_add takes what the op's row needs (see the table); 0 or -ENOMEM, -ENOBUFS. */
int op_add(struct rec_writer *w, enum op op, ...);
int ops_write(struct rec_writer *w);
/* A row of the table `what` that readers may have seen already is changed. */
int op_add_change(struct rec_writer *w, const char *what, int64_t row);
void ops_clear(struct rec_writer *w);
int op_add_clock(struct rec_writer *w);

/* writer_batch.c: the ticks held become one batch row and a chunk per series. */
int batch_write(struct rec_writer *w);

/* writer_events.c */
int events_write(struct rec_writer *w, bool final);
void events_committed(struct rec_writer *w);
void events_free(struct rec_writer *w);

/* writer_sync.c: after a commit, have the log synced where it is time; the end of that. */
void sync_wal(struct rec_writer *w);
void sync_stop(struct rec_writer *w);

/* writer_gaps.c: at the end of each tick, close the gaps that were not confirmed. */
void gaps_tick(struct rec_writer *w);
void gaps_end_series(struct rec_writer *w, uint32_t series);
void gaps_free(struct rec_writer *w);

#endif
