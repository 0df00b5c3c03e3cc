/*
 * What a job may use: CPU affinity, cpuset, the CPU quotas and the memory limits of all cgroups from its own up
 * to the top of what can be seen here. Private to src/sources/ and its tests.
 */
#ifndef SPOTTER_SOURCES_CGROUP_LIMITS_H
#define SPOTTER_SOURCES_CGROUP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sources/cgroup_path.h"

enum cgroup_controller {
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_CPUSET,
	CGROUP_MEMORY,
	CGROUP_UNIFIED,
	CGROUP_CONTROLLERS
};

/* Where a process is: a place per controller; version 0 where there is none. */
struct cgroup_where {
	char *text; /* of its /proc/PID/cgroup */
	struct cgroup_place places[CGROUP_CONTROLLERS];
};

/*
 * Look it up. *ret_changed: it is another one than in *where, which was rewritten then. 0 or -errno (-ENOENT:
 * the process is gone or there are no cgroups), *where as it was. Start with all zeros.
 */
int cgroup_where_read(struct cgroup_where *where, const char *proc_root, const char *sys_root,
		      pid_t pid, bool *ret_changed);
void cgroup_where_free(struct cgroup_where *where);

/* Is this the top of the whole hierarchy, where usage is the host's? (A container's top is not.) */
bool cgroup_is_root(const struct cgroup_place *place);

struct cgroup_limits {
	double quota_cores;        /* the smallest quota; 0: none */
	char quota_dir[PATH_MAX];  /* whose quota that is; "" if none */
	int64_t memory_bytes;      /* the smallest limit; INT64_MAX: none */
	char memory_dir[PATH_MAX]; /* whose limit that is; "" if none */
	int cores_cpuset;          /* cores online in the cpuset; 0: not known */
	int cores_affinity;        /* of these, in the affinity of the process; 0: not known */
};

void cgroup_limits_read(struct cgroup_limits *ret, const struct cgroup_where *where,
			const char *proc_root, const char *sys_root, pid_t pid);

/* Texts of the limit files. "max 100000" is no quota: 0. False if it is something else altogether. */
bool cgroup_parse_cpu_max(const char *text, double *ret_cores);
/* "max", and the huge numbers that stand for it in version 1, give INT64_MAX. */
bool cgroup_parse_memory(const char *text, int64_t *ret_bytes);

#endif
