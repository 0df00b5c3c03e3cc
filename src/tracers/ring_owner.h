/*
 * Which entity a ring belongs to. A ring names the pid its producer saw; in a container that is not the pid
 * the recorder sees, so the pid namespace decides how it is found.
 */
#ifndef SPOTTER_TRACERS_RING_OWNER_H
#define SPOTTER_TRACERS_RING_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "tracers/ring_file.h"
#include "tracers/tracer.h"

struct ring_owners {
	const struct tracer_env *env; /* of whoever owns this struct */
	uint64_t pid_ns;              /* ours; 0 unknown */
	struct map made;              /* (namespace, pid) -> entity made here */
};

/* Of one ring; zeros at first. */
struct ring_owner {
	pid_t pid; /* as the recorder sees it; 0: not known */
};

void ring_owners_init(struct ring_owners *o, const struct tracer_env *env);
void ring_owners_free(struct ring_owners *o);

/*
 * The entity of the process, as the job source made it. If there is none yet: 0, or where it must be had now
 * a new process entity below the job. Rings without a pid belong to the job itself.
 */
uint32_t ring_owner_entity(struct ring_owners *o, struct ring_owner *owner,
			   const struct ring_file *file, bool must);

/* Has the producer ended, so that nothing more can come? False where that cannot be told. */
bool ring_owner_ended(struct ring_owners *o, struct ring_owner *owner,
		      const struct ring_file *file);

#endif
