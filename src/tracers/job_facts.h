/*
 * What the job's processes say about it, as facts of the run: "fact.torch" = "2.1.2".
 *
 * Many processes of one job say the same. The first to say something about a key owns "fact.KEY", and may
 * change it; what another process says is kept as "fact.KEY@PID", but only where it differs.
 */
#ifndef SPOTTER_TRACERS_JOB_FACTS_H
#define SPOTTER_TRACERS_JOB_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"

struct job_fact {
	char *key, *value;
	uint32_t pid; /* the owner */
};

struct job_facts {
	struct job_fact *facts;
	size_t n, kept; /* kept counts the ones of other processes, too */
};

void job_facts_init(struct job_facts *f);
void job_facts_free(struct job_facts *f);

/* 0; -ENOSPC if there are too many (nothing is kept); -ENOMEM. */
int job_facts_set(struct job_facts *f, struct rec_writer *w, uint32_t pid, const char *key,
		  const char *value);

#endif
