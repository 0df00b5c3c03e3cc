/*
 * Tracers: what arrives as events. Each is one const table of functions, listed in tracers.c. A tracer
 * prepares the job's environment before it starts, is drained at each tick and once after the job ended, and
 * writes tracks, strings and notices.
 */
#ifndef SPOTTER_TRACERS_TRACER_H
#define SPOTTER_TRACERS_TRACER_H

#include <stdint.h>

#include "base/err.h"
#include "recording/recording.h"
#include "sources/jobset.h"

struct tracer_env {
	struct rec_writer *w;
	const char *dir;       /* SPOTTER_DIR of this run: mode 0700, on tmpfs where there is one */
	uint32_t job;          /* entity of the job */
	struct jobset *jobset; /* pid -> entity, to hang tracks on processes */
};

struct tracer_totals {
	uint64_t records, lost; /* kept; dropped by full rings or not understood */
	uint64_t job_cost_ns;   /* what the hooks cost the job, as they estimate it themselves */
};

struct tracer {
	const char *name, *help;
	int (*open)(const struct tracer_env *env, void **ret_state, struct err *e);
	void (*drain)(void *state); /* take what is there now; never blocks */
	void (*totals)(const void *state, struct tracer_totals *ret); /* adds to *ret */
	void (*close)(void *state);
};

extern const struct tracer *const tracers[]; /* NULL-terminated */

#endif
