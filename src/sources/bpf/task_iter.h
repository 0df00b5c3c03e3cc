/*
 * What the BPF task iterator writes, for both sides: one task_record_process per process and one
 * task_record_thread for each of its threads but the main one. All values are the kernel's own, raw.
 */
#ifndef SPOTTER_SOURCES_BPF_TASK_ITER_H
#define SPOTTER_SOURCES_BPF_TASK_ITER_H

/* What the program is told before it is loaded: its only constants. */
struct task_iter_constants {
	unsigned int recorder;  /* the children of this pid are of the job; 0: nobody's */
	unsigned int job;       /* so is this pid; 0: none */
	unsigned int pid_level; /* depth of the reader's pid namespace */
	unsigned int all;       /* write records of all processes */
};

#define TI_BITS 32768 /* of each bitmap: pids fall together that differ by so many */

/*
 * What is said from pass to pass, in memory that both sides see. A process with one thread that did not run
 * since the pass before is left out: it only gets its bit in present, and is counted in skipped and skipped_sum, so
 * that who knows all processes can tell which of them are gone, and whether that is right.
 */
struct task_iter_pass {
	unsigned long long since;   /* in: leave out who has not run from then on */
	unsigned int number, whole; /* in: of the pass; leave nobody out */
	unsigned long long now;     /* out: when it began, in the scheduler's clock */
	unsigned long long skipped, skipped_sum;
	unsigned long long
		running[2]
		       [TI_BITS / 64]; /* who was on a CPU, or ready, at this pass and the last */
	unsigned long long member[TI_BITS / 64];  /* who may be a member */
	unsigned long long present[TI_BITS / 64]; /* out: who was left out */
};

/* What skipped_sum adds up for each process. */
static inline unsigned long long task_iter_mix(unsigned int key)
{
	unsigned long long x = key * 0x9e3779b97f4a7c15ull;
	return x ^ x >> 29;
}

/* Order of the sums in both records. */
enum {
	TI_UTIME, /* ns, as counted by the timer tick */
	TI_STIME,
	TI_RUNTIME, /* ns, exact */
	TI_VOLUNTARY,
	TI_INVOLUNTARY,
	TI_MINOR_FAULTS,
	TI_MAJOR_FAULTS,
	TI_RCHAR,
	TI_WCHAR,
	TI_READ_BYTES,
	TI_WRITE_BYTES,
	TI_SUMS
};

enum { TI_C_UTIME, TI_C_STIME, TI_C_VOLUNTARY, TI_C_INVOLUNTARY, TI_C_MINOR, TI_C_MAJOR, TI_C };

enum { TI_PROCESS = 1, TI_THREAD = 2 }; /* record.kind */

/* record.flags */
enum {
	TI_JOB = 1,      /* belongs to the job */
	TI_KERNEL = 2,   /* a kernel thread */
	TI_ZOMBIE = 4,   /* has ended; of a process: its main thread has */
	TI_AUTOREAP = 8, /* ignores SIGCHLD */
	TI_MEMORY = 16,  /* rss and swapped are known, */
	TI_EXACT = 32,   /* to the page */
};

struct task_record_thread {
	unsigned short kind, flags;
	unsigned int pid, tid; /* as the reader's pid namespace numbers them */
	unsigned int key;      /* of the process in the map of members */
	char comm[16];
	unsigned long long run_delay; /* of this thread, ns */
	long long rss, swapped;       /* pages */
	unsigned long long sum[TI_SUMS];
};

struct task_record_process {
	struct task_record_thread t; /* sum: of all threads that died, and the main one */
	unsigned int ppid, nthreads;
	unsigned long long start; /* since boot, ns */
	unsigned long long main_utime, main_stime, main_runtime;
	unsigned long long said_utime, said_stime; /* what /proc said last: it never goes back */
	unsigned long long peak_rss;               /* pages; 0: not known */
	unsigned long long child[TI_C];
};

#endif
