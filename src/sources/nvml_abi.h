/*
 * The part of NVIDIA's management library that spotter calls: names, codes and layouts as the library exports
 * them. Nothing of NVIDIA's is needed to build. tests/doubles/nvml checks the layouts against the real header
 * where one is installed.
 */
#ifndef SPOTTER_SOURCES_NVML_ABI_H
#define SPOTTER_SOURCES_NVML_ABI_H

#include <stdint.h>

#define NVML_SONAME "libnvidia-ml.so.1"

typedef int nvml_return; /* enum nvmlReturn_t */
enum {
	NVML_OK = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_UNKNOWN = 999,
};

struct nvml_device; /* opaque: nvmlDevice_t is a pointer to one */

struct nvml_utilization { /* percent */
	unsigned gpu, memory;
};

struct nvml_memory { /* bytes; used holds what the driver keeps for itself */
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned version; /* NVML_MEMORY_V2, or plain 2 for some drivers */
	unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned)(sizeof(struct nvml_memory_v2) | 2u << 24))

struct nvml_process_v1 {
	unsigned pid;
	unsigned long long used; /* UINT64_MAX: not known */
};

/* Of ..._v2 and ..._v3. Drivers of branch R535 wrote 32 bytes each instead, with one more number. */
struct nvml_process_v2 {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance; /* UINT32_MAX: no MIG */
};

struct nvml_process_r535 {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
	unsigned long long used_protected;
};

struct nvml_pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

enum { NVML_SENSOR_GPU = 0 };

#endif
