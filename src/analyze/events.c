/* See events.h. */
#include "analyze/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SLICE_NS   (600 * NS_PER_S)
#define SLICES_MAX 1024

static void give(const struct rec_track_info *track, const int64_t *rows, size_t n,
		 void (*fn)(void *arg, const int64_t *row), void *arg)
{
	int64_t row[TRACK_COLUMNS_MAX];
	int width = track->ncolumns < TRACK_COLUMNS_MAX ? track->ncolumns : TRACK_COLUMNS_MAX;
	for (int i = 0; i < TRACK_COLUMNS_MAX; i++)
		row[i] = REC_NONE;
	for (size_t i = 0; i < n; i++) {
		memcpy(row, rows + i * (size_t)track->ncolumns, (size_t)width * sizeof(*row));
		if (row[EV_DUR] < 0)
			row[EV_DUR] = 0;
		fn(arg, row);
	}
}

int events_each(struct rec_reader *r, const struct rec_track_info *track,
		void (*fn)(void *arg, const int64_t *row), void *arg, struct err *e)
{
	uint64_t t0 = rec_t0(r), span = rec_t1(r) > t0 ? rec_t1(r) - t0 : 0;
	uint64_t slices = span / SLICE_NS + 1;
	if (slices > SLICES_MAX)
		slices = SLICES_MAX;
	for (uint64_t i = 0; i < slices; i++) {
		uint64_t from = i ? t0 + span / slices * i : 0;
		uint64_t to = i + 1 < slices ? t0 + span / slices * (i + 1) : UINT64_MAX;
		int64_t *rows;
		size_t n;
		int rc = rec_read_events(r, track->id, from, to, &rows, &n, e);
		if (rc)
			return rc;
		give(track, rows, n, fn, arg);
		free(rows);
	}
	return 0;
}

double events_seconds(int64_t ns)
{
	return (double)ns / NS_PER_S;
}

uint64_t events_end(const int64_t *row)
{
	return (uint64_t)row[EV_T] + (uint64_t)row[EV_DUR];
}
