/*
 * What the host's files of /proc and /sys say: pure functions over NUL-terminated text. They allocate
 * nothing, believe nothing, and never read behind the NUL; what is not there is reported as not there.
 * Private to src/sources/, its tests and the fuzz target.
 *
 * Functions that walk a list of lines take a pointer to the position, move it behind what they used and
 * return false at the end; lines they do not understand are skipped.
 */
#ifndef SPOTTER_SOURCES_HOST_PARSE_H
#define SPOTTER_SOURCES_HOST_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_CPUS_MAX 8192 /* CPU numbers from here on are taken for garbage */

/* v * by as int64_t, INT64_MAX where it does not fit. */
int64_t host_scale(uint64_t v, uint64_t by);

/* /proc/stat, the lines "cpu" and "cpuN", which come first. */
enum host_cpu_state {
	HOST_USER,
	HOST_SYSTEM,
	HOST_IDLE,
	HOST_IOWAIT,
	HOST_IRQ,
	HOST_STEAL,
	HOST_STATES
};
struct host_cpu_line {
	int cpu;                     /* -1: the sum of all */
	unsigned have;               /* bit per state: old kernels have fewer columns */
	uint64_t ticks[HOST_STATES]; /* user holds nice and guest; irq holds softirq */
};
bool host_parse_cpu(const char **p, struct host_cpu_line *ret);

/* /proc/schedstat: time tasks were ready but had to wait for a CPU, in ns. */
bool host_parse_schedstat(const char **p, int *ret_cpu, uint64_t *ret_delay_ns);
/* Its first line; versions before 15 count in other units. */
bool host_parse_schedstat_version(const char *text, uint64_t *ret);

/* Lines "key value" or "key: value kB"; one pass for all keys. */
struct host_key {
	const char *key; /* without the colon */
	bool have;
	uint64_t value;
};
void host_parse_keys(const char *text, struct host_key *keys, size_t n);

/* /proc/pressure and *.pressure: total of the line "some" or "full", in us. */
bool host_parse_pressure(const char *text, const char *line, uint64_t *ret_us);

/* "0.52 0.58 ..." -> 0.52; no locale involved. */
bool host_parse_decimal(const char *text, double *ret);

/* /proc/diskstats */
struct host_disk_line {
	const char *name; /* in the text, not terminated */
	size_t name_len;
	uint64_t reads, read_sectors, read_ms, writes, write_sectors, write_ms, busy_ms;
};
bool host_parse_disk(const char **p, struct host_disk_line *ret);

/*
 * By the name alone: is `part` a partition of `disk` ("sda" and "sda1", "nvme0n1" and "nvme0n1p2")? Neither
 * needs to be terminated.
 */
bool host_is_partition(const char *disk, size_t disk_len, const char *part, size_t part_len);

/* /proc/net/dev */
struct host_net_line {
	const char *name;
	size_t name_len;
	uint64_t received, received_errors, received_dropped, sent, sent_errors, sent_dropped;
};
bool host_parse_net(const char **p, struct host_net_line *ret);

/*
 * "0-3,8,10-11" into a bitmap of `words` 64-bit words (cleared first). The number of CPUs, or -EINVAL where
 * the text is something else or names a CPU that does not fit. Empty text is 0 CPUs.
 */
int host_parse_cpulist(const char *text, uint64_t *bits, size_t words);

/*
 * /proc/cpuinfo: mean of its "cpu MHz" lines, in Hz. False if there is none, or if the CPU has no means to
 * measure (flag aperfmperf), since the kernel then prints its nominal clock.
 */
bool host_parse_cpuinfo_hz(const char *text, double *ret_hz);

#endif
