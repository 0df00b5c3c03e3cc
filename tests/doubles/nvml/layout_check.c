/*
 * The layouts of src/sources/nvml_abi.h against NVIDIA's own nvml.h: compiles where they agree. Built by
 * tests/e2e/test_nvml_double.py, where that header is installed.
 */
#include <nvml.h>
#include <stddef.h>

#include "sources/nvml_abi.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define SAME_PLACE(ours, a, theirs, b)                                             \
	_Static_assert(offsetof(ours, a) == offsetof(theirs, b) &&                 \
			       sizeof(((ours *)0)->a) == sizeof(((theirs *)0)->b), \
		       #ours "." #a)
#define SAME_CODE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

SAME_SIZE(nvml_return, nvmlReturn_t);
SAME_SIZE(struct nvml_device *, nvmlDevice_t);

SAME_SIZE(struct nvml_utilization, nvmlUtilization_t);
SAME_PLACE(struct nvml_utilization, gpu, nvmlUtilization_t, gpu);
SAME_PLACE(struct nvml_utilization, memory, nvmlUtilization_t, memory);

SAME_SIZE(struct nvml_memory, nvmlMemory_t);
SAME_PLACE(struct nvml_memory, total, nvmlMemory_t, total);
SAME_PLACE(struct nvml_memory, free, nvmlMemory_t, free);
SAME_PLACE(struct nvml_memory, used, nvmlMemory_t, used);

SAME_SIZE(struct nvml_memory_v2, nvmlMemory_v2_t);
SAME_PLACE(struct nvml_memory_v2, version, nvmlMemory_v2_t, version);
SAME_PLACE(struct nvml_memory_v2, total, nvmlMemory_v2_t, total);
SAME_PLACE(struct nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
SAME_PLACE(struct nvml_memory_v2, free, nvmlMemory_v2_t, free);
SAME_PLACE(struct nvml_memory_v2, used, nvmlMemory_v2_t, used);
SAME_CODE(NVML_MEMORY_V2, nvmlMemory_v2);

SAME_SIZE(struct nvml_process_v1, nvmlProcessInfo_v1_t);
SAME_PLACE(struct nvml_process_v1, pid, nvmlProcessInfo_v1_t, pid);
SAME_PLACE(struct nvml_process_v1, used, nvmlProcessInfo_v1_t, usedGpuMemory);
SAME_SIZE(struct nvml_process_v2, nvmlProcessInfo_v2_t);
SAME_PLACE(struct nvml_process_v2, pid, nvmlProcessInfo_v2_t, pid);
SAME_PLACE(struct nvml_process_v2, used, nvmlProcessInfo_v2_t, usedGpuMemory);
SAME_PLACE(struct nvml_process_v2, gpu_instance, nvmlProcessInfo_v2_t, gpuInstanceId);
SAME_PLACE(struct nvml_process_v2, compute_instance, nvmlProcessInfo_v2_t, computeInstanceId);

SAME_SIZE(struct nvml_pci_info, nvmlPciInfo_t);
SAME_PLACE(struct nvml_pci_info, bus, nvmlPciInfo_t, bus);
SAME_PLACE(struct nvml_pci_info, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME_PLACE(struct nvml_pci_info, bus_id, nvmlPciInfo_t, busId);

SAME_CODE(NVML_OK, NVML_SUCCESS);
SAME_CODE(NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME_CODE(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME_CODE(NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME_CODE(NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME_CODE(NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_CODE(NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_CODE(NVML_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME_CODE(NVML_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME_CODE(NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_CODE(NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME_CODE(NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME_CODE(NVML_OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM);
SAME_CODE(NVML_LIB_RM_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_CODE(NVML_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_CODE(NVML_UNKNOWN, NVML_ERROR_UNKNOWN);
SAME_CODE(NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);

int main(void)
{
	return 0;
}
