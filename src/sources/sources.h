/* The sources, one per file; private to src/sources/. sources.c puts them in order. */
#ifndef SPOTTER_SOURCES_SOURCES_H
#define SPOTTER_SOURCES_SOURCES_H

#include "sources/source.h"

extern const struct source source_job;
extern const struct source source_host_cpu;
extern const struct source source_host_pressure;
extern const struct source source_host_memory;
extern const struct source source_host_disk;
extern const struct source source_host_net;
extern const struct source source_host_frequency;
extern const struct source source_thermal;
extern const struct source source_energy;
extern const struct source source_cgroup;
extern const struct source source_nvml;

#endif
