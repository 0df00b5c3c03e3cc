/*
 * The columns of a track as people and programs see them: named, with words instead of numbers where the number
 * stands for a word. One place, so that CSV, JSON and SQL show the same.
 */
#ifndef SPOTTER_EXPORT_COLUMNS_H
#define SPOTTER_EXPORT_COLUMNS_H

#include <stdint.h>

#include "base/buf.h"
#include "recording/recording.h"

/*
 * Names as the recording has them, but "index" is called after the track ("step") and times tell their unit
 * ("input_wait_ns"); one without a name is "column7". n: how many the recording has.
 */
struct columns {
	char names[TRACK_COLUMNS_MAX][32];
	int n;
};

void columns_of(const struct rec_track_info *track, struct columns *ret);
void columns_of_kind(enum track_kind kind, struct columns *ret);

enum cell_type { CELL_NONE, CELL_I64, CELL_TEXT };

struct cell {
	enum cell_type type;
	int64_t i;
	const char *s; /* owned by the reader, or static */
};

/* Column i (from 2: behind t and dur) of an event. */
struct cell columns_cell(const struct columns *c, struct rec_reader *r, const int64_t *row, int i);

/* The columns behind t and dur as a JSON object; what is not known is left out. */
void columns_args(struct buf *b, struct rec_reader *r, const struct columns *c, const int64_t *row);

#endif
