/*
 * Starting the job: fork and exec, with everything about the process as it would have been without spotter,
 * but for SPOTTER_DIR and PYTHONPATH.
 */
#ifndef SPOTTER_RECORD_LAUNCH_H
#define SPOTTER_RECORD_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"

struct launch {
	char **argv;            /* the command, NULL-terminated */
	const char *dir;        /* SPOTTER_DIR; empty: none */
	const char *pythonpath; /* put in front of PYTHONPATH; empty: not */
	int out, err;           /* descriptors for its standard output and error; -1: as they are */
	const sigset_t *mask;   /* the signal mask it gets */
};

/*
 * Start it. 0 and *ret_pid once the command really runs; or -errno from fork or exec (-ENOENT: no such
 * command), with words, and no process left.
 */
int launch_job(const struct launch *l, pid_t *ret_pid, struct err *e);

#endif
