/*
 * Why no GPU is shown, in words for people: what the machine has (PCI bus, drivers, DRM cards) and what would
 * make it visible. Looks at files only.
 */
#ifndef SPOTTER_SOURCES_GPU_REASON_H
#define SPOTTER_SOURCES_GPU_REASON_H

#include "base/buf.h"

struct gpu_facts {
	int nvidia, amd,
		intel; /* display or compute devices of the vendor on the PCI bus or as DRM card */
	int nvidia_driver; /* is its kernel driver loaded? */
};

void gpu_facts_read(struct gpu_facts *ret, const char *proc_root, const char *sys_root);

/* One sentence, no full stop; failure: what loading or starting NVML said, NULL if it was just not found. */
void gpu_reason(struct buf *out, const struct gpu_facts *facts, const char *failure);

#endif
