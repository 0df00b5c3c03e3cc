/*
 * All sources, in the order in which they are opened and sampled: the job first, since others ask which
 * processes are its own.
 */
#include "sources/sources.h"

const struct source *const sources[] = {
	&source_job,       &source_host_cpu, &source_host_pressure,  &source_host_memory,
	&source_host_disk, &source_host_net, &source_host_frequency, &source_thermal,
	&source_energy,    &source_cgroup,   &source_nvml,           NULL,
};
