/*
 * Several series of one entity at once: what most sources need. An id that was never made is SERIES_NONE,
 * which rec_put ignores.
 */
#ifndef SPOTTER_SOURCES_SERIES_H
#define SPOTTER_SOURCES_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

#define SERIES_NONE UINT32_MAX

/* Make series for n metrics; ids to ret[0..n-1]. 0 or -errno (those made before stay). */
int series_make(struct rec_writer *w, uint32_t entity, const enum metric_id *metrics_wanted,
		size_t n, const char *source, uint32_t *ret);

void series_none(uint32_t *ids, size_t n); /* set all to SERIES_NONE */

/* A gap with this reason in each that exists. */
void series_gap(struct rec_writer *w, const uint32_t *ids, size_t n, const char *reason);

/* Nothing more will come; sets all to SERIES_NONE. */
void series_end(struct rec_writer *w, uint32_t *ids, size_t n);

/* Words for a failed read of a file, for gaps and messages: static strings ("no permission"). */
const char *series_reason(int negative_errno);

#endif
