/* NVML behind names of our own; see nvml_lib.h. */
#include "sources/nvml_lib.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sources/dl.h"

#define SLOT(field) offsetof(struct nvml_lib, field)

static const struct dl_symbol symbols[] = {
	{ SLOT(init), "nvmlInit_v2", true },
	{ SLOT(init), "nvmlInit", true },
	{ SLOT(shutdown), "nvmlShutdown", false },
	{ SLOT(driver_version), "nvmlSystemGetDriverVersion", false },
	{ SLOT(count), "nvmlDeviceGetCount_v2", true },
	{ SLOT(count), "nvmlDeviceGetCount", true },
	{ SLOT(by_index), "nvmlDeviceGetHandleByIndex_v2", true },
	{ SLOT(by_index), "nvmlDeviceGetHandleByIndex", true },
	{ SLOT(name), "nvmlDeviceGetName", false },
	{ SLOT(uuid), "nvmlDeviceGetUUID", false },
	{ SLOT(pci), "nvmlDeviceGetPciInfo_v3", false },
	{ SLOT(memory), "nvmlDeviceGetMemoryInfo", false },
	{ SLOT(memory_v2), "nvmlDeviceGetMemoryInfo_v2", false },
	{ SLOT(utilization), "nvmlDeviceGetUtilizationRates", false },
	{ SLOT(power), "nvmlDeviceGetPowerUsage", false },
	{ SLOT(temperature), "nvmlDeviceGetTemperature", false },
	{ SLOT(processes), "nvmlDeviceGetComputeRunningProcesses_v3", false },
	{ SLOT(processes), "nvmlDeviceGetComputeRunningProcesses_v2", false },
	{ SLOT(processes_v1), "nvmlDeviceGetComputeRunningProcesses", false },
	{ 0, NULL, false },
};

int nvml_lib_open(struct nvml_lib *lib, struct err *e)
{
	memset(lib, 0, sizeof(*lib));
	return dl_open(NVML_SONAME, symbols, lib, &lib->handle, e);
}

void nvml_lib_close(struct nvml_lib *lib)
{
	if (lib->handle)
		dlclose(lib->handle);
	lib->handle = NULL;
}

static const struct {
	nvml_return code;
	const char *text;
} reasons[] = {
	{ NVML_NOT_SUPPORTED, "not supported" },
	{ NVML_NO_PERMISSION, "no permission" },
	{ NVML_DRIVER_NOT_LOADED, "the driver is not loaded" },
	{ NVML_TIMEOUT, "the driver did not answer" },
	{ NVML_LIBRARY_NOT_FOUND, "a library of the driver was not found" },
	{ NVML_FUNCTION_NOT_FOUND, "this driver does not have it" },
	{ NVML_GPU_IS_LOST, "the GPU is lost" },
	{ NVML_RESET_REQUIRED, "the GPU needs a reset" },
	{ NVML_OPERATING_SYSTEM, "the operating system blocks the GPU" },
	{ NVML_LIB_RM_VERSION_MISMATCH, "library and driver are of different versions" },
	{ NVML_UNKNOWN, "the driver reports an unknown error" },
};

const char *nvml_reason(nvml_return code)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].code == code)
			return reasons[i].text;
	return "the driver reports an error";
}

/*
 * The header's version value first, then the plain number that some drivers want; a driver that knows
 * neither has the first version of the call.
 */
static nvml_return read_memory(const struct nvml_lib *lib, struct nvml_device *device,
			       uint64_t *ret_total, uint64_t *ret_used)
{
	static const unsigned versions[] = { NVML_MEMORY_V2, 2 };
	nvml_return rc = NVML_FUNCTION_NOT_FOUND;
	for (size_t i = 0; i < 2 && lib->memory_v2; i++) {
		struct nvml_memory_v2 m = { .version = versions[i] };
		rc = lib->memory_v2(device, &m);
		if (rc == NVML_OK) {
			*ret_total = m.total;
			*ret_used = m.used;
			return rc;
		}
		if (rc != NVML_INVALID_ARGUMENT && rc != NVML_ARGUMENT_VERSION_MISMATCH)
			break;
	}
	if (lib->memory) {
		struct nvml_memory m = { 0 };
		rc = lib->memory(device, &m);
		if (rc == NVML_OK) {
			*ret_total = m.total;
			*ret_used = m.used;
		}
	}
	return rc;
}

static void start_gpu(const struct nvml_lib *lib, unsigned index, struct nvml_gpu *gpu)
{
	struct nvml_pci_info pci = { 0 };
	uint64_t used;
	memset(gpu, 0, sizeof(*gpu));
	gpu->index = index;
	gpu->code = lib->by_index(index, &gpu->device);
	if (gpu->code != NVML_OK) {
		gpu->device = NULL;
		return;
	}
	if (!lib->name || lib->name(gpu->device, gpu->name, sizeof(gpu->name)))
		gpu->name[0] = 0;
	if (!lib->uuid || lib->uuid(gpu->device, gpu->uuid, sizeof(gpu->uuid)))
		gpu->uuid[0] = 0;
	if (lib->pci && !lib->pci(gpu->device, &pci))
		memcpy(gpu->bus_id, pci.bus_id, sizeof(gpu->bus_id));
	gpu->name[sizeof(gpu->name) - 1] = gpu->uuid[sizeof(gpu->uuid) - 1] = 0;
	gpu->bus_id[sizeof(gpu->bus_id) - 1] = 0;
	if (read_memory(lib, gpu->device, &gpu->memory_bytes, &used))
		gpu->memory_bytes = 0;
}

nvml_return nvml_lib_start(const struct nvml_lib *lib, struct nvml_gpu *gpus, unsigned *ret_n)
{
	unsigned n = 0;
	nvml_return rc = lib->init();
	if (rc == NVML_OK)
		rc = lib->count(&n);
	if (rc != NVML_OK)
		return rc;
	if (n > NVML_GPUS_MAX)
		n = NVML_GPUS_MAX;
	for (unsigned i = 0; i < n; i++)
		start_gpu(lib, i, &gpus[i]);
	*ret_n = n;
	return NVML_OK;
}

size_t nvml_process_stride(const unsigned char *bytes, size_t cap, unsigned n, size_t nominal)
{
	static const size_t strides[] = { sizeof(struct nvml_process_v1),
					  sizeof(struct nvml_process_v2),
					  sizeof(struct nvml_process_r535) };
	size_t end = cap;
	while (end && bytes[end - 1] == NVML_POISON)
		end--;
	end = (end + 7) & ~(size_t)7;
	for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++)
		if (end == strides[i] * n)
			return strides[i];
	return nominal;
}

static nvml_return read_processes(const struct nvml_lib *lib, struct nvml_device *device,
				  struct nvml_values *out)
{
	static const size_t widest = sizeof(struct nvml_process_r535);
	unsigned char bytes[NVML_PIDS_MAX * sizeof(struct nvml_process_r535)]
		__attribute__((aligned(8)));
	bool v1 = !lib->processes;
	unsigned n = NVML_PIDS_MAX;
	if (v1 && !lib->processes_v1)
		return NVML_FUNCTION_NOT_FOUND;
	memset(bytes, NVML_POISON, sizeof(bytes));
	nvml_return rc = (v1 ? lib->processes_v1 : lib->processes)(device, &n, bytes);
	out->npids = 0;
	if (rc == NVML_INSUFFICIENT_SIZE) {
		out->processes = n;
		return NVML_OK;
	}
	if (rc != NVML_OK)
		return rc;
	out->processes = n;
	if (!n || n > NVML_PIDS_MAX)
		return NVML_OK;
	size_t nominal = v1 ? sizeof(struct nvml_process_v1) : sizeof(struct nvml_process_v2);
	size_t stride = nvml_process_stride(bytes, sizeof(bytes), n, nominal);
	for (unsigned i = 0; i < n && stride <= widest; i++) {
		unsigned pid;
		memcpy(&pid, bytes + i * stride, sizeof(pid));
		out->pids[out->npids++] = (pid_t)pid;
	}
	return NVML_OK;
}

void nvml_lib_read(const struct nvml_lib *lib, const struct nvml_gpu *gpu, struct nvml_values *ret)
{
	struct nvml_device *d = gpu->device;
	struct nvml_utilization u = { 0 };
	nvml_return *code = ret->code;
	for (int i = 0; i < NVML_VALUES; i++)
		code[i] = d ? NVML_FUNCTION_NOT_FOUND : gpu->code;
	ret->npids = ret->processes = 0;
	if (!d)
		return;
	if (lib->utilization)
		code[NVML_V_UTILIZATION] = lib->utilization(d, &u);
	ret->utilization_percent = u.gpu;
	code[NVML_V_MEMORY] = read_memory(lib, d, &ret->memory_total, &ret->memory_used);
	if (lib->power)
		code[NVML_V_POWER] = lib->power(d, &ret->power_mw);
	if (lib->temperature)
		code[NVML_V_TEMPERATURE] =
			lib->temperature(d, NVML_SENSOR_GPU, &ret->temperature_c);
	code[NVML_V_PROCESSES] = read_processes(lib, d, ret);
}
