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

/* -------------------------------------------------------------------------- what is put of each */

/* Leave no holes: all processes get their places anew. */
static void close_holes(struct job *j)
{
	struct task_table *t = j->tasks->table;
	struct job_put *puts = malloc((j->nputs - j->nholes + 1) * sizeof(*puts));
	size_t n = 0;
	if (!puts)
		return;
	for (size_t i = 0; i < t->n; i++) {
		struct job_process *p = t->list[i]->owner;
		if (!p || !p->entity)
			continue;
		memcpy(puts + n, j->puts + p->puts, p->nputs * sizeof(*puts));
		p->puts = n;
		n += p->nputs;
	}
	free(j->puts);
	j->puts = puts;
	j->nputs = n;
	j->cap_puts = n;
	j->nholes = 0;
}

static struct job_put *new_puts(struct job *j, size_t n)
{
	if (j->nputs + n > j->cap_puts) {
		size_t cap = (j->nputs + n) * 2;
		struct job_put *puts = realloc(j->puts, cap * sizeof(*puts));
		if (!puts)
			return NULL;
		j->puts = puts;
		j->cap_puts = cap;
	}
	j->nputs += n;
	return &j->puts[j->nputs - n];
}

/* Has this process a series for this row? */
static bool has_row(const struct task *task, int row)
{
	unsigned bit = rows[row].bit;
	if ((!task->job && !rows[row].everybody) || row == JOB_PSS || row == JOB_PROCESSES)
		return false;
	if (task->kernel && bit & (TASK_HAS_RSS | TASK_HAS_SWAPPED))
		return false;
	return !bit || (task->have | task->denied) & bit;
}

static void make_series_of(struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	unsigned n = 0;
	for (int i = 0; i < JOB_SUMS; i++)
		n += has_row(task, i);
	struct job_put *put = new_puts(j, n);
	if (!put)
		return;
	p->puts = (size_t)(put - j->puts);
	p->nputs = n;
	for (int i = 0; i < JOB_SUMS; i++) {
		if (!has_row(task, i))
			continue;
		*put = (struct job_put){ .series = SERIES_NONE, .row = (uint16_t)i };
		rec_series(j->env.w, p->entity, rows[i].metric, source_name(j), &put->series);
		put++;
	}
}

static void make_entity(struct job *j, struct task *task, uint64_t t_ns)
{
	struct job_process *p = task->owner;
	uint64_t start = task->start * TASK_TICK_NS;
	start = start > j->boot_to_mono_ns ? start - j->boot_to_mono_ns : 0;
	if (rec_entity(j->env.w, ENTITY_PROCESS, task->job ? j->env.job : j->env.host, task->comm,
		       task->pid, start < t_ns ? start : t_ns, &p->entity))
		return;
	describe(j, task, p->entity);
	make_series_of(j, task);
	if (task->job) {
		j->processes++;
		map_put(&j->env.jobset->pids, (uint64_t)task->pid, p->entity);
	}
}

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

static void tell_denied(struct job *j, const struct task *task)
{
	if (j->told_denied || !task->job || !(task->denied & TASK_HAS_IO))
		return;
	j->told_denied = true;
	job_notice(j, task, "gap",
		   "belongs to another user: its I/O cannot be read (no permission) and is missing "
		   "from "
		   "the job's");
}

void job_record_changed(struct job *j, struct task *task, uint64_t t_ns)
{
	struct job_process *p = task->owner;
	if (!p->entity)
		make_entity(j, task, t_ns);
	if (task->renamed) {
		rec_entity_rename(j->env.w, p->entity, task->comm);
		describe(j, task, p->entity);
		task->renamed = false;
	}
	for (unsigned i = 0; i < p->nputs; i++) {
		struct job_put *put = &j->puts[p->puts + i];
		unsigned bit = rows[put->row].bit;
		put->value = value_of(task, put->row);
		put->kind = !bit || task->fresh & bit ? JOB_PUT_VALUE
			    : task->denied & bit      ? JOB_PUT_DENIED
						      : JOB_PUT_NOTHING;
	}
	tell_denied(j, task);
}

void job_record_end(struct job *j, struct task *task, uint64_t t_ns)
{
	struct job_process *p = task->owner;
	uint64_t entity;
	if (!p->entity)
		return;
	for (size_t i = 0; i < task->nlisted; i++) {
		struct task_thread *thread = &task->threads[i];
		if (!thread->entity)
			continue;
		rec_entity_end(j->env.w, thread->entity, t_ns);
		series_end(j->env.w, thread->series, 3);
		thread->entity = 0;
	}
	for (unsigned i = 0; i < p->nputs; i++) {
		rec_series_end(j->env.w, j->puts[p->puts + i].series);
		j->puts[p->puts + i].kind = JOB_PUT_NOTHING;
	}
	j->nholes += p->nputs;
	p->nputs = 0;
	if (p->has_pss_series)
		rec_series_end(j->env.w, p->pss_series);
	p->has_pss_series = false;
	rec_entity_end(j->env.w, p->entity, t_ns);
	if (map_get(&j->env.jobset->pids, (uint64_t)task->pid, &entity) && entity == p->entity)
		map_del(&j->env.jobset->pids, (uint64_t)task->pid);
	p->entity = 0;
}

static void put_all(struct job *j)
{
	for (size_t i = 0; i < j->nputs; i++) {
		const struct job_put *put = &j->puts[i];
		if (put->kind == JOB_PUT_VALUE)
			rec_put_i64(j->env.w, put->series, put->value);
		else if (put->kind == JOB_PUT_DENIED)
			rec_gap(j->env.w, put->series, "no permission");
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

/* --------------------------------------------------------------------------------- the job's sums */

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

static int64_t sum_of(const struct job *j, int row)
{
	switch (row) {
	case JOB_RSS:
		return j->rss;
	case JOB_SWAPPED:
		return j->swapped;
	case JOB_THREADS:
		return j->nthreads;
	case JOB_PROCESSES:
		return j->nprocesses;
	default:
		return j->put[row];
	}
}

/* The job's counters as recorded never go back: what is between two books shows at the next tick. */
static void put_job(struct job *j)
{
	advance_cpu(j);
	for (int i = TASK_SYSTEM + 1; i < TASK_COUNTERS; i++)
		if (j->total[i] > j->put[i])
			j->put[i] = j->total[i];
	for (int i = 0; i < JOB_SUMS; i++) {
		unsigned bit = rows[i].bit;
		if (i == JOB_PSS || (bit & j->behind && j->nprocesses))
			continue;
		/* With nobody left, what all used still holds. */
		if (!bit || bit & j->have || !j->nprocesses)
			rec_put_i64(j->env.w, j->series[i], sum_of(j, i));
		else if (j->ndenied && bit & TASK_HAS_IO)
			rec_gap(j->env.w, j->series[i], "no permission");
	}
}

void job_record_tick(struct job *j, uint64_t t_ns)
{
	struct task_table *t = j->tasks->table;
	for (size_t i = 0; i < t->nchanged; i++)
		if (t->changed[i]->owner && !t->changed[i]->gone)
			job_record_changed(j, t->changed[i], t_ns);
	if (j->nholes > j->nputs / 2 + 64)
		close_holes(j);
	put_all(j);
	for (size_t i = 0; j->env.threads && i < t->n; i++)
		if (t->list[i]->job && t->list[i]->owner && !t->list[i]->gone &&
		    (t->list[i]->nthreads > 1 || t->list[i]->nended))
			put_threads(j, t->list[i], t_ns);
	put_job(j);
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
	if (j->tasks->reader->helper_ns)
		rec_setf(j->env.w, "self.helper_cpu_ns", "%llu",
			 (unsigned long long)j->tasks->reader->helper_ns(j->tasks->state));
	rec_setf(j->env.w, "job.lost_children", "%llu", (unsigned long long)j->lost_children);
}

void job_notice(struct job *j, const struct task *task, const char *kind, const char *text)
{
	char sentence[512];
	snprintf(sentence, sizeof(sentence), "%s (pid %d) %s", task->comm, (int)task->pid, text);
	rec_notice(j->env.w, clock_mono_ns(), task->owner ? job_process(task)->entity : 0, kind,
		   sentence, NULL);
}
