/*
 * Who writes a recording: a process is known by its boot, pid and start time, since pids come
 * again. Private to src/recording/.
 */
#ifndef SPOTTER_RECORDING_LIVE_H
#define SPOTTER_RECORDING_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct live {
	char boot_id[64];
	int pid;
	uint64_t start; /* from /proc/PID/stat, clock ticks since boot */
};

int live_self(struct live *ret);       /* this process; 0 or -errno */
bool live_check(const struct live *l); /* does it run, on this host and in this boot? */

#endif
