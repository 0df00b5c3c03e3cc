/* Clocks; see clock.h. */
#include "base/clock.h"

#include <time.h>

static uint64_t now_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

uint64_t clock_self_cpu_ns(void)
{
	return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}
