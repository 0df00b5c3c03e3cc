/*
 * Clocks. Everything in spotter is stamped with clock_mono_ns(): CLOCK_MONOTONIC, nanoseconds, the same
 * for all processes of one host since its boot. Real time is only ever kept in pairs beside it.
 */
#ifndef SPOTTER_BASE_CLOCK_H
#define SPOTTER_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);
uint64_t clock_self_cpu_ns(void); /* CPU time of this process, all threads */

#endif
