/*
 * What is known about a run before its first sample: the command, who and where, which machine.
 */
#ifndef SPOTTER_RECORD_FACTS_H
#define SPOTTER_RECORD_FACTS_H

#include <stdint.h>

#include "recording/recording.h"

/* Write the facts listed in doc/recording.md under "run". 0 or -ENOMEM. */
int facts_write(struct rec_writer *w, char *const *argv, uint64_t start_mono_ns,
		uint64_t start_real_ns, uint64_t interval_ns);

#endif
