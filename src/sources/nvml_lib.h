/*
 * NVML behind names of our own: open the library, list the GPUs, read the values of all of them. Every call
 * may hang inside the driver; whoever calls is on a thread that may be lost.
 */
#ifndef SPOTTER_SOURCES_NVML_LIB_H
#define SPOTTER_SOURCES_NVML_LIB_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sources/nvml_abi.h"

enum { NVML_GPUS_MAX = 64, NVML_PIDS_MAX = 512 };

struct nvml_lib {
	void *handle;
	nvml_return (*init)(void);
	nvml_return (*shutdown)(void);
	nvml_return (*driver_version)(char *version, unsigned length);
	nvml_return (*count)(unsigned *count);
	nvml_return (*by_index)(unsigned index, struct nvml_device **device);
	nvml_return (*name)(struct nvml_device *device, char *name, unsigned length);
	nvml_return (*uuid)(struct nvml_device *device, char *uuid, unsigned length);
	nvml_return (*pci)(struct nvml_device *device, struct nvml_pci_info *pci);
	nvml_return (*memory)(struct nvml_device *device, struct nvml_memory *memory);
	nvml_return (*memory_v2)(struct nvml_device *device, struct nvml_memory_v2 *memory);
	nvml_return (*utilization)(struct nvml_device *device,
				   struct nvml_utilization *utilization);
	nvml_return (*power)(struct nvml_device *device, unsigned *mw);
	nvml_return (*temperature)(struct nvml_device *device, unsigned sensor, unsigned *celsius);
	nvml_return (*processes)(struct nvml_device *device, unsigned *count, void *infos);
	nvml_return (*processes_v1)(struct nvml_device *device, unsigned *count, void *infos);
};

/* Load the library; calls nothing in it. 0, -ENOENT or -ENOSYS with words. */
int nvml_lib_open(struct nvml_lib *lib, struct err *e);
void nvml_lib_close(struct nvml_lib *lib); /* unload; after shutdown, or before init */

/* "not supported", "the GPU is lost", ...: static strings. */
const char *nvml_reason(nvml_return code);

struct nvml_gpu {
	struct nvml_device *device; /* NULL: its handle cannot be had, see code */
	nvml_return code;
	unsigned index;
	char name[96], uuid[96], bus_id[32]; /* "" if not known */
	uint64_t memory_bytes;               /* 0 if not known */
};

/* init, then all GPUs into gpus[NVML_GPUS_MAX]; the code of what failed, *ret_n untouched then. */
nvml_return nvml_lib_start(const struct nvml_lib *lib, struct nvml_gpu *gpus, unsigned *ret_n);

/* Values of one GPU; each is only there if its code is NVML_OK. */
enum nvml_value {
	NVML_V_UTILIZATION,
	NVML_V_MEMORY,
	NVML_V_POWER,
	NVML_V_TEMPERATURE,
	NVML_V_PROCESSES,
	NVML_VALUES
};
struct nvml_values {
	nvml_return code[NVML_VALUES];
	unsigned utilization_percent, power_mw, temperature_c;
	uint64_t memory_total, memory_used;
	unsigned processes; /* how many there are, also where pids holds fewer */
	unsigned npids;
	pid_t pids[NVML_PIDS_MAX];
};
void nvml_lib_read(const struct nvml_lib *lib, const struct nvml_gpu *gpu, struct nvml_values *ret);

/*
 * Bytes between the entries that a driver wrote: 16, 24 or 32, whatever its symbol promises. bytes[0..cap-1]
 * was filled with NVML_POISON before the call; n > 0 entries were reported; nominal is what the header says.
 */
#define NVML_POISON 0xa5
size_t nvml_process_stride(const unsigned char *bytes, size_t cap, unsigned n, size_t nominal);

#endif
