/*
 * Devices that a kernel file lists, one line each, and that come and go: disks and network interfaces. Finds
 * the device of a line in one comparison as long as the lines come in the order of last time, and ends the
 * entities of those that are not listed any more.
 */
#ifndef SPOTTER_SOURCES_DEVLIST_H
#define SPOTTER_SOURCES_DEVLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

#define DEVICE_SERIES_MAX 8
#define DEVICE_NAME_MAX   64

struct device {
	char name[DEVICE_NAME_MAX];
	bool kept; /* it has an entity; the others are remembered to be passed over */
	bool seen; /* listed at this tick */
	uint32_t entity;
	uint32_t series[DEVICE_SERIES_MAX];
	uint32_t last32[DEVICE_SERIES_MAX]; /* for counters of 32 bits */
	uint64_t sum[DEVICE_SERIES_MAX];
};

struct devlist {
	struct device *items;
	size_t n, cap;
	size_t next; /* where the next line is expected */
};

void devlist_free(struct devlist *l);

/* Before the lines of a tick. */
void devlist_begin(struct devlist *l);

/*
 * The device of this name; *ret_new if it was not known (all else zero then, series SERIES_NONE). Valid
 * until the next call. NULL if out of memory or the name is too long.
 */
struct device *devlist_find(struct devlist *l, const char *name, size_t len, bool *ret_new);

/* After the lines: end the entities of what was not listed, and forget it. */
void devlist_end(struct devlist *l, struct rec_writer *w, uint64_t t_ns);

/* A counter of 32 bits that wraps, as one of 64. i: which of the device's series. */
uint64_t device_unwrap(struct device *d, size_t i, uint64_t now);

#endif
