/* The tracer that drains the rings in SPOTTER_DIR (ring.c). */
#ifndef SPOTTER_TRACERS_RINGS_H
#define SPOTTER_TRACERS_RINGS_H

#include "tracers/tracer.h"

extern const struct tracer tracer_rings;

#endif
