/*
 * The recording: one SQLite file that everything spotter learns about a run is written to, once,
 * and that everything anybody sees is read from. doc/recording.md describes it to the byte.
 *
 * Two halves: the writer (one per recording, one thread at a time) and the reader (any number, any
 * process, while the recording grows or years later). This header is all that other layers may
 * know; only src/recording/ includes sqlite3.h or zstd.h.
 *
 * Time is CLOCK_MONOTONIC nanoseconds of the recorded host. Absent is never zero: a sample that was
 * not put at a tick is a gap; an event column that is not known is REC_NONE.
 */
#ifndef SPOTTER_RECORDING_H
#define SPOTTER_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define REC_NONE INT64_MIN /* an event column without a value */

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER };
enum metric_type { METRIC_I64, METRIC_F64 };

enum metric_id {
#define M(symbol, name, unit, kind, type, help) METRIC_##symbol,
#include "recording/metrics.def"
#undef M
	METRIC__COUNT
};

struct metric {
	const char *name; /* "cpu.user": what recordings hold */
	const char *unit; /* "ns" */
	enum metric_kind kind;
	enum metric_type type;
	const char *help; /* one line */
};

extern const struct metric metrics[METRIC__COUNT];
int metric_find(const char *name); /* its metric_id, or -ENOENT */

enum track_kind {
#define T(symbol, name, columns, help) TRACK_##symbol,
#include "recording/tracks.def"
#undef T
	TRACK__COUNT
};

#define TRACK_COLUMNS_MAX 12

struct track_info {
	const char *name;
	const char *columns; /* separated by one blank */
	const char *help;
};

const struct track_info *track_info(enum track_kind kind); /* static, never NULL */
int track_ncolumns(enum track_kind kind);

/* Columns of the tracks, by name, for readers and writers: indices into a row. */
enum { EV_T, EV_DUR };
enum { STEP_INDEX = 2, STEP_PHASE, STEP_EPOCH, STEP_BATCH, STEP_INPUT_WAIT };
enum { EPOCH_INDEX = 2, EPOCH_PHASE };
enum { CHECKPOINT_BYTES = 2 };
enum { GC_GENERATION = 2, GC_COLLECTED };
enum { RANGE_NAME = 2, RANGE_DEPTH };
enum { MARK_NAME = 2, MARK_VALUE };

enum entity_kind {
	ENTITY_HOST,    /* name: host name; key 0 */
	ENTITY_CPU,     /* name: "cpu3"; key: its number */
	ENTITY_DISK,    /* name: "nvme0n1"; key 0 */
	ENTITY_NET,     /* name: "eth0" */
	ENTITY_SENSOR,  /* name: "coretemp Package id 0" */
	ENTITY_ENERGY,  /* name: RAPL domain "package-0" */
	ENTITY_CGROUP,  /* name: its path */
	ENTITY_GPU,     /* name: product name; key: its index */
	ENTITY_JOB,     /* name: the command; key: pid of the command */
	ENTITY_PROCESS, /* name: comm; key: pid */
	ENTITY_THREAD,  /* name: comm; key: tid */
	ENTITY__COUNT
};
const char *entity_kind_name(enum entity_kind kind); /* "host", "cpu", ... */

/* --------------------------------------------------------------------------------------- writer */

struct rec_writer;

enum rec_journal {
	REC_JOURNAL_AUTO, /* WAL where the file system is local, else ROLLBACK (statfs decides) */
	REC_JOURNAL_WAL,  /* readers never wait; needs shared memory with all readers */
	REC_JOURNAL_ROLLBACK, /* safe on NFS, Lustre, FUSE */
};

struct rec_options {
	size_t size; /* sizeof(struct rec_options) */
	enum rec_journal journal;
	uint64_t flush_ns;    /* write the tail at least this often; 0: 500 ms */
	uint32_t batch_ticks; /* ticks per chunk; 0: 600 */
	size_t batch_values; /* close a batch early at this many values held in memory; 0: 512 Ki */
	uint32_t sync_every_s; /* fsync at most this often, in s; 0: 5 */
	bool one_thread;       /* wait for fsync in the caller's thread, not in one of its own */
};

/*
 * Create a recording at path, which must not exist. On failure nothing is left behind and e says
 * why. The writer must be used from one thread at a time.
 */
int rec_create(const char *path, const struct rec_options *options, struct rec_writer **ret,
	       struct err *e);

/*
 * Write what is held, turn the tail into chunks, store the end of the clock, leave one file without
 * -wal or -journal beside it (as long as nobody else has it open), free w. Always frees, even where
 * it returns an error. NULL is fine.
 */
int rec_close(struct rec_writer *w, struct err *e);

/*
 * In a child after fork: forget the recording without touching the file or its locks. (Nothing of
 * SQLite may be used across a fork.) The memory is given up with the process.
 */
void rec_abandon(struct rec_writer *w);

/*
 * Facts about the run as key and text ("command", "exit_code", ...; doc/recording.md lists them).
 * Replaces. Written at the next flush.
 */
int rec_set(struct rec_writer *w, const char *key, const char *value);
int rec_setf(struct rec_writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A new entity; parent 0 for none. Ids begin at 1 and are never reused. name is copied. */
int rec_entity(struct rec_writer *w, enum entity_kind kind, uint32_t parent, const char *name,
	       int64_t key, uint64_t t_start_ns, uint32_t *ret_id);
/* What else is known: JSON object text, replaces (command line of a process, size of a disk). */
int rec_entity_attrs(struct rec_writer *w, uint32_t entity, const char *json);
int rec_entity_rename(struct rec_writer *w, uint32_t entity, const char *name);
int rec_entity_end(struct rec_writer *w, uint32_t entity, uint64_t t_ns);

/*
 * The series of one metric on one entity. source says who measured it ("/proc/stat", "nvml").
 * Asking again for the same pair gives the same id. Ids are dense from 0, for rec_put.
 */
int rec_series(struct rec_writer *w, uint32_t entity, enum metric_id metric, const char *source,
	       uint32_t *ret_series);

/* From now on nothing will be put into this series until further notice (its process ended). */
void rec_series_end(struct rec_writer *w, uint32_t series);

/*
 * One tick: begin, put what was read, end. A series without a put at a tick has a gap there.
 * rec_gap does the same and keeps the reason ("no permission"), stored when it changes. The puts
 * cost some ns, cannot fail, and ignore an id that is out of range; rec_tick_end flushes when it is
 * time, and returns what went wrong (-ENOSPC, -EIO): the caller decides to go on or to stop. After
 * an error the recording stays readable up to the last flush, and a later flush may succeed.
 */
void rec_tick_begin(struct rec_writer *w, uint64_t t_ns);
void rec_put_i64(struct rec_writer *w, uint32_t series, int64_t value);
void rec_put_f64(struct rec_writer *w, uint32_t series, double value); /* NaN is a gap */
void rec_gap(struct rec_writer *w, uint32_t series, const char *reason);
int rec_tick_end(struct rec_writer *w, struct err *e);

/* The id of a string, from 1; the same string gives the same id. */
int rec_string(struct rec_writer *w, const char *s, size_t len, uint32_t *ret_id);

/* The track of one kind on one entity; asking again gives the same id. */
int rec_track(struct rec_writer *w, uint32_t entity, enum track_kind kind, uint32_t *ret_track);
/*
 * Append n rows of track_ncolumns(kind) values each, in one block, row after row. Held in memory
 * until the next flush or until some thousands are together. 0 or -ENOMEM.
 */
int rec_events(struct rec_writer *w, uint32_t track, const int64_t *rows, size_t n);

/*
 * Rare facts: kind is a short identifier ("process", "lost", "hook", "gap", "out-of-memory"),
 * text a sentence for people, attrs JSON object text or NULL. entity 0: the run as a whole.
 */
int rec_notice(struct rec_writer *w, uint64_t t_ns, uint32_t entity, const char *kind,
	       const char *text, const char *attrs);

/* Findings as analyses made them; evidence is JSON array text. Replaces all of them at once. */
struct rec_finding {
	const char *id, *severity, *text, *evidence, *advice;
};
int rec_findings(struct rec_writer *w, const struct rec_finding *findings, size_t n);

/* Write everything held now. */
int rec_flush(struct rec_writer *w, struct err *e);

struct rec_writer_stats {
	uint64_t ticks, samples, gaps, events, flushes;
	uint64_t bytes;                                 /* of the file and its -wal now */
	uint64_t lost_ticks, lost_samples, lost_events; /* that could not be written */
};
void rec_writer_stats(const struct rec_writer *w, struct rec_writer_stats *ret);

/* --------------------------------------------------------------------------------------- reader */

struct rec_reader;

/*
 * Open a recording for reading, also while it grows or after its recorder was killed. Never changes
 * the recording. Errors with words: not there (-ENOENT), not a recording (-EINVAL), made by a newer
 * version (-EPROTONOSUPPORT), damaged (-EBADMSG).
 */
int rec_open(const char *path, struct rec_reader **ret, struct err *e);
void rec_reader_free(struct rec_reader *r);

/* Look for what was added since; 1 if there is something new, 0 if not, or -errno. */
int rec_refresh(struct rec_reader *r, struct err *e);

/* Damage met so far while reading (chunks that did not decode): counted, skipped, shown. */
uint64_t rec_damaged(const struct rec_reader *r);

/* Is the recorder still writing? Said by the recording and checked against the live process. */
bool rec_is_live(const struct rec_reader *r);

/* Owned by r until rec_refresh; NULL if not set. */
const char *rec_get(const struct rec_reader *r, const char *key);

/* All facts of the run, in the order of their keys; owned by r until rec_refresh. */
struct rec_fact {
	const char *key, *value;
};
size_t rec_facts(const struct rec_reader *r, const struct rec_fact **ret);

uint64_t rec_t0(const struct rec_reader *r); /* first tick or event, 0 if none */
uint64_t rec_t1(const struct rec_reader *r); /* last tick seen or end of the last event */

struct rec_entity_info {
	uint32_t id, parent;
	enum entity_kind kind; /* ENTITY__COUNT: this program does not know it */
	const char *name;      /* owned by r until rec_refresh */
	int64_t key;
	uint64_t t0_ns, t1_ns; /* t1 0: still there */
	const char *attrs;     /* JSON or NULL */
};
struct rec_series_info {
	uint32_t id; /* as in the file */
	uint32_t entity;
	int metric; /* metric_id, or -1: this program does not know it, see name */
	const char *name, *unit;
	enum metric_kind kind;
	enum metric_type type;
	const char *source;
};
struct rec_track_info {
	uint32_t id, entity;
	int kind; /* track_kind, or -1 */
	const char *name;
	int ncolumns;        /* of the rows that rec_read_events gives */
	const char *columns; /* their names, separated by one blank; owned by r */
};

/* Arrays owned by r, valid until the next rec_refresh; returns the count. */
size_t rec_entities(const struct rec_reader *r, const struct rec_entity_info **ret);
size_t rec_serieses(const struct rec_reader *r, const struct rec_series_info **ret);
size_t rec_tracks(const struct rec_reader *r, const struct rec_track_info **ret);

/* First entity of a kind (NULL if none) and the series of a metric on it (NULL if none). */
const struct rec_entity_info *rec_entity_first(const struct rec_reader *r, enum entity_kind kind);
const struct rec_entity_info *rec_entity_by_id(const struct rec_reader *r, uint32_t id);
const struct rec_series_info *rec_series_of(const struct rec_reader *r, uint32_t entity,
					    enum metric_id metric);

/*
 * All samples of a series with t0 <= t < t1 in time order, gaps left out (a gap shows as a distance
 * in t). F64 series give v as it is; I64 series both. Caller frees with rec_points_free.
 */
struct rec_points {
	size_t n;
	uint64_t *t_ns;
	int64_t *i; /* I64 series only, else NULL */
	double *v;
};
int rec_read(struct rec_reader *r, uint32_t series, uint64_t t0, uint64_t t1,
	     struct rec_points *ret, struct err *e);
void rec_points_free(struct rec_points *p);

/*
 * A chart: n equal buckets of [t0, t1) from chunk summaries where a chunk lies inside one bucket,
 * and from samples elsewhere. For gauges min, max and mean of the values; for counters of the rate
 * per second. count is the number of samples (0: nothing there, the rest is NaN).
 */
struct rec_bucket {
	uint64_t count;
	double min, max, mean;
};
int rec_chart(struct rec_reader *r, uint32_t series, uint64_t t0, uint64_t t1, size_t n,
	      struct rec_bucket *ret, struct err *e);

/*
 * All rows of a track that begin in [t0, t1), in time order: n rows of ncolumns values in one
 * malloc'ed block (free it with free()).
 */
int rec_read_events(struct rec_reader *r, uint32_t track, uint64_t t0, uint64_t t1,
		    int64_t **ret_rows, size_t *ret_n, struct err *e);

const char *rec_string_get(struct rec_reader *r, uint32_t id); /* owned by r; NULL if unknown */

struct rec_notice_info {
	uint64_t t_ns;
	uint32_t entity;
	const char *kind, *text, *attrs; /* owned by r until rec_refresh */
};
size_t rec_notices(const struct rec_reader *r, const struct rec_notice_info **ret);

/* Gaps with a reason: [t0, t1) of a series; t1 0: until the end. */
struct rec_gap_info {
	uint32_t series;
	uint64_t t0_ns, t1_ns;
	const char *reason;
};
size_t rec_gaps(const struct rec_reader *r, const struct rec_gap_info **ret);

/* The findings kept in the recording (see rec_findings); owned by r until rec_refresh. */
size_t rec_kept_findings(const struct rec_reader *r, const struct rec_finding **ret);

/*
 * What a series or a track holds and takes in the file, from summaries and the tail. 0 or -errno
 * with words.
 */
struct rec_size {
	uint64_t n;     /* samples or events */
	uint64_t bytes; /* of its chunks; what is in the tail is not counted */
};
int rec_series_size(struct rec_reader *r, uint32_t series, struct rec_size *ret, struct err *e);
int rec_track_size(struct rec_reader *r, uint32_t track, struct rec_size *ret, struct err *e);

/* (monotonic, realtime) pairs kept through the run; the real time of a monotonic stamp. */
uint64_t rec_realtime_ns(const struct rec_reader *r, uint64_t mono_ns);

#endif
