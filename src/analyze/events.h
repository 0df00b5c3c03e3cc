/* Walking the events of a track slice by slice, so that a run of weeks need not be held in memory at once. */
#ifndef SPOTTER_ANALYZE_EVENTS_H
#define SPOTTER_ANALYZE_EVENTS_H

#include "recording/recording.h"

/*
 * fn for each row of the track in time order; row has TRACK_COLUMNS_MAX values, those that the recording does not
 * have are REC_NONE, and its duration is never negative. 0 or -errno with words.
 */
int events_each(struct rec_reader *r, const struct rec_track_info *track,
		void (*fn)(void *arg, const int64_t *row), void *arg, struct err *e);

/* Seconds of a duration in ns; and the end of an event. */
double events_seconds(int64_t ns);
uint64_t events_end(const int64_t *row);

#endif
