/*
 * What a cgroup has used: the files of its directories, kept open, as values in the units of metrics.def.
 * Private to src/sources/ and its tests.
 */
#ifndef SPOTTER_SOURCES_CGROUP_USAGE_H
#define SPOTTER_SOURCES_CGROUP_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "sources/cgroup_limits.h"
#include "sources/kfile.h"

enum cgroup_value {
	CGROUP_USER,      /* ns */
	CGROUP_SYSTEM,    /* ns */
	CGROUP_THROTTLED, /* ns, in the directory of the smallest quota */
	CGROUP_USED,      /* bytes, in the directory of the smallest memory limit */
	CGROUP_OOM_KILLS, /* there too (version 1: in the cgroup itself) */
	CGROUP_STALL_CPU, /* ns; "some" and "full" of cpu, memory, io */
	CGROUP_STALL_CPU_FULL,
	CGROUP_STALL_MEMORY,
	CGROUP_STALL_MEMORY_FULL,
	CGROUP_STALL_IO,
	CGROUP_STALL_IO_FULL,
	CGROUP_VALUES
};

enum {
	CGROUP_FILE_CPU,
	CGROUP_FILE_CPU_SYSTEM,
	CGROUP_FILE_THROTTLED,
	CGROUP_FILE_USED,
	CGROUP_FILE_EVENTS,
	CGROUP_FILE_STALL,
	CGROUP_FILES = CGROUP_FILE_STALL + 3
};

/* A counter read from one directory and then from another goes on from where it was. */
struct cgroup_counter {
	uint64_t last, sum;
	bool have_last;
};

struct cgroup_usage {
	struct kfile files[CGROUP_FILES];
	char throttled_dir[PATH_MAX], memory_dir[PATH_MAX]; /* "" if none */
	bool cpu_version1, cpu_in_ticks, throttled_version1;
	uint64_t tick_ns;
	struct cgroup_counter throttled, oom_kills;
};

struct cgroup_values {
	bool have[CGROUP_VALUES];
	int64_t v[CGROUP_VALUES];
};

/*
 * Open what there is. A controller for which the job is in the root of the hierarchy is left out: its usage
 * would be the whole host's. Files that are missing just give no value.
 */
void cgroup_usage_open(struct cgroup_usage *u, const struct cgroup_where *where,
		       const struct cgroup_limits *limits);

/* The limits were read again: follow them where they are set in another directory now. */
void cgroup_usage_follow(struct cgroup_usage *u, const struct cgroup_where *where,
			 const struct cgroup_limits *limits);

/* Does the value have a file to come from? */
bool cgroup_usage_has(const struct cgroup_usage *u, enum cgroup_value value);

void cgroup_usage_read(struct cgroup_usage *u, struct cgroup_values *ret);
void cgroup_usage_close(struct cgroup_usage *u);

#endif
