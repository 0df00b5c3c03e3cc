/* What a job may use; see cgroup_limits.h. */
#include "sources/cgroup_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "sources/host_parse.h"

enum { FILE_MAX_BYTES = 1 << 20, CPU_WORDS = HOST_CPUS_MAX / 64 };

static const char *const controllers[CGROUP_CONTROLLERS] = {
	[CGROUP_CPU] = "cpu",       [CGROUP_CPUACCT] = "cpuacct", [CGROUP_CPUSET] = "cpuset",
	[CGROUP_MEMORY] = "memory", [CGROUP_UNIFIED] = "",
};

static ssize_t read_in(const char *dir, const char *file, char *buf, size_t cap)
{
	char path[PATH_MAX + 64];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return io_read_text(AT_FDCWD, path, buf, cap);
}

static bool exists_in(const char *dir, const char *file)
{
	char path[PATH_MAX + 64];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);
	return n > 0 && (size_t)n < sizeof(path) && !access(path, F_OK);
}

/*
 * A container may see the host's path in /proc/PID/cgroup but only its own part of the tree: what is mounted
 * is then its own cgroup.
 */
static void settle(struct cgroup_place *place)
{
	if (access(place->dir, F_OK))
		place->dir[place->mount_len] = 0;
}

int cgroup_where_read(struct cgroup_where *where, const char *proc_root, const char *sys_root,
		      pid_t pid, bool *ret_changed)
{
	char path[PATH_MAX], *text, *mounts;
	size_t len;
	snprintf(path, sizeof(path), "%s/%d/cgroup", proc_root, (int)pid);
	int rc = io_read_all(path, FILE_MAX_BYTES, &text, &len);
	if (rc)
		return rc;
	if (where->text && !strcmp(where->text, text)) {
		free(text);
		*ret_changed = false;
		return 0;
	}
	snprintf(path, sizeof(path), "%s/self/mountinfo", proc_root);
	rc = io_read_all(path, FILE_MAX_BYTES * 4, &mounts, &len);
	if (rc) {
		free(text);
		return rc;
	}
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		struct cgroup_place *place = &where->places[i];
		if (cgroup_place_find(text, mounts, controllers[i], sys_root, place))
			place->version = 0;
		else
			settle(place);
	}
	free(mounts);
	free(where->text);
	where->text = text;
	*ret_changed = true;
	return 0;
}

void cgroup_where_free(struct cgroup_where *where)
{
	free(where->text);
	where->text = NULL;
}

bool cgroup_is_root(const struct cgroup_place *place)
{
	return place->version == 2 ? !exists_in(place->dir, "cgroup.events")
				   : exists_in(place->dir, "release_agent");
}

bool cgroup_parse_cpu_max(const char *text, double *ret_cores)
{
	const char *p = text;
	uint64_t quota, period;
	if (!strncmp(p, "max", 3)) {
		*ret_cores = 0;
		return true;
	}
	if (!io_parse_u64(&p, &quota) || !io_parse_u64(&p, &period) || !period)
		return false;
	*ret_cores = (double)quota / (double)period;
	return true;
}

bool cgroup_parse_memory(const char *text, int64_t *ret_bytes)
{
	const char *p = text;
	uint64_t v;
	if (!strncmp(p, "max", 3) || !strncmp(p, "-1", 2)) {
		*ret_bytes = INT64_MAX;
		return true;
	}
	if (!io_parse_u64(&p, &v))
		return false;
	*ret_bytes = v >= 1ULL << 62 ? INT64_MAX : (int64_t)v;
	return true;
}

/* Cores by the quota of one directory; 0: none. */
static double quota_of(const struct cgroup_place *place)
{
	char quota[64], period[64];
	double cores = 0;
	if (place->version == 2) {
		if (read_in(place->dir, "cpu.max", quota, sizeof(quota)) <= 0 ||
		    !cgroup_parse_cpu_max(quota, &cores))
			return 0;
		return cores;
	}
	if (read_in(place->dir, "cpu.cfs_quota_us", quota, sizeof(quota)) <= 0 ||
	    read_in(place->dir, "cpu.cfs_period_us", period, sizeof(period)) <= 0 || *quota == '-')
		return 0;
	char both[130];
	snprintf(both, sizeof(both), "%.*s %s", (int)strcspn(quota, "\n"), quota, period);
	return cgroup_parse_cpu_max(both, &cores) ? cores : 0;
}

static void read_quota(struct cgroup_limits *l, struct cgroup_place place)
{
	do {
		double cores = quota_of(&place);
		if (cores > 0 && (l->quota_cores <= 0 || cores < l->quota_cores)) {
			l->quota_cores = cores;
			memcpy(l->quota_dir, place.dir, strlen(place.dir) + 1);
		}
	} while (cgroup_place_up(&place));
}

static void read_memory(struct cgroup_limits *l, struct cgroup_place place)
{
	const char *file = place.version == 2 ? "memory.max" : "memory.limit_in_bytes";
	char text[64];
	int64_t bytes;
	do {
		if (read_in(place.dir, file, text, sizeof(text)) <= 0 ||
		    !cgroup_parse_memory(text, &bytes) || bytes >= l->memory_bytes)
			continue;
		l->memory_bytes = bytes;
		memcpy(l->memory_dir, place.dir, strlen(place.dir) + 1);
	} while (cgroup_place_up(&place));
}

/* Intersect bits with the list in a file; false and nothing changed if it says nothing. */
static bool narrow(uint64_t *bits, const char *dir, const char *file)
{
	char text[4096];
	uint64_t other[CPU_WORDS];
	if (read_in(dir, file, text, sizeof(text)) <= 0 ||
	    host_parse_cpulist(text, other, CPU_WORDS) <= 0)
		return false;
	for (int i = 0; i < CPU_WORDS; i++)
		bits[i] &= other[i];
	return true;
}

static void read_cpuset(uint64_t *bits, struct cgroup_place place)
{
	if (place.version == 1) {
		if (!narrow(bits, place.dir, "cpuset.effective_cpus"))
			narrow(bits, place.dir, "cpuset.cpus");
		return;
	}
	do { /* the nearest that has the controller holds for all below it */
		if (narrow(bits, place.dir, "cpuset.cpus.effective"))
			return;
	} while (cgroup_place_up(&place));
}

static int count(const uint64_t *bits)
{
	int n = 0;
	for (int i = 0; i < CPU_WORDS; i++)
		n += __builtin_popcountll(bits[i]);
	return n;
}

/* Affinity as /proc/PID/status says it: "Cpus_allowed_list:\t0-3". */
static bool narrow_by_affinity(uint64_t *bits, const char *proc_root, pid_t pid)
{
	static const char key[] = "\nCpus_allowed_list:";
	char path[PATH_MAX], text[8192];
	uint64_t other[CPU_WORDS];
	snprintf(path, sizeof(path), "%s/%d/status", proc_root, (int)pid);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	const char *list = strstr(text, key);
	if (!list || host_parse_cpulist(list + sizeof(key) - 1, other, CPU_WORDS) <= 0)
		return false;
	for (int i = 0; i < CPU_WORDS; i++)
		bits[i] &= other[i];
	return true;
}

static void read_cores(struct cgroup_limits *l, const struct cgroup_where *where,
		       const char *proc_root, const char *sys_root, pid_t pid)
{
	uint64_t bits[CPU_WORDS];
	char path[PATH_MAX];
	memset(bits, 0xff, sizeof(bits));
	snprintf(path, sizeof(path), "%s/devices/system/cpu", sys_root);
	bool known = narrow(bits, path, "online");
	if (where->places[CGROUP_CPUSET].version)
		read_cpuset(bits, where->places[CGROUP_CPUSET]);
	int n = count(bits);
	l->cores_cpuset = known && n < HOST_CPUS_MAX ? n : 0;
	if (narrow_by_affinity(bits, proc_root, pid))
		l->cores_affinity = count(bits);
}

void cgroup_limits_read(struct cgroup_limits *ret, const struct cgroup_where *where,
			const char *proc_root, const char *sys_root, pid_t pid)
{
	ret->quota_cores = 0;
	ret->memory_bytes = INT64_MAX;
	ret->quota_dir[0] = ret->memory_dir[0] = 0;
	ret->cores_cpuset = ret->cores_affinity = 0;
	if (where->places[CGROUP_CPU].version)
		read_quota(ret, where->places[CGROUP_CPU]);
	if (where->places[CGROUP_MEMORY].version)
		read_memory(ret, where->places[CGROUP_MEMORY]);
	read_cores(ret, where, proc_root, sys_root, pid);
}
