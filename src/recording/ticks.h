/*
 * Ticks held in memory as they came: for each tick its time and the pairs (series, value) put at
 * it. Adding is two stores; ticks with the same series in the same order share one list of them.
 * Also the form of the tail on disk: several ticks in one blob, each value as the difference from
 * the value before.
 */
#ifndef SPOTTER_RECORDING_TICKS_H
#define SPOTTER_RECORDING_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/codec.h"

struct tick {
	uint64_t t_ns;
	size_t ids;  /* where its series begin in ticks.ids */
	size_t vals; /* where its values begin in ticks.vals */
	size_t n;
};

struct ticks {
	struct tick *tick;
	size_t n, cap;
	uint32_t *ids;
	size_t nids, ids_cap;
	int64_t *vals;
	size_t nvals, vals_cap;
};

/* Room for one more tick; then ticks_add any number of times, then ticks_end. 0 or -ENOMEM. */
int ticks_begin(struct ticks *l);
int ticks_grow(struct ticks *l); /* what ticks_add calls where there is no room */
int ticks_end(struct ticks *l, uint64_t t_ns);
void ticks_drop(struct ticks *l); /* forget what was added since the last ticks_end */
void ticks_clear(struct ticks *l);
void ticks_free(struct ticks *l);

static inline int ticks_add(struct ticks *l, uint32_t series, int64_t value)
{
	if ((l->nvals == l->vals_cap || l->nids == l->ids_cap) && ticks_grow(l))
		return -1;
	l->ids[l->nids++] = series;
	l->vals[l->nvals++] = value;
	return 0;
}

/*
 * What both ends of the tail know of the ticks before: times and values are stored as differences
 * from them. Forgotten at the first tick of a batch and after a failed write.
 */
struct tail_state {
	uint64_t t_ns;
	int64_t *value; /* by series */
	size_t nvalues;
	uint32_t *ids; /* the series of the tick before */
	size_t nids, ids_cap;
	bool fresh; /* nothing is known yet */
};

void tail_state_free(struct tail_state *s);
void tail_state_reset(struct tail_state *s);

/* Append the blob for the ticks [from, l->n) to out. 0 or -ENOMEM (reset the state then). */
int tail_encode(struct tail_state *s, struct codec *c, const struct ticks *l, size_t from,
		struct buf *out);

/*
 * Decode one blob: the ticks are added to l. Series from nseries on are skipped and counted in
 * *skipped. Any bytes in; 0, -EBADMSG (whole ticks before the damage may have been added) or
 * -ENOMEM. After an error rows fail until one comes that needs none before it.
 */
int tail_decode(struct tail_state *s, struct codec *c, const uint8_t *data, size_t len,
		uint32_t nseries, struct ticks *l, uint64_t *skipped);

#endif
