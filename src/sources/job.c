/*
 * Source job: every process that descends from the command, however it left its parents, and with
 * all_processes every other one of the host as well. CPU, run delay, memory, faults, I/O, context switches and
 * threads, per process and for the job as a whole; see job_account.c for how nothing gets lost.
 */
#include "sources/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "sources/sources.h"

static struct tasks_config config_of(const struct source_env *env)
{
	return (struct tasks_config){
		.proc_root = env->proc_root,
		.interval_ns = env->interval_ns,
		.recorder_pid = env->job ? env->recorder_pid : 0,
		.job_pid = env->job ? env->job_pid : 0,
		.all = env->all_processes,
		.threads = env->threads,
		.reader = env->task_reader,
	};
}

static int job_probe(const struct source_env *env, struct buf *why)
{
	struct tasks_config config = config_of(env);
	int best = -ENOTSUP;
	for (const struct task_reader *const *r = task_readers; *r; r++) {
		buf_addf(why, "%s%s: ", r == task_readers ? "" : "; ", (*r)->name);
		int rc = (*r)->probe(&config, why);
		best = !rc || !best ? 0 : rc;
	}
	return best;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void job_close(void *state)
{
	struct job *j = state;
	struct task_table *t = j->tasks ? j->tasks->table : NULL;
	if (t && j->env.job)
		job_record_totals(j);
	for (size_t i = 0; t && i < t->n; i++)
		free(t->list[i]->owner);
	tasks_close(j->tasks);
	free(j->puts);
	free(j);
}

static int job_open(const struct source_env *env, void **ret_state, struct err *e)
{
	struct tasks_config config = config_of(env);
	struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return err_set(e, ENOMEM, "out of memory");
	j->env = *env;
	uint64_t mono = clock_mono_ns();
	j->boot_to_mono_ns = clock_ns(CLOCK_BOOTTIME) - mono;
	int rc = tasks_open(&config, &j->tasks, e);
	if (!rc) {
		rc = job_record_open(j);
		if (rc)
			err_set(e, -rc, "cannot make the job's series: %s", strerror(-rc));
	}
	if (rc) {
		j->env.job = 0;
		job_close(j);
		return rc;
	}
	job_pss_open(j);
	*ret_state = j;
	return 0;
}

static void say_reader(struct job *j)
{
	if (j->said_reader == j->tasks->reader)
		return;
	j->said_reader = j->tasks->reader;
	rec_set(j->env.w, "task_reader", j->said_reader->name);
}

/* New ones stand at the end of the list. */
static void adopt_new(struct job *j)
{
	struct task_table *t = j->tasks->table;
	for (size_t i = t->n; i-- > 0 && !t->list[i]->owner;)
		t->list[i]->owner = calloc(1, sizeof(struct job_process));
}

/* For tasks_sweep: those whose account is closed, and those that never had one. */
static bool is_settled(struct task *task, void *arg)
{
	struct job *j = arg;
	struct job_process *p = task->owner;
	if (p && task->job && p->fate != JOB_SETTLED)
		return false;
	if (p)
		job_record_end(j, task, clock_mono_ns());
	free(p);
	task->owner = NULL;
	return true;
}

static void end_vanished(struct job *j, uint64_t t_ns)
{
	struct task_table *t = j->tasks->table;
	for (size_t i = 0; t->ngone && i < t->n; i++)
		if (t->list[i]->gone && t->list[i]->owner)
			job_record_end(j, t->list[i], t_ns);
}

static void job_sample(void *state, uint64_t t_ns)
{
	struct job *j = state;
	if (tasks_read(j->tasks))
		return;
	say_reader(j);
	adopt_new(j);
	job_account(j);
	end_vanished(j, t_ns);
	job_record_tick(j, t_ns);
	job_pss_tick(j, t_ns);
	tasks_sweep(j->tasks, is_settled, j);
}

/* The kernel still has the I/O of the zombie and of all that it waited for. */
static void job_before_reap(void *state, pid_t pid)
{
	struct job *j = state;
	struct task *task = task_find(j->tasks->table, pid);
	if (!task) {
		task = &j->unknown;
		*task = (struct task){ .pid = pid, .job = true };
	}
	task_read_zombie(j->env.proc_root, task);
}

/* It was never seen at a tick: counted, but recorded only if it was the command itself. */
static void reaped_unknown(struct job *j, pid_t pid, const struct rusage *ru)
{
	struct job_process p = { 0 };
	struct task *task = &j->unknown;
	if (task->pid != pid)
		*task = (struct task){ .pid = pid, .job = true };
	job_account_reaped(j, task, ru);
	task->owner = &p;
	if (pid == j->env.job_pid) {
		uint64_t now = clock_mono_ns();
		job_record_changed(j, task, now);
		job_record_end(j, task, now);
	} else {
		j->processes++;
	}
	*task = (struct task){ 0 };
}

static void job_after_reap(void *state, pid_t pid, const struct rusage *ru)
{
	struct job *j = state;
	struct task *task = task_find(j->tasks->table, pid);
	if (task && task->owner) {
		job_account_reaped(j, task, ru);
		job_record_end(j, task, clock_mono_ns());
		task_gone(j->tasks->table, task);
		return;
	}
	reaped_unknown(j, pid, ru);
}

const struct source source_job = {
	.name = "job",
	.help = "the job's processes and threads: CPU, memory, I/O, switches",
	.needs = "/proc, or BPF with type information",
	.probe = job_probe,
	.open = job_open,
	.sample = job_sample,
	.before_reap = job_before_reap,
	.after_reap = job_after_reap,
	.close = job_close,
};
