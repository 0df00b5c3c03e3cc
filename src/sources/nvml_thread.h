/*
 * NVML on a thread of its own, since any call may hang in the driver. The thread loads nothing and frees
 * nothing while it hangs; whoever looks at it from outside never waits for it.
 *
 * It reads all GPUs shortly before each tick of the recorder, so that the values are fresh when they are
 * taken, and at most ten times a second: the driver's own values move no faster.
 */
#ifndef SPOTTER_SOURCES_NVML_THREAD_H
#define SPOTTER_SOURCES_NVML_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "sources/nvml_lib.h"

enum nvml_state {
	NVML_STARTING,
	NVML_RUNNING,
	NVML_FAILED, /* init said no: see failure */
};

/* What the thread has found; valid between nvml_thread_look and nvml_thread_unlook. */
struct nvml_view {
	enum nvml_state state;
	nvml_return failure;
	char driver[80]; /* version, "" if not known */
	unsigned ngpus;
	struct nvml_gpu gpus[NVML_GPUS_MAX];
	uint64_t seq;                     /* 0: no values yet; grows with each set of values */
	uint64_t read_ns;                 /* when the reading of these values began */
	const struct nvml_values *values; /* one per GPU */
};

struct nvml_thread;

/* Takes lib over, also where it fails. 0 or -errno. */
int nvml_thread_start(const struct nvml_lib *lib, uint64_t interval_ns, struct nvml_thread **ret);

/* A tick is now: look at what is there. The thread waits for the unlook only to hand over values. */
const struct nvml_view *nvml_thread_look(struct nvml_thread *t, uint64_t tick_ns);
void nvml_thread_unlook(struct nvml_thread *t);

/*
 * Stop and free. If the thread does not come back within wait_ns it is left behind, to free itself if it ever
 * does, and false is returned. NULL is fine.
 */
bool nvml_thread_stop(struct nvml_thread *t, uint64_t wait_ns);

/* When to read next, given the time, the last tick (0: none yet) and how long the last reading took. */
uint64_t nvml_next_read_ns(uint64_t now_ns, uint64_t tick_ns, uint64_t interval_ns,
			   uint64_t took_ns);

#endif
