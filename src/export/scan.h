/*
 * Walk many series, or many tracks, in the order of time with bounded memory: the recording is read in windows
 * that adapt to how densely it is filled, so a week at 1 kHz costs no more memory than a minute. Used by the
 * exporters and by the SQL extension; knows nothing of either.
 *
 * The reader must outlive the walk and must not be refreshed during it.
 */
#ifndef SPOTTER_EXPORT_SCAN_H
#define SPOTTER_EXPORT_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/recording.h"

/* One value: of the series at `index` of the list given to scan_new. v is set for both types. */
struct scan_value {
	uint32_t index;
	enum metric_type type;
	int64_t i;
	double v;
};

/* All values of one moment; owned by the walk until the next call. Never empty. */
struct scan_row {
	uint64_t t_ns;
	size_t n;
	const struct scan_value *values;
};

struct scan;

/* Walk the n series in [t0, t1). The list is copied. 0 or -ENOMEM. */
int scan_new(struct rec_reader *r, const struct rec_series_info *const *series, size_t n,
	     uint64_t t0, uint64_t t1, struct scan **ret);
void scan_free(struct scan *s);

/* 1 and the next row, 0 at the end, -errno with words. */
int scan_next(struct scan *s, struct scan_row *ret, struct err *e);

/* One event: of the track at `index` of the list; ncolumns values, REC_NONE where not known. */
struct scan_event {
	uint32_t index;
	int ncolumns;
	const int64_t *row;
};

struct scan_events;

/* The same for events that begin in [t0, t1). */
int scan_events_new(struct rec_reader *r, const struct rec_track_info *const *tracks, size_t n,
		    uint64_t t0, uint64_t t1, struct scan_events **ret);
void scan_events_free(struct scan_events *s);
int scan_events_next(struct scan_events *s, struct scan_event *ret, struct err *e);

#endif
