/*
 * Where a process's cgroup lies in the file system: pure functions over the text of /proc/PID/cgroup and
 * /proc/self/mountinfo, for version 1, version 2 and both at once. Private to src/sources/, its tests and
 * the fuzz target.
 */
#ifndef SPOTTER_SOURCES_CGROUP_PATH_H
#define SPOTTER_SOURCES_CGROUP_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* One cgroup directory that can be seen from here. */
struct cgroup_place {
	int version;         /* 1 or 2 */
	size_t mount_len;    /* dir[0..mount_len-1] is the mount point */
	char dir[PATH_MAX];  /* "/sys/fs/cgroup/memory/user.slice" */
	char path[PATH_MAX]; /* as /proc/PID/cgroup names it: "/user.slice" */
};

/*
 * The cgroup that decides about controller ("cpu", "cpuset", "memory") for the process whose /proc/PID/cgroup
 * is given; "" asks for version 2 whatever its controllers. A version 1 hierarchy with the controller wins over
 * version 2. sys_root replaces a leading "/sys" of the mount point.
 * 0, -ENOENT (no such hierarchy, or not mounted here), -EXDEV (the cgroup lies outside of what is mounted
 * here: another cgroup namespace), -ENAMETOOLONG. ret is changed only on success.
 */
int cgroup_place_find(const char *cgroup_text, const char *mountinfo, const char *controller,
		      const char *sys_root, struct cgroup_place *ret);

/* Go to the parent; false at the mount point, which stays. */
bool cgroup_place_up(struct cgroup_place *place);

#endif
