/*
 * Where an observation becomes a finding: each threshold once, with its reason. Shares are of the time while
 * training (of the window, or of step time where the line says so).
 */
#ifndef SPOTTER_ANALYZE_THRESHOLDS_H
#define SPOTTER_ANALYZE_THRESHOLDS_H

/* T(name, value, "why") */
#define THRESHOLDS(T)                                                                              \
	T(STEPS_ENOUGH, 20, "percentiles of fewer steps say little")                               \
	T(BUSY_ENOUGH, 0.3, "cores or share of a GPU: a step that computes keeps one busier")      \
	T(TICKS_ENOUGH, 4, "fewer samples of the job cannot tell load from noise")                 \
	T(INPUT_LIMIT, 0.25, "a quarter of each step can be won: nothing else is as cheap to fix") \
	T(INPUT_NOTE, 0.12, "collating a small batch alone takes up to a tenth of a small step")   \
	T(DEMAND_LIMIT, 1.5,                                                                       \
	  "tasks ready per core allowed; with half of them waiting in turn "                       \
	  "every parallel region waits for its slowest thread")                                    \
	T(DELAY_LIMIT, 0.25,                                                                       \
	  "share of ready time spent waiting for a core: below, hidden by slack")                  \
	T(DELAY_NOTE, 0.10, "share of ready time spent waiting for a core that shows in steps")    \
	T(OTHERS_LIMIT, 0.5, "share of ready time waiting while others use the cores: half speed") \
	T(OTHERS_NOTE, 0.25, "share of the job's cores that others use before it shows in steps")  \
	T(THROTTLED_LIMIT, 0.10, "a quota that stops the job a tenth of the time")                 \
	T(GROWTH_CHANCE, 0.01, "a rise as steady as this by chance, one run in a hundred")         \
	T(GROWTH_SHARE, 0.02, "of the peak, in half a run: less is what allocators do")            \
	T(GROWTH_BYTES, 8e6, "in half a run: arenas and caches of a library grow by some MB")      \
	T(GROWTH_EVEN, 0.15, "of the rise in the poorer half: a single allocation is a step")      \
	T(GROWTH_TO_DISK, 0.7, "of the rise that reads from disk explain: pages of mapped files")  \
	T(MEMORY_NEAR, 0.90, "of the limit: one larger batch or one more worker ends the run")     \
	T(MEMORY_AT, 0.97, "of the limit: reclaim has begun")                                      \
	T(HOST_AVAILABLE, 0.04, "of the host's memory left: the killer may strike anybody")        \
	T(SWAP_RATE, 1e6, "bytes per s in or out: 250 pages, each may stall a step")               \
	T(FAULT_S, 0.0001, "s that a fault from a fast disk takes: an estimate")                   \
	T(SWAP_LIMIT, 0.10, "share of time stalled for memory that limits a run")                  \
	T(SWAP_PRESSURE, 0.03, "share of time stalled for memory while swapping")                  \
	T(IO_PRESSURE, 0.15, "share of time some task waited for storage")                         \
	T(IO_BYTES, 1e6, "bytes per s from and to storage by the job: less is a log file")         \
	T(IO_FAULTS, 20, "major faults per s: each waits for a disk")                              \
	T(IO_OWN, 0.3, "of the host's disk traffic is the job's: else others make the pressure")   \
	T(PAUSE_LIMIT, 0.10, "share of training in pauses: more than most tuning can win")         \
	T(PAUSE_NOTE, 0.03, "share of training in pauses worth a line")                            \
	T(UNEVEN_FACTOR, 1.5, "times the median: steps this slow are no usual noise")              \
	T(UNEVEN_LIMIT, 0.12, "share of step time that slow steps add to the usual one")           \
	T(UNEVEN_NOTE, 0.05, "share of step time that slow steps add, worth a line")               \
	T(GPU_WEIGHT, 0.8, "of the compute time is what a GPU usually saves: rank it so")

enum {
#define T(name, value, why) TH_##name,
	THRESHOLDS(T)
#undef T
		TH__COUNT
};

struct threshold {
	const char *name;
	double value;
	const char *why;
};
extern const struct threshold thresholds[TH__COUNT];

static inline double threshold(int th)
{
	return thresholds[th].value;
}

#endif
