/*
 * What a recording says about a run, computed once: the numbers that analyses weigh and the report shows.
 *
 * Units are base units: seconds, bytes, cores, shares 0..1; the name says which. What is not known is NaN
 * (or -1 for counts), never 0. "While training" means the window [w0, w1): from the first training step
 * after warm-up to the end of the last one, or the whole run where no steps are known.
 */
#ifndef SPOTTER_ANALYZE_FACTS_H
#define SPOTTER_ANALYZE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/stats.h"
#include "recording/recording.h"

#define FACTS_GPUS_MAX 64

#define FACT_NONE INT32_MIN /* an epoch or batch that is not known */

/* One step of the leading process (the one with the most training steps). Small: there may be millions. */
struct fact_step {
	uint64_t t0_ns, t1_ns;
	int64_t index;      /* REC_NONE where not known */
	double dur_s;       /* NaN: its begin is not known (the first line of a log) */
	float wait_s;       /* for the next batch; NaN not known */
	float checkpoint_s; /* of dur: writing checkpoints */
	float gc_s;         /* of dur: collector pauses */
	int32_t epoch, batch;
};

struct facts_run {
	const char *command_line; /* NULL if not known; owned by the reader */
	double wall_s;
	double interval_s;     /* between ticks */
	bool has_exit;         /* exit_code and signal mean something */
	int exit_code, signal; /* signal 0: none */
	bool live;             /* still being recorded */
	bool cut;              /* the recorder died before the end */
	bool out_of_memory;    /* the kernel killed something of the job for lack of memory */
	uint64_t damaged;      /* chunks that could not be read */
	double lost_records;   /* dropped on the way; NaN not known */
};

struct facts_steps {
	struct fact_step *v; /* training steps in order of time */
	size_t n, warmup;    /* the first `warmup` of them are left out of all below */
	size_t timed;        /* of the others, those whose duration is known */
	uint32_t entity;     /* of the leading process */
	int processes;       /* processes with training steps */
	double p50_s, p95_s, p99_s, max_s;
	size_t max_at;                             /* index into v of the slowest */
	double total_s;                            /* sum of all durations */
	double per_s, samples_per_s;               /* over the window; samples of all processes */
	double batch;                              /* usual batch size */
	double wait_share, wait_p50_s, wait_p95_s; /* of step time; NaN: not known */
	int64_t eval_n;
	double eval_p50_s, eval_total_s;
	double epochs;  /* finished training epochs */
	double epoch_s; /* median */
};

/* Pauses: checkpoints, collector. share is of the window. */
struct facts_pauses {
	int64_t n; /* -1: not known (nobody was there to see) */
	double total_s, median_s, max_s, share;
	double bytes; /* checkpoints only */
};

struct facts_cpu {
	double user_s, system_s;
	double cores_mean;    /* over the wall time */
	double cores_allowed; /* by affinity and quota */
	double host_cores;
	double cores_training;  /* while training */
	double demand;          /* cores the job's tasks ran on or waited for, while training */
	double run_delay_share; /* of the time its tasks were ready to run, they waited */
	double others;          /* cores that the rest of the host used, while training */
	double runnable;        /* tasks ready to run on the host, mean */
	double threads_max, processes_max;
	double throttled_share; /* of the window: held back by the cgroup's quota */
	double steal;           /* cores taken by the hypervisor */
};

struct facts_memory {
	double peak_rss, peak_pss;
	double peak_used; /* what counts towards the limit: pages shared by processes once */
	double limit;     /* of cgroup or rlimit, else the host's memory */
	bool limit_is_host;
	double host_total, host_available_min;
	bool oom_kill;        /* the kernel's counter of kills rose during the run */
	struct trend growth;  /* bytes per s over the second half of the window */
	double growth_bytes;  /* that the slope makes over that half */
	double growth_from_s; /* length of that half */
	double growth_even; /* the smaller of the half's two quarters' share of the rise, -1..0.5 */
	double swap_in, swap_out; /* bytes per s on the host, while training */
	double swap_used_max, job_swapped_max;
	double pressure_some, pressure_full; /* shares of the window */
};

struct facts_io {
	double read, written, disk_read, disk_written; /* bytes, whole run */
	double read_per_s, written_per_s, disk_read_per_s, disk_written_per_s; /* while training */
	double host_disk_per_s;              /* bytes per s of all disks, both ways */
	double disk_busy;                    /* of the busiest disk, share of the window */
	double pressure_some, pressure_full; /* shares of the window */
	bool pressure_is_cgroup;             /* of the job's own cgroup rather than of the host */
	double iowait;                       /* cores idle while a task waited for a disk */
	double blocked;                      /* tasks blocked on I/O, mean */
	double faults_major_per_s;
};

struct facts_gpu {
	const struct rec_entity_info *entity;
	double utilization, utilization_max;
	double memory_max, memory_total;
	double power, temperature_max, energy_j;
	double processes_max, job_processes_max;
};

struct run_facts {
	struct rec_reader *r; /* not owned; must live as long */
	uint64_t t0, t1;      /* of the run */
	uint64_t w0, w1;      /* while training */
	double window_s;
	const struct rec_entity_info *host, *job; /* NULL if absent */
	double ticks;                             /* of the job in the window */
	struct facts_run run;
	struct facts_steps steps;
	struct facts_pauses checkpoints, gc;
	struct facts_cpu cpu;
	struct facts_memory memory;
	struct facts_io io;
	double energy_j; /* of the host's packages; NaN: not known */
	struct facts_gpu gpus[FACTS_GPUS_MAX];
	size_t n_gpus;
	double workers; /* of the training data loader; NaN not known */
};

/* Read r and fill *ret. 0 or -errno with words; release it in either case. */
int facts_load(struct rec_reader *r, struct run_facts *ret, struct err *e);
void facts_release(struct run_facts *f);

/* A fact as a number; NaN if it is not set or no number. */
double facts_number(const struct rec_reader *r, const char *key);

/* One value over [t0, t1) of a series: a gauge's min, max, mean; a counter's rate per s. NaN if absent. */
struct rec_bucket facts_over(struct rec_reader *r, const struct rec_entity_info *entity,
			     enum metric_id metric, uint64_t t0, uint64_t t1);

/*
 * A chart of n equal parts of [t0, t1): means of a gauge, rates per s of a counter; NaN where nothing is known.
 * All NaN if the series is absent.
 */
void facts_chart(struct rec_reader *r, const struct rec_entity_info *entity, enum metric_id metric,
		 uint64_t t0, uint64_t t1, size_t n, double *ret);

/* Last value of a series before t; NaN if absent. */
double facts_last(struct rec_reader *r, const struct rec_entity_info *entity, enum metric_id metric,
		  uint64_t t);

/* Parts of facts_load, one file each (facts_*.c); each fills its own struct. */
int facts_load_steps(struct run_facts *f, struct err *e);
int facts_load_pauses(struct run_facts *f, struct err *e); /* after the steps */
void facts_load_cpu(struct run_facts *f);
int facts_load_memory(struct run_facts *f);
void facts_load_io(struct run_facts *f);
void facts_load_gpus(struct run_facts *f);

#endif
