/*
 * The pids that belong to the job now: filled by the job source at each tick, read by sources that must know
 * whose process it is (GPUs). Pids are those of the recorder's own pid namespace.
 */
#ifndef SPOTTER_SOURCES_JOBSET_H
#define SPOTTER_SOURCES_JOBSET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/map.h"

struct jobset {
	struct map pids; /* pid -> entity id of the process */
};

static inline bool jobset_has(const struct jobset *s, pid_t pid)
{
	uint64_t entity;
	return map_get(&s->pids, (uint64_t)pid, &entity);
}

#endif
