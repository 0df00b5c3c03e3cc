/*
 * A libnvidia-ml.so.1 without a GPU: the functions spotter calls, and the few that other clients need to get
 * there. What it pretends is written in the text file named by NVML_DOUBLE, which is read at each call, so a
 * test can change it while a program runs; without the variable it is one GPU with the values below.
 *
 *	gpus 2			   number of GPUs (default 1)
 *	driver 550.54.15	   version of the driver
 *	utilization 50		   of every GPU, or
 *	1.utilization 87	   of GPU 1 alone; likewise:
 *	name, uuid, pci, memory.total, memory.used, memory.reserved (bytes), power (mW), temperature (C)
 *	0.processes 12:1000 13:5   pid:bytes of each compute process
 *	process_bytes 32	   distance of entries as branch R535 had it (default 24)
 *	fail.FUNCTION 15	   the function returns this code; N.fail.FUNCTION for one GPU
 *	hang.FUNCTION 5000	   it takes that many ms
 *
 * Built twice: NVML_DOUBLE_OLD leaves out what an old driver does not have (names with _v2 and _v3, power).
 * The structs here are written down on their own, not taken from src/, so that a wrong layout there shows.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	OK = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	INSUFFICIENT_SIZE = 7,
	ARGUMENT_VERSION = 25
};
enum { SCRIPT_MAX = 65536, GPUS_MAX = 64 };

struct device {
	unsigned index;
};
static struct device devices[GPUS_MAX];
static int started;

/* The value behind key in the script, up to the end of its line; false if there is none. */
static bool lookup(const char *key, char *out, size_t cap)
{
	const char *path = getenv("NVML_DOUBLE");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[4096];
	bool found = false;
	size_t len = strlen(key);
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len) || line[len] != ' ')
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(out, cap, "%s", line + len + 1);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/* The value of one GPU, else that of all, else the default. */
static void value_text(const struct device *d, const char *key, const char *preset, char *out,
		       size_t cap)
{
	char own[128];
	snprintf(own, sizeof(own), "%u.%s", d->index, key);
	if (!lookup(own, out, cap) && !lookup(key, out, cap))
		snprintf(out, cap, "%s", preset);
}

static unsigned long long value(const struct device *d, const char *key, const char *preset)
{
	char text[128];
	value_text(d, key, preset, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

/* Every function begins here: wait if it is to hang, then the code it is to return. */
static int enter(const struct device *d, const char *function)
{
	static const struct device all = { .index = 9999 };
	char key[128];
	snprintf(key, sizeof(key), "hang.%s", function);
	unsigned long long ms = value(d ? d : &all, key, "0");
	struct timespec ts = { .tv_sec = (time_t)(ms / 1000),
			       .tv_nsec = (long)(ms % 1000) * 1000000 };
	if (ms)
		nanosleep(&ts, NULL);
	snprintf(key, sizeof(key), "fail.%s", function);
	int code = (int)value(d ? d : &all, key, "0");
	return code ? code : started || !strncmp(function, "nvmlInit", 8) ? OK : UNINITIALIZED;
}

static int copy(const char *text, char *out, unsigned length)
{
	if (strlen(text) >= length)
		return INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return OK;
}

static int start(const char *function)
{
	int rc = enter(NULL, function);
	if (!rc)
		started++;
	for (unsigned i = 0; i < GPUS_MAX; i++)
		devices[i].index = i;
	return rc;
}

static unsigned gpus(void)
{
	char text[32] = "1";
	lookup("gpus", text, sizeof(text));
	unsigned n = (unsigned)strtoul(text, NULL, 10);
	return n > GPUS_MAX ? GPUS_MAX : n;
}

static int count(unsigned *n, const char *function)
{
	int rc = enter(NULL, function);
	if (!rc)
		*n = gpus();
	return rc;
}

static int by_index(unsigned index, struct device **d, const char *function)
{
	int rc = index < GPUS_MAX ? enter(&devices[index], function) : INVALID_ARGUMENT;
	if (rc)
		return rc;
	if (index >= gpus())
		return INVALID_ARGUMENT;
	*d = &devices[index];
	return OK;
}

EXPORT int nvmlInit(void);
EXPORT int nvmlInit(void)
{
	return start(__func__);
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void)
{
	int rc = enter(NULL, __func__);
	started -= started > 0;
	return rc;
}

EXPORT const char *nvmlErrorString(int code);
EXPORT const char *nvmlErrorString(int code)
{
	return code ? "Some error" : "Success";
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	char text[80] = "550.54.15";
	lookup("driver", text, sizeof(text));
	int rc = enter(NULL, __func__);
	return rc ? rc : copy(text, version, length);
}

EXPORT int nvmlDeviceGetCount(unsigned *n);
EXPORT int nvmlDeviceGetCount(unsigned *n)
{
	return count(n, __func__);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, struct device **d);
EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, struct device **d)
{
	return by_index(index, d, __func__);
}

EXPORT int nvmlDeviceGetIndex(struct device *d, unsigned *index);
EXPORT int nvmlDeviceGetIndex(struct device *d, unsigned *index)
{
	int rc = enter(d, __func__);
	*index = d->index;
	return rc;
}

EXPORT int nvmlDeviceGetName(struct device *d, char *name, unsigned length);
EXPORT int nvmlDeviceGetName(struct device *d, char *name, unsigned length)
{
	char text[96];
	value_text(d, "name", "NVIDIA Double 9000", text, sizeof(text));
	int rc = enter(d, __func__);
	return rc ? rc : copy(text, name, length);
}

EXPORT int nvmlDeviceGetUUID(struct device *d, char *uuid, unsigned length);
EXPORT int nvmlDeviceGetUUID(struct device *d, char *uuid, unsigned length)
{
	char text[96], preset[96];
	snprintf(preset, sizeof(preset), "GPU-00000000-0000-0000-0000-%012u", d->index);
	value_text(d, "uuid", preset, text, sizeof(text));
	int rc = enter(d, __func__);
	return rc ? rc : copy(text, uuid, length);
}

struct memory {
	unsigned long long total, free, used;
};

static void memory_of(const struct device *d, struct memory *m, unsigned long long *reserved)
{
	m->total = value(d, "memory.total", "42949672960");
	m->used = value(d, "memory.used", "1073741824");
	*reserved = value(d, "memory.reserved", "268435456");
	m->free = m->total - m->used - *reserved;
}

/* The first version counts what the driver keeps for itself as used. */
EXPORT int nvmlDeviceGetMemoryInfo(struct device *d, struct memory *m);
EXPORT int nvmlDeviceGetMemoryInfo(struct device *d, struct memory *m)
{
	unsigned long long reserved;
	int rc = enter(d, __func__);
	if (rc)
		return rc;
	memory_of(d, m, &reserved);
	m->used += reserved;
	return OK;
}

struct utilization {
	unsigned gpu, memory;
};

EXPORT int nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *u);
EXPORT int nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *u)
{
	int rc = enter(d, __func__);
	if (rc)
		return rc;
	u->gpu = (unsigned)value(d, "utilization", "50");
	u->memory = (unsigned)value(d, "utilization.memory", "20");
	return OK;
}

EXPORT int nvmlDeviceGetTemperature(struct device *d, unsigned sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetTemperature(struct device *d, unsigned sensor, unsigned *celsius)
{
	int rc = sensor ? INVALID_ARGUMENT : enter(d, __func__);
	if (!rc)
		*celsius = (unsigned)value(d, "temperature", "40");
	return rc;
}

/* One entry: pid, bytes, and with 24 bytes and more the two MIG numbers, with 32 one more. */
static void put_process(unsigned char *at, size_t stride, unsigned pid, unsigned long long bytes)
{
	const unsigned none[2] = { UINT32_MAX, UINT32_MAX };
	memset(at, 0, stride);
	memcpy(at, &pid, sizeof(pid));
	memcpy(at + 8, &bytes, sizeof(bytes));
	if (stride >= 24)
		memcpy(at + 16, none, sizeof(none));
}

static int processes(struct device *d, unsigned *n, void *infos, size_t stride,
		     const char *function)
{
	char text[4096];
	unsigned found = 0, room = infos ? *n : 0;
	int rc = enter(d, function);
	if (rc)
		return rc;
	value_text(d, "processes", "", text, sizeof(text));
	for (char *p = text; *p; found++) {
		unsigned pid = (unsigned)strtoul(p, &p, 10);
		unsigned long long bytes = *p == ':' ? strtoull(p + 1, &p, 10) : UINT64_MAX;
		if (found < room)
			put_process((unsigned char *)infos + found * stride, stride, pid, bytes);
		p += strspn(p, " ");
		if (*p && (*p < '0' || *p > '9'))
			break;
	}
	*n = found;
	return found > room ? INSUFFICIENT_SIZE : OK;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses(struct device *d, unsigned *n, void *infos);
EXPORT int nvmlDeviceGetComputeRunningProcesses(struct device *d, unsigned *n, void *infos)
{
	return processes(d, n, infos, 16, __func__);
}

#ifndef NVML_DOUBLE_OLD

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
	return start(__func__);
}

EXPORT int nvmlInitWithFlags(unsigned flags);
EXPORT int nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return start(__func__);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n);
EXPORT int nvmlDeviceGetCount_v2(unsigned *n)
{
	return count(n, __func__);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **d);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **d)
{
	return by_index(index, d, __func__);
}

struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *m);
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *m)
{
	struct memory first;
	int rc = enter(d, __func__);
	if (rc)
		return rc;
	if (m->version != (sizeof(*m) | 2u << 24))
		return ARGUMENT_VERSION;
	memory_of(d, &first, &m->reserved);
	m->total = first.total;
	m->free = first.free;
	m->used = first.used;
	return OK;
}

EXPORT int nvmlDeviceGetPowerUsage(struct device *d, unsigned *mw);
EXPORT int nvmlDeviceGetPowerUsage(struct device *d, unsigned *mw)
{
	int rc = enter(d, __func__);
	if (!rc)
		*mw = (unsigned)value(d, "power", "123456");
	return rc;
}

struct pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci_info *pci);
EXPORT int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci_info *pci)
{
	char preset[32];
	int rc = enter(d, __func__);
	if (rc)
		return rc;
	memset(pci, 0, sizeof(*pci));
	pci->bus = 0x41 + d->index;
	pci->pci_device_id = 0x233010de;
	snprintf(preset, sizeof(preset), "00000000:%02X:00.0", pci->bus);
	value_text(d, "pci", preset, pci->bus_id, sizeof(pci->bus_id));
	memcpy(pci->bus_id_legacy, preset + 4, 12);
	return OK;
}

static size_t stride_of(const struct device *d)
{
	return (size_t)value(d, "process_bytes", "24");
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(struct device *d, unsigned *n, void *infos);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(struct device *d, unsigned *n, void *infos)
{
	return processes(d, n, infos, 24, __func__);
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned *n, void *infos);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned *n, void *infos)
{
	return processes(d, n, infos, stride_of(d), __func__);
}

#endif
