/*
 * libFuzzer: the parsers of the host's /proc and /sys texts and of cgroup paths. The first byte chooses the
 * parser; the rest is the text, which is copied so that a read behind its NUL is seen. For cgroups, a byte 1
 * stands between /proc/PID/cgroup and mountinfo.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sources/cgroup_limits.h"
#include "sources/cgroup_path.h"
#include "sources/host_parse.h"
#include "sources/nvml_lib.h"

static void fuzz_stat(const char *text)
{
	struct host_cpu_line line;
	const char *last = text;
	for (const char *p = text; host_parse_cpu(&p, &line); last = p)
		if (p <= last || line.cpu < -1 || line.cpu >= HOST_CPUS_MAX || !line.have)
			abort();
}

static void fuzz_schedstat(const char *text)
{
	uint64_t v;
	int cpu;
	host_parse_schedstat_version(text, &v);
	for (const char *p = text; host_parse_schedstat(&p, &cpu, &v);)
		if (cpu < 0 || cpu >= HOST_CPUS_MAX)
			abort();
}

static void fuzz_keys(const char *text)
{
	struct host_key keys[] = { { .key = "MemTotal" }, { .key = "pgfault" }, { .key = "oom" } };
	uint64_t us;
	double v;
	host_parse_keys(text, keys, 3);
	host_parse_pressure(text, "some", &us);
	if (host_parse_decimal(text, &v) && !(v >= 0))
		abort();
	host_parse_cpuinfo_hz(text, &v);
}

static void fuzz_disk(const char *text)
{
	struct host_disk_line d;
	for (const char *p = text; host_parse_disk(&p, &d);)
		if (!d.name_len || memchr(d.name, 0, d.name_len) ||
		    host_is_partition(d.name, d.name_len, d.name, d.name_len))
			abort();
}

static void fuzz_net(const char *text)
{
	struct host_net_line n;
	for (const char *p = text; host_parse_net(&p, &n);)
		if (!n.name_len || memchr(n.name, 0, n.name_len) ||
		    memchr(n.name, '\n', n.name_len))
			abort();
}

static void fuzz_cpulist(const char *text)
{
	uint64_t bits[HOST_CPUS_MAX / 64];
	int n = host_parse_cpulist(text, bits, HOST_CPUS_MAX / 64);
	if (n > HOST_CPUS_MAX)
		abort();
}

static void fuzz_cgroup(const char *text)
{
	static const char *const controllers[] = { "cpu", "memory", "" };
	char *cgroup = strdup(text);
	char *mounts = cgroup ? strchr(cgroup, 1) : NULL;
	struct cgroup_place place;
	if (mounts)
		*mounts++ = 0;
	for (int i = 0; i < 3 && mounts; i++) {
		if (cgroup_place_find(cgroup, mounts, controllers[i], "/sys", &place))
			continue;
		while (cgroup_place_up(&place))
			;
		if (strlen(place.dir) != place.mount_len)
			abort();
	}
	free(cgroup);
}

static void fuzz_limits(const char *text)
{
	double cores;
	int64_t bytes;
	if (cgroup_parse_cpu_max(text, &cores) && !(cores >= 0))
		abort();
	if (cgroup_parse_memory(text, &bytes) && bytes < 0)
		abort();
}

static void fuzz_stride(const char *text)
{
	size_t len = strlen(text);
	size_t stride = nvml_process_stride((const unsigned char *)text, len, 1 + len % 7, 24);
	if (stride != 16 && stride != 24 && stride != 32)
		abort();
}

static void (*const parsers[])(const char *text) = {
	fuzz_stat,    fuzz_schedstat, fuzz_keys,   fuzz_disk,   fuzz_net,
	fuzz_cpulist, fuzz_cgroup,    fuzz_limits, fuzz_stride,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	char *text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	parsers[data[0] % (sizeof(parsers) / sizeof(parsers[0]))](text);
	free(text);
	return 0;
}
