/*
 * What the files of /proc/PID say: pure functions over NUL-terminated text. They allocate nothing, believe
 * nothing (a process may call itself anything), and never read behind the NUL.
 * Private to src/sources/, its tests and the fuzz target.
 */
#ifndef SPOTTER_SOURCES_TASKS_PARSE_H
#define SPOTTER_SOURCES_TASKS_PARSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* /proc/PID/stat. Times in TASK_TICK_NS. */
struct task_stat {
	pid_t pid, ppid;
	char comm[16];
	char state;
	bool kernel; /* a kernel thread */
	uint64_t minor_faults, reaped_minor_faults, major_faults, reaped_major_faults;
	uint64_t user, system, reaped_user, reaped_system;
	uint64_t nthreads, start;
};
bool task_parse_stat(const char *text, struct task_stat *ret);

/* /proc/PID/statm: resident pages. */
bool task_parse_statm(const char *text, uint64_t *ret_rss_pages);

/* /proc/PID/io */
struct task_io {
	uint64_t read, written, disk_read,
		disk_written; /* not less what was cancelled: a counter never falls */
};
bool task_parse_io(const char *text, struct task_io *ret);

/* /proc/PID/task/TID/schedstat: ns on a CPU, ns waiting for one, times it was put on one. */
bool task_parse_schedstat(const char *text, uint64_t *ret_run, uint64_t *ret_delay,
			  uint64_t *ret_runs);

/* /proc/PID/status, or that of a thread. What is not there is 0 in `have`. */
struct task_status {
	bool have_memory, have_switches;
	uint64_t rss, peak_rss, swapped; /* bytes */
	uint64_t voluntary, involuntary;
	bool ignores_sigchld;
	unsigned pid_level; /* pid namespaces between the reader of /proc and the process */
};
void task_parse_status(const char *text, struct task_status *ret);

/* The next number of a list separated by blanks (/proc/PID/task/TID/children); false at the end. */
bool task_parse_child(const char **p, pid_t *ret);

#endif
