/*
 * Sources: what is sampled. Each is one const table of functions in a file of its own; sources.c lists them
 * in the order in which they are opened and sampled. Adding one is a new file and one line there.
 *
 * A source opens its kernel files once, keeps the descriptors, makes its entities and series, and at each tick
 * puts what it reads into the writer. What cannot be read is a gap with its reason, never a zero. A source
 * never blocks: what may hang (vendor libraries) runs on a thread of the source's own.
 */
#ifndef SPOTTER_SOURCES_SOURCE_H
#define SPOTTER_SOURCES_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "recording/recording.h"

struct jobset;

/* What a source is given; valid until its close. */
struct source_env {
	struct rec_writer *w;
	const char *proc_root;   /* "/proc"; tests point it at fixture trees */
	const char *sys_root;    /* "/sys" */
	uint64_t interval_ns;    /* between ticks */
	uint32_t host;           /* entity of the host */
	uint32_t job;            /* entity of the job; 0: no job is watched */
	pid_t job_pid;           /* the command (or what was attached to); 0: none */
	pid_t recorder_pid;      /* ours: subreaper, parent of the job */
	struct jobset *jobset;   /* pids of the job: filled by the job source, read by others */
	bool all_processes;      /* sample every process of the host, not only the job's */
	bool threads;            /* also sample single threads of the job */
	const char *task_reader; /* "auto", "bpf" or "proc" */
};

struct source {
	const char *name;  /* "host-cpu": one word, for doctor and --without */
	const char *help;  /* one line */
	const char *needs; /* what must be there, for doctor: "/proc/stat" */

	/*
	 * Can it work here, and how well? 0: yes. -errno: no. In both cases one sentence is added to why:
	 * what was found, and if not, what would make it work. Leaves nothing behind. Never NULL.
	 */
	int (*probe)(const struct source_env *env, struct buf *why);

	/*
	 * Make entities and series, open files. 0 and *ret_state (not NULL), or -errno and e (the source is
	 * then left out, and the words are kept in the recording as a notice). Never NULL.
	 */
	int (*open)(const struct source_env *env, void **ret_state, struct err *e);

	/* Put this tick's values; called between rec_tick_begin and rec_tick_end. Never NULL. */
	void (*sample)(void *state, uint64_t t_ns);

	/*
	 * The recorder is about to reap a dead child (still a zombie with its /proc entry), and then has reaped
	 * it; ru also counts everything that child had reaped. Either may be NULL.
	 */
	void (*before_reap)(void *state, pid_t pid);
	void (*after_reap)(void *state, pid_t pid, const struct rusage *ru);

	/* Release; state as open gave it. Never NULL. */
	void (*close)(void *state);
};

/* NULL-terminated, in the order of opening and sampling. */
extern const struct source *const sources[];

#endif
