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

enum job_fate {
	JOB_LIVES,
	JOB_VANISHED, /* somebody else waited for it, or nobody: who has its account is seen at the next tick */
	JOB_SETTLED, /* its account is in that of another, or in the job's; to be freed */
};

/* One series of one process: what to put at each tick, until it changes. */
enum job_put_kind { JOB_PUT_NOTHING, JOB_PUT_VALUE, JOB_PUT_DENIED };
struct job_put {
	int64_t value;
	uint32_t series;
	uint16_t row, kind;
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
	uint32_t noted;         /* pass of faults[0]; 0: never */
	int64_t claimed_faults; /* of those, found to be of children that vanished */
	bool told_lost;

	int64_t counted[TASK_COUNTERS]; /* its part of job.live */
	int64_t rss, swapped, nthreads; /* its part of the sums of these */
	bool counts, denied;

	uint32_t entity; /* 0: not made */
	size_t puts;     /* its place in job.puts, in the order of rows */
	unsigned nputs;
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

	int64_t dead[TASK_COUNTERS];                /* used by those whose account was closed */
	int64_t live[TASK_COUNTERS];                /* by those that live, kept up as they change */
	int64_t total[TASK_COUNTERS];               /* of all of the job, at the last tick */
	int64_t put[TASK_COUNTERS];                 /* as recorded: never goes back */
	int64_t rss, swapped, nthreads, nprocesses; /* sums over those that live */
	size_t nvanished; /* whose account will be closed at the next tick */
	unsigned have;    /* bits: known of some process */
	unsigned behind;  /* known of some process, but not at this tick */
	size_t ndenied;   /* processes of the job with something that may not be read */
	int64_t max_rss;  /* of one process, bytes */
	uint64_t processes, lost_children; /* that were seen; whose account was lost */
	bool told_denied;

	struct job_put *puts;
	size_t nputs, cap_puts, nholes;

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
/* After each pass: close the accounts of those who vanished, find parents, bring j->total up to date. */
void job_account(struct job *j);
/* It does not live any more: its part is taken off the sums. */
void job_account_leaves(struct job *j, struct task *task);
/* The recorder reaped it (a task of the table, or j->unknown): its account is ru. */
void job_account_reaped(struct job *j, struct task *task, const struct rusage *ru);

/* ------------------------------------------------------------------------------------- job_record.c */

int job_record_open(struct job *j); /* the job's own series; 0 or -errno */
void job_record_changed(struct job *j, struct task *task,
			uint64_t t_ns); /* make or renew what is put */
void job_record_end(struct job *j, struct task *task, uint64_t t_ns);
void job_record_tick(struct job *j, uint64_t t_ns); /* put everything */
void job_record_totals(struct job *j);              /* the facts at the end */
void job_notice(struct job *j, const struct task *task, const char *kind, const char *text);

/* ---------------------------------------------------------------------------------------- job_pss.c */

void job_pss_open(struct job *j);
void job_pss_tick(struct job *j, uint64_t t_ns);

#endif
