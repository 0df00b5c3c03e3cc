/*
 * Tasks: the processes and threads that are watched, and the readers that say what they used.
 *
 * A reader is one const table of functions; there are two, over /proc and over a BPF task iterator, and
 * both fill the same struct task with the same numbers. struct tasks owns the table of processes and the reader
 * that is in use; with "auto" it begins with /proc and changes to BPF once that has been shown to be cheaper.
 *
 * Identity of a process is (pid, start time): pids come again. Pids are those of the reader's own pid namespace.
 * What a process used is kept as the kernel counts it: `own` (all its threads, dead ones too) and `reaped`
 * (what its dead children had used, once it waited for them). Knows nothing of recordings.
 * One thread at a time. Private to src/sources/ and its tests.
 */
#ifndef SPOTTER_SOURCES_TASKS_H
#define SPOTTER_SOURCES_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

#define TASK_COMM    16       /* with its NUL */
#define TASK_TICK_NS 10000000 /* /proc counts in 100ths of a second, whatever the kernel's HZ */

enum task_counter {
	TASK_USER,      /* ns */
	TASK_SYSTEM,    /* ns */
	TASK_RUN_DELAY, /* ns; never in `reaped`; of dead threads as last seen */
	TASK_MINOR_FAULTS,
	TASK_MAJOR_FAULTS,
	TASK_READ,         /* bytes; the four of I/O: `own` holds what dead children did as well */
	TASK_WRITTEN,      /* bytes */
	TASK_DISK_READ,    /* bytes */
	TASK_DISK_WRITTEN, /* bytes, also those that were truncated before they reached the disk */
	TASK_VOLUNTARY,
	TASK_INVOLUNTARY,
	TASK_COUNTERS
};

/* Bits of task.have, task.fresh and task.denied: 1 << counter, and these. */
enum {
	TASK_HAS_RSS = 1 << TASK_COUNTERS,
	TASK_HAS_SWAPPED = 1 << (TASK_COUNTERS + 1),
	TASK_HAS_IO =
		1 << TASK_READ | 1 << TASK_WRITTEN | 1 << TASK_DISK_READ | 1 << TASK_DISK_WRITTEN,
};

/* One thread of a process. A process with a single one need not list it. */
struct task_thread {
	pid_t tid;
	uint32_t seen; /* pass in which it was last there */
	char comm[TASK_COMM];
	int64_t user, system, run_delay; /* ns; user and system only if threads are asked for */
	int64_t voluntary, involuntary;
	uint64_t runtime, runs;     /* of the /proc reader: as last read, to see whether it ran */
	int fd[3];                  /* of the /proc reader: kept descriptors, or -1 */
	uint32_t entity, series[3]; /* of the table's owner; entity 0: none yet */
};

struct task {
	pid_t pid, ppid;
	uint64_t start; /* since boot, in TASK_TICK_NS */
	char comm[TASK_COMM];
	char state;       /* as in /proc/PID/stat; 0: not known */
	bool job;         /* belongs to the job */
	bool kernel;      /* a kernel thread */
	bool renamed;     /* comm is new since the owner last cleared this */
	bool stale;       /* set by the owner: read it all before long, even if it does not run */
	bool gone;        /* has ended: only listed until the owner sweeps */
	bool autoreap;    /* ignores SIGCHLD: its children's account is lost with them */
	uint32_t changed; /* pass in which it was last in table.changed */

	unsigned have;   /* own[i] or gauge was read at least once */
	unsigned fresh;  /* ... and holds for this pass */
	unsigned denied; /* could not be read: no permission */
	unsigned reaped_have;
	int64_t own[TASK_COUNTERS];
	int64_t reaped[TASK_COUNTERS];
	int64_t rss, peak_rss, swapped; /* bytes; peak_rss 0: not known */
	int64_t nthreads;

	struct task_thread *threads; /* by tid */
	size_t nlisted, cap_listed;
	struct task_thread *ended; /* threads with an entity that are gone: for the owner */
	size_t nended, cap_ended;
	int64_t dead_delay, dead_voluntary, dead_involuntary; /* of threads that are gone */

	void *reader; /* the reader's own, or NULL */
	uint32_t key; /* the BPF reader's name for it */
	void *owner;  /* of the owner of the table */
};

struct task_table {
	struct task **list; /* parents before their children, as far as they were born so */
	size_t n, cap;
	size_t ngone;          /* of those in the list */
	struct task **changed; /* in this pass: new, or something was read anew */
	size_t nchanged, cap_changed;
	struct map by_pid; /* pid -> struct task *, those that live */
	uint32_t pass;
};

struct task_table *task_table_new(void); /* NULL: out of memory */
void task_table_free(
	struct task_table *t); /* the tasks too, but not their reader's and owner's part */
void task_table_pass(struct task_table *t); /* a new pass: nothing has changed yet */
struct task *task_find(const struct task_table *t, pid_t pid); /* NULL if there is none */
/* Add a process; whoever had the pid before is no longer found by it. NULL: out of memory. */
struct task *task_add(struct task_table *t, pid_t pid, uint64_t start);
/* It is gone: not found by its pid any more, but stays in the list until task_table_sweep. */
void task_gone(struct task_table *t, struct task *task);
/* Put it into t->changed, once per pass. */
void task_changed(struct task_table *t, struct task *task);
/* Take those that are gone and for which drop() holds out of the list and free them. */
void task_table_sweep(struct task_table *t, bool (*drop)(struct task *, void *), void *arg);

/* The thread with this tid, added if new; NULL: out of memory. Moves when others are added. */
struct task_thread *task_thread_get(struct task *task, pid_t tid);
/* Forget the threads not seen in this pass; their counts go to task->dead_*. */
void task_threads_sweep(struct task *task, uint32_t pass);

/*
 * Divide runtime (exact) into user and system in the ratio of the ticks that were counted, as the kernel does it
 * for /proc/PID/stat. *user and *system hold what was said before (0 at first) and never shrink.
 */
void task_split_cpu(uint64_t utime, uint64_t stime, uint64_t runtime, int64_t *user,
		    int64_t *system);

struct tasks_config {
	const char *proc_root;
	uint64_t interval_ns; /* between passes */
	pid_t recorder_pid;   /* its children belong to the job; 0: nobody's */
	pid_t job_pid;        /* so does this one, with all that descends from it; 0: none */
	bool all;             /* every process of the host, not only the job's */
	bool threads;         /* CPU of single threads, too */
	const char *reader;   /* "auto", "proc" or "bpf" */
};

struct task_reader {
	const char *name, *help;
	/* Can it work here? 0 or -errno, and a sentence added to why. Leaves nothing behind. */
	int (*probe)(const struct tasks_config *config, struct buf *why);
	int (*open)(const struct tasks_config *config, void **ret_state, struct err *e);
	/*
	 * One pass, after task_table_pass: bring every process that lives up to date, add those that are new, call
	 * task_changed for both, and task_gone for those that ended. Who slept since the last pass need
	 * not be touched. 0 or -errno if nothing could be read at all.
	 */
	int (*read)(void *state, struct task_table *t);
	void (*forget)(void *state, struct task *task); /* release task->reader and threads' fds */
	void (*close)(void *state);
	/* CPU time that it used in other processes than this one; NULL: none. */
	uint64_t (*helper_ns)(const void *state);
};

extern const struct task_reader task_reader_proc;
extern const struct task_reader task_reader_bpf; /* one that says no, where BPF is not built in */
extern const struct task_reader *const task_readers[]; /* NULL-terminated, the cheapest first */

struct tasks {
	struct tasks_config config;
	struct task_table *table;
	const struct task_reader *reader;
	void *state;
	int loadavg;      /* kept descriptor, or -1 */
	bool may_change;  /* auto, and BPF has not failed yet */
	uint64_t paid_ns; /* what /proc cost more than BPF would have, so far */
	uint64_t cost_ns; /* CPU time of the last pass */
};

/* Open the reader that config asks for. 0 or -errno with words. config's strings must stay. */
int tasks_open(const struct tasks_config *config, struct tasks **ret, struct err *e);
/* One pass; afterwards those that ended are gone, but still listed. 0 or -errno. */
int tasks_read(struct tasks *t);
/* Free those that are gone and for which drop() holds, with what the reader holds for them. */
void tasks_sweep(struct tasks *t, bool (*drop)(struct task *, void *), void *arg);
void tasks_close(struct tasks *t); /* NULL is fine */

/*
 * The last words of a dead process that was not reaped yet: I/O and run delay from /proc, into task; for a task
 * that was never read (have == 0) also name, parent and start. 0 or -errno.
 */
int task_read_zombie(const char *proc_root, struct task *task);

#endif
