/*
 * The directory of one run that the job and the recorder share: rings, and the files put on the job's path.
 * It lies on tmpfs where there is one, belongs to the user alone (0700), and is named
 * spotter-UID-PID-XXXXXX after the recorder, so that what a killed recorder left can be told and removed.
 */
#ifndef SPOTTER_RECORD_RUNDIR_H
#define SPOTTER_RECORD_RUNDIR_H

#include <stddef.h>

#include "base/err.h"

#define RUNDIR_MAX 256 /* bytes of a path, with its NUL */

/*
 * Make the directory, unpack the embedded files into it, and write its path to ret. Also removes directories
 * of this user whose recorder is dead. 0, or -errno with words; nothing is left behind then.
 */
int rundir_create(char ret[RUNDIR_MAX], struct err *e);

/* Remove it and what is in it. An empty path is fine. Never follows links out of it. */
void rundir_remove(const char *path);

#endif
