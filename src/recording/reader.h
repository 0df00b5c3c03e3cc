/*
 * The inside of the reader, shared by its parts: reader.c (open, refresh), reader_catalogue.c
 * (entities, series, facts: what is small and kept in memory), reader_changes.c, reader_tail.c,
 * reader_chunks.c (columns from the file), reader_points.c and reader_chart.c (what callers get),
 * reader_events.c. Private to src/recording/.
 *
 * The reader stands at the last rec_refresh: the list of batches and the decoded tail are of one
 * moment, and chunks never change once written, so reads between two refreshes agree with each
 * other and need no transaction. Only events and strings are looked up in the file as it is.
 */
#ifndef SPOTTER_RECORDING_READER_H
#define SPOTTER_RECORDING_READER_H

#include "base/map.h"
#include "recording/codec.h"
#include "recording/db.h"
#include "recording/live.h"
#include "recording/ticks.h"

struct reader_batch {
	int64_t id;
	uint64_t t0, t1;
	uint32_t n;
	uint64_t *times; /* decoded when first needed, NULL before */
	bool bad;        /* they did not decode */
};

struct reader_tail { /* the samples of one series that are in no chunk yet */
	uint32_t n, cap;
	uint32_t *tick; /* in tail_times */
	int64_t *v;
};

struct reader_series {
	int64_t batch0, batch1; /* where it has chunks; batch1 0: not known to have ended */
	struct reader_tail tail;
};

struct reader_track {
	int ncolumns;  /* in the file */
	int8_t to[64]; /* by column of the file: its place in a row that callers get; -1: none */
};

struct reader_clock {
	uint64_t mono, real;
};

/* An array that grows: items, how many there are, and room for how many. */
#define READER_ARRAY(type)     \
	struct {               \
		type *at;      \
		size_t n, cap; \
	}

/* Room for one more item of size bytes; the arrays may move. 0 or -ENOMEM. */
int reader_grow(void *array, size_t size);
#define READER_GROW(array) reader_grow(&(array), sizeof(*(array).at))

/* Statements that stay prepared. */
enum {
	RD_BEGIN,
	RD_COMMIT,
	RD_VERSION,
	RD_CHUNK,
	RD_TIMES,
	RD_STRING,
	RD_EVENTS,
	RD_SIZE,
	RD_TRACK_SIZE,
	RD__COUNT
};

/* Tables that are read row by row as they grow. */
enum catalogue {
	CATALOGUE_METRIC,
	CATALOGUE_ENTITY,
	CATALOGUE_SERIES,
	CATALOGUE_TRACK,
	CATALOGUE_NOTICE,
	CATALOGUE_GAP,
	CATALOGUE_CLOCK,
	CATALOGUE_EVENT,
	CATALOGUE_CHANGE,
	CATALOGUE_BATCH,
	CATALOGUE_TAIL,
	CATALOGUE__COUNT
};

struct rec_reader {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *st[RD__COUNT], *change_st[3];
	struct codec codec;
	int64_t version; /* of the data at the last refresh; -1: never */
	uint64_t damaged;

	READER_ARRAY(struct rec_fact) facts;
	READER_ARRAY(struct rec_entity_info) entities;
	READER_ARRAY(struct rec_series_info) serieses;
	READER_ARRAY(struct reader_series) series; /* beside serieses */
	READER_ARRAY(struct rec_track_info) tracks;
	READER_ARRAY(struct reader_track) track; /* beside tracks */
	READER_ARRAY(struct rec_notice_info) notices;
	READER_ARRAY(struct rec_gap_info) gaps;
	READER_ARRAY(int64_t) gap_ids;
	READER_ARRAY(struct rec_finding) findings;
	READER_ARRAY(struct reader_clock) clocks;
	READER_ARRAY(struct reader_batch) batches;
	struct map metrics;                               /* id in the file: place in metric_info */
	READER_ARRAY(struct rec_series_info) metric_info; /* name, unit, kind, type */
	struct map series_of; /* entity << 32 | metric: place in serieses */
	struct map strings;   /* id: char * */

	int64_t cursor[CATALOGUE__COUNT]; /* the last row seen of each table */
	uint64_t event_t0, event_t1;
	bool newer; /* something came with this refresh */

	struct tail_state tail;
	struct ticks tail_log; /* working memory */
	READER_ARRAY(uint64_t) tail_times;
	size_t times_held; /* in all batches */

	int64_t *vals; /* working memory of one chunk */
	uint64_t *times;
	size_t chunk_cap;
};

/* reader_catalogue.c: bring the tables in memory up to date, inside a transaction. 0 or -errno. */
int catalogue_load(struct rec_reader *r, struct err *e);
void catalogue_free(struct rec_reader *r);
/* Place of a series in serieses, or -ENOENT. */
int64_t catalogue_series(const struct rec_reader *r, uint32_t id);

struct rec_entity_info *catalogue_entity(const struct rec_reader *r, uint32_t id); /* or NULL */
int catalogue_read_entity(sqlite3_stmt *st, struct rec_entity_info *ret);
void catalogue_free_entity(struct rec_entity_info *e);

/*
 * One row of a table into memory; column 0 is the rowid. 0 or -ENOMEM: damage is counted, not an
 * error.
 */
typedef int reader_row_fn(struct rec_reader *r, sqlite3_stmt *st);
reader_row_fn reader_batch_row, reader_tail_row; /* reader_tail.c */
reader_row_fn reader_change_row;                 /* reader_changes.c */

static inline int reader_damaged(struct rec_reader *r)
{
	r->damaged++;
	return 0;
}

/* One chunk's summary, as it stands in the file. */
struct chunk_summary {
	uint32_t n;
	uint64_t t0, t1;
	double min, max, sum; /* min and max of one sample of a counter: NaN */
	int64_t first, last;  /* as bits */
};

/* Times and values of one chunk: valid until the next call. */
struct chunk_values {
	size_t n;
	const uint64_t *t;
	const int64_t *v;
};

/*
 * reader_chunks.c. chunk_open positions on the chunk of a series (by its place) in a batch (by its
 * place): 1 it is there, 0 it is not or is damaged (then counted), or -errno. Until chunk_done its
 * summary and values can be had; chunk_values gives -EBADMSG (counted) where they are damaged.
 */
int chunk_open(struct rec_reader *r, size_t batch, size_t series, struct chunk_summary *ret);
int chunk_values(struct rec_reader *r, size_t batch, size_t series, const struct chunk_summary *s,
		 struct chunk_values *ret);
void chunk_done(struct rec_reader *r);
/* The batches [*from, *to) that may hold samples of a series in [t0, t1). */
void chunk_range(const struct rec_reader *r, size_t series, uint64_t t0, uint64_t t1, size_t *from,
		 size_t *to);

/* A read of several statements sees one moment and locks once. */
int reader_begin(struct rec_reader *r, struct err *e);
void reader_end(struct rec_reader *r);

static inline double reader_number(int64_t bits, enum metric_type type)
{
	double d;
	if (type == METRIC_I64)
		return (double)bits;
	__builtin_memcpy(&d, &bits, sizeof(d));
	return d;
}

#endif
