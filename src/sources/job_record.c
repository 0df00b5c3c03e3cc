/*
 * What is recorded of the job: an entity for each process (and thread, if they are wanted), their series, the job's
 * sums and, at the end, its exact totals.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "sources/attrs.h"
#include "sources/job.h"
#include "sources/series.h"

#define CMDLINE_MOST 4096

/* What a process has: counters and gauges by the same numbers as the job's sums. */
static const struct {
	enum metric_id metric;
	unsigned bit;   /* of task->fresh; 0: always there */
	bool everybody; /* also of processes that are not the job's */
} rows[JOB_SUMS] = {
	[TASK_USER] = { METRIC_CPU_USER, 1u << TASK_USER, true },
	[TASK_SYSTEM] = { METRIC_CPU_SYSTEM, 1u << TASK_SYSTEM, true },
	[TASK_RUN_DELAY] = { METRIC_CPU_RUN_DELAY, 1u << TASK_RUN_DELAY, true },
	[TASK_MINOR_FAULTS] = { METRIC_MEMORY_FAULTS_MINOR, 1u << TASK_MINOR_FAULTS, true },
	[TASK_MAJOR_FAULTS] = { METRIC_MEMORY_FAULTS_MAJOR, 1u << TASK_MAJOR_FAULTS, true },
	[TASK_READ] = { METRIC_IO_READ, 1u << TASK_READ, false },
	[TASK_WRITTEN] = { METRIC_IO_WRITTEN, 1u << TASK_WRITTEN, false },
	[TASK_DISK_READ] = { METRIC_IO_DISK_READ, 1u << TASK_DISK_READ, true },
	[TASK_DISK_WRITTEN] = { METRIC_IO_DISK_WRITTEN, 1u << TASK_DISK_WRITTEN, true },
	[TASK_VOLUNTARY] = { METRIC_SCHED_VOLUNTARY, 1u << TASK_VOLUNTARY, false },
	[TASK_INVOLUNTARY] = { METRIC_SCHED_INVOLUNTARY, 1u << TASK_INVOLUNTARY, false },
	[JOB_RSS] = { METRIC_MEMORY_RSS, TASK_HAS_RSS, true },
	[JOB_SWAPPED] = { METRIC_MEMORY_SWAPPED, TASK_HAS_SWAPPED, false },
	[JOB_PSS] = { METRIC_MEMORY_PSS, 0, false },
	[JOB_THREADS] = { METRIC_SCHED_THREADS, 0, true },
	[JOB_PROCESSES] = { METRIC_SCHED_PROCESSES, 0, false },
};

_Static_assert(JOB_SUMS <= JOB_SERIES, "a process has room for all of its series");

static const char *source_name(const struct job *j)
{
	return j->tasks->reader == &task_reader_bpf ? "BPF task iterator" : "/proc/PID";
}

int job_record_open(struct job *j)
{
	series_none(j->series, JOB_SUMS);
	if (!j->env.job)
		return 0;
	for (int i = 0; i < JOB_SUMS; i++) {
		int rc = series_make(j->env.w, j->env.job, &rows[i].metric, 1, source_name(j),
				     &j->series[i]);
		if (rc)
			return rc;
	}
	return 0;
}

/* ------------------------------------------------------------------------------------- its entity */

/* Arguments are separated by NULs, and shown separated by blanks. */
static void describe(const struct job *j, const struct task *task, uint32_t entity)
{
	char path[256], text[CMDLINE_MOST];
	struct buf attrs = BUF_INIT;
	snprintf(path, sizeof(path), "%s/%d/cmdline", j->env.proc_root, (int)task->pid);
	ssize_t n = task->kernel ? 0 : io_read_text(AT_FDCWD, path, text, sizeof(text));
	while (n > 0 && !text[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	if (n > 0)
		attrs_text(&attrs, "command_line", text);
	attrs_i64(&attrs, "ppid", task->ppid);
	attrs_store(&attrs, j->env.w, entity);
}

void job_record_process(struct job *j, struct task *task, uint64_t t_ns)
{
	struct job_process *p = task->owner;
	uint64_t start = task->start * TASK_TICK_NS;
	start = start > j->boot_to_mono_ns ? start - j->boot_to_mono_ns : 0;
	if (rec_entity(j->env.w, ENTITY_PROCESS, task->job ? j->env.job : j->env.host, task->comm,
		       task->pid, start < t_ns ? start : t_ns, &p->entity))
		return;
	describe(j, task, p->entity);
	series_none(p->series, JOB_SERIES);
	for (int i = 0; i < JOB_SUMS; i++) {
		unsigned bit = rows[i].bit;
		if ((!task->job && !rows[i].everybody) || i == JOB_PSS || i == JOB_PROCESSES ||
		    (task->kernel && (bit & (TASK_HAS_RSS | TASK_HAS_SWAPPED))) ||
		    (bit && !((task->have | task->denied) & bit)))
			continue;
		rec_series(j->env.w, p->entity, rows[i].metric, source_name(j), &p->series[i]);
	}
	if (task->job) {
		j->processes++;
		map_put(&j->env.jobset->pids, (uint64_t)task->pid, p->entity);
	}
}

void job_record_end(struct job *j, struct task *task, uint64_t t_ns)
{
	struct job_process *p = task->owner;
	uint64_t entity;
	if (!p->entity)
		return;
	for (size_t i = 0; i < task->nlisted; i++) {
		if (task->threads[i].entity)
			rec_entity_end(j->env.w, task->threads[i].entity, t_ns);
		if (task->threads[i].entity)
			series_end(j->env.w, task->threads[i].series, 3);
		task->threads[i].entity = 0;
	}
	series_end(j->env.w, p->series, JOB_SERIES);
	if (p->has_pss_series)
		rec_series_end(j->env.w, p->pss_series);
	p->has_pss_series = false;
	rec_entity_end(j->env.w, p->entity, t_ns);
	if (map_get(&j->env.jobset->pids, (uint64_t)task->pid, &entity) && entity == p->entity)
		map_del(&j->env.jobset->pids, (uint64_t)task->pid);
	p->entity = 0;
}

/* ------------------------------------------------------------------------------------- its values */

static int64_t value_of(const struct task *task, int row)
{
	switch (row) {
	case JOB_RSS:
		return task->rss;
	case JOB_SWAPPED:
		return task->swapped;
	case JOB_THREADS:
		return task->nthreads;
	default:
		return task->own[row];
	}
}

static void put_process(struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	for (int i = 0; i < JOB_SUMS; i++) {
		unsigned bit = rows[i].bit;
		if (p->series[i] == SERIES_NONE)
			continue;
		if (!bit || task->fresh & bit)
			rec_put_i64(j->env.w, p->series[i], value_of(task, i));
		else if (task->denied & bit)
			rec_gap(j->env.w, p->series[i], "no permission");
	}
}

static void put_threads(struct job *j, struct task *task, uint64_t t_ns)
{
	static const enum metric_id wanted[] = { METRIC_CPU_USER, METRIC_CPU_SYSTEM,
						 METRIC_CPU_RUN_DELAY };
	for (size_t i = 0; i < task->nlisted; i++) {
		struct task_thread *thread = &task->threads[i];
		if (!thread->entity) {
			if (rec_entity(j->env.w, ENTITY_THREAD, job_process(task)->entity,
				       thread->comm, thread->tid, t_ns, &thread->entity))
				return;
			series_none(thread->series, 3);
			series_make(j->env.w, thread->entity, wanted, 3, source_name(j),
				    thread->series);
		}
		rec_put_i64(j->env.w, thread->series[0], thread->user);
		rec_put_i64(j->env.w, thread->series[1], thread->system);
		rec_put_i64(j->env.w, thread->series[2], thread->run_delay);
	}
	for (size_t i = 0; i < task->nended; i++) {
		rec_entity_end(j->env.w, task->ended[i].entity, t_ns);
		series_end(j->env.w, task->ended[i].series, 3);
	}
	task->nended = 0;
}

static void rename_process(struct job *j, struct task *task)
{
	uint32_t entity = job_process(task)->entity;
	rec_entity_rename(j->env.w, entity, task->comm);
	describe(j, task, entity);
	task->renamed = false;
}

/*
 * CPU time as recorded: its sum never goes back, and no part does. The kernel may divide the time of a
 * process that ended otherwise than that of one that runs: what user has too much, system gets less.
 */
static void advance_cpu(struct job *j)
{
	int64_t user = j->put[TASK_USER], system = j->put[TASK_SYSTEM];
	int64_t sum = j->total[TASK_USER] + j->total[TASK_SYSTEM];
	if (sum < user + system)
		return;
	j->put[TASK_USER] = j->total[TASK_USER];
	if (j->put[TASK_USER] > sum - system)
		j->put[TASK_USER] = sum - system;
	if (j->put[TASK_USER] < user)
		j->put[TASK_USER] = user;
	j->put[TASK_SYSTEM] = sum - j->put[TASK_USER];
}

/* The job's counters as recorded never go back: what is between two books shows at the next tick. */
static void put_job(struct job *j, unsigned fresh, unsigned denied, const int64_t *sum)
{
	advance_cpu(j);
	for (int i = 0; i < JOB_SUMS; i++) {
		unsigned bit = rows[i].bit;
		if (i == JOB_PSS)
			continue;
		if (i < TASK_COUNTERS && i > TASK_SYSTEM && j->total[i] > j->put[i])
			j->put[i] = j->total[i];
		if (!bit || fresh & bit)
			rec_put_i64(j->env.w, j->series[i], i < TASK_COUNTERS ? j->put[i] : sum[i]);
		else if (denied & bit)
			rec_gap(j->env.w, j->series[i], "no permission");
	}
}

static void tell_denied(struct job *j, const struct task *task)
{
	if (j->told_denied || !(task->denied & TASK_HAS_IO))
		return;
	j->told_denied = true;
	job_notice(j, task, "gap",
		   "belongs to another user: its I/O cannot be read (no permission) and is missing "
		   "from "
		   "the job's");
}

void job_record_tick(struct job *j, uint64_t t_ns)
{
	struct task_table *t = j->tasks->table;
	int64_t sum[JOB_SUMS] = { 0 };
	unsigned unknown = 0, fresh = 0, denied = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct task *task = t->list[i];
		struct job_process *p = task->owner;
		if (!p || task->gone)
			continue;
		if (!p->entity)
			job_record_process(j, task, t_ns);
		if (task->renamed)
			rename_process(j, task);
		put_process(j, task);
		if (!task->job)
			continue;
		if (j->env.threads && (task->nthreads > 1 || task->nended))
			put_threads(j, task, t_ns);
		tell_denied(j, task);
		sum[JOB_RSS] += task->rss;
		sum[JOB_SWAPPED] += task->swapped;
		sum[JOB_THREADS] += task->nthreads;
		sum[JOB_PROCESSES]++;
		fresh |= task->fresh;
		denied |= task->denied;
		unknown |= task->have & ~task->fresh; /* read at other ticks */
	}
	/* With nobody left the sums of what they used still hold. */
	if (!sum[JOB_PROCESSES])
		fresh = ~0u;
	put_job(j, fresh & ~unknown, denied, sum);
}

void job_record_totals(struct job *j)
{
	static const struct {
		const char *key;
		int counter;
	} totals[] = {
		{ "job.user_ns", TASK_USER },
		{ "job.system_ns", TASK_SYSTEM },
		{ "job.read_bytes", TASK_READ },
		{ "job.written_bytes", TASK_WRITTEN },
		{ "job.disk_read_bytes", TASK_DISK_READ },
		{ "job.disk_written_bytes", TASK_DISK_WRITTEN },
	};
	for (size_t i = 0; i < sizeof(totals) / sizeof(*totals); i++)
		if (!(rows[totals[i].counter].bit & TASK_HAS_IO) || !j->told_denied)
			rec_setf(j->env.w, totals[i].key, "%lld",
				 (long long)j->total[totals[i].counter]);
	rec_setf(j->env.w, "job.max_rss_bytes", "%lld", (long long)j->max_rss);
	rec_setf(j->env.w, "job.processes", "%llu", (unsigned long long)j->processes);
	rec_setf(j->env.w, "job.lost_children", "%llu", (unsigned long long)j->lost_children);
}

void job_notice(struct job *j, const struct task *task, const char *kind, const char *text)
{
	char sentence[512];
	snprintf(sentence, sizeof(sentence), "%s (pid %d) %s", task->comm, (int)task->pid, text);
	rec_notice(j->env.w, clock_mono_ns(), task->owner ? job_process(task)->entity : 0, kind,
		   sentence, NULL);
}
