/*
 * What a WHERE clause says about columns that the reader can look up by: planned once by xBestIndex, and with its
 * values at each xFilter. SQLite tests every row again afterwards, so a filter may let through too much, never
 * too little: what is not certain is not filtered.
 */
#ifndef SPOTTER_EXTENSION_FILTER_H
#define SPOTTER_EXTENSION_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "recording/recording.h"

/* The columns that help, by the letter under which a plan knows them. */
enum filter_code {
	FILTER_TIME = 't',
	FILTER_METRIC = 'm',
	FILTER_TRACK = 'r',
	FILTER_ENTITY = 'e', /* its name */
	FILTER_KIND = 'k',
	FILTER_ID = 'i',
	FILTER_KEY = 'y',
	FILTER_FILE = 'f', /* the hidden column: which recording */
};

struct filter_column {
	int column; /* of the virtual table; -1 ends the list */
	enum filter_code code;
	double share; /* of the rows that are left by "=", for the planner */
};

/* xBestIndex: uses what it can of the constraints. Rows come in the order of t_ns (column 0). */
int filter_plan(sqlite3_index_info *info, const struct filter_column *columns);

/* Text belongs to the arguments of xFilter; NULL: no restriction. */
struct filter {
	uint64_t t0, t1; /* [t0, t1) */
	const char *metric, *track, *entity, *kind, *file;
	bool has_id, has_key;
	int64_t id, key;
	bool nothing; /* no row can match */
};

void filter_read(const char *plan, int argc, sqlite3_value **argv, struct filter *ret);

bool filter_entity(const struct filter *f, const struct rec_reader *r, uint32_t entity);

#endif
