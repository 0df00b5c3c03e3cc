/*
 * The inside of the job source: the source itself (job.c), the job's account (job_account.c), what is recorded of
 * its processes (job_record.c), and their proportional memory (job_pss.c).
 */
#ifndef SPOTTER_SOURCES_JOB_H
#define SPOTTER_SOURCES_JOB_H

#include <sys/resource.h>

#include "sources/jobset.h"
#include "sources/source.h"
#include "sources/tasks.h"

#define JOB_SERIES 16 /* most series of one process */

enum job_fate {
	JOB_LIVES,
	JOB_VANISHED, /* somebody else waited for it, or nobody: who has its account is seen at the next tick */
	JOB_SETTLED, /* its account is in that of another, or in the job's; to be freed */
};

/* task->owner of every process. */
struct job_process {
	struct task
		*parent; /* in the job and in the table; NULL: the recorder's own, or not known */
	bool orphaned;   /* its parent is gone, and the new one not known yet */
	enum job_fate fate;
	/*
	 * What its dead children used and the kernel does not say of it: lost is in nobody's books (SIGCHLD is
	 * ignored), held is in the kernel's, but not shown. As last seen.
	 */
	int64_t lost[TASK_COUNTERS], held[TASK_COUNTERS];
	int64_t faults[3];      /* of its dead children: now, one and two ticks ago */
	int64_t claimed_faults; /* of those, found to be of children that vanished */
	bool noted, told_lost;

	uint32_t entity; /* 0: not made */
	uint32_t series[JOB_SERIES];
	uint32_t pss_series;
	bool has_pss_series;
	uint32_t pss_round; /* in which pss was read */
	int64_t pss;
};

/* The job's own series. */
enum { JOB_RSS = TASK_COUNTERS, JOB_SWAPPED, JOB_PSS, JOB_THREADS, JOB_PROCESSES, JOB_SUMS };

/* Proportional memory: rounds over all processes, within a budget of time. */
struct job_pss {
	bool off; /* the kernel does not tell */
	bool running, denied;
	uint32_t round;
	uint64_t started_ns;
	int64_t budget_ns;
};

struct job {
	struct source_env env;
	struct tasks *tasks;
	uint64_t boot_to_mono_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC */
	const struct task_reader *said_reader;

	int64_t dead[TASK_COUNTERS];       /* used by those whose account was closed */
	int64_t total[TASK_COUNTERS];      /* of all of the job, at the last tick */
	int64_t put[TASK_COUNTERS];        /* as recorded: never goes back */
	int64_t max_rss;                   /* of one process, bytes */
	uint64_t processes;                /* that were seen */
	uint64_t lost_children, denied_io; /* processes */
	bool told_denied;

	/* A child of the recorder that is about to be reaped, and was never in the table. */
	struct task unknown;
	uint32_t series[JOB_SUMS];
	struct job_pss pss;
};

static inline struct job_process *job_process(const struct task *task)
{
	return task->owner;
}

/* ------------------------------------------------------------------------------------ job_account.c */

/* What a process and all children that it waited for used. */
int64_t job_total_of(const struct task *task, int counter);
/* After each pass: close the accounts of those who vanished, find parents, add all up into j->total. */
void job_account(struct job *j);
/* The recorder reaped it (a task of the table, or j->unknown): its account is ru. */
void job_account_reaped(struct job *j, struct task *task, const struct rusage *ru);

/* ------------------------------------------------------------------------------------- job_record.c */

int job_record_open(struct job *j); /* the job's own series; 0 or -errno */
/* Make entity and series of a process that has none. */
void job_record_process(struct job *j, struct task *task, uint64_t t_ns);
void job_record_end(struct job *j, struct task *task, uint64_t t_ns);
void job_record_tick(struct job *j, uint64_t t_ns); /* put everything */
void job_record_totals(struct job *j);              /* the facts at the end */
void job_notice(struct job *j, const struct task *task, const char *kind, const char *text);

/* ---------------------------------------------------------------------------------------- job_pss.c */

void job_pss_open(struct job *j);
void job_pss_tick(struct job *j, uint64_t t_ns);

#endif
