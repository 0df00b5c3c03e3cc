/*
 * The threads of a process, for the /proc reader; see tasks_proc.h. What the kernel does not add up for a process is
 * added up here: run delay and context switches. Threads that ended stay counted as last seen.
 */
#include "sources/tasks_proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void proc_take_status(struct task *task, const struct task_status *s)
{
	task->autoreap = s->ignores_sigchld;
	if (!s->have_memory)
		return;
	task->swapped = (int64_t)s->swapped;
	task->peak_rss = (int64_t)s->peak_rss;
	task->have |= TASK_HAS_SWAPPED;
	task->fresh |= TASK_HAS_SWAPPED;
}

static void list_threads(struct proc_reader *r, struct task_table *t, struct task *task)
{
	char path[32];
	if (task->nthreads < 2 || snprintf(path, sizeof(path), "%d/task", (int)task->pid) < 0 ||
	    proc_list(r, path, &r->threads)) {
		struct task_thread *thread = task_thread_get(task, task->pid);
		if (thread)
			thread->seen = t->pass;
		return;
	}
	for (size_t i = 0; i < r->threads.n; i++) {
		struct task_thread *thread = task_thread_get(task, r->threads.pids[i]);
		if (thread)
			thread->seen = t->pass;
	}
}

/* For those who want single threads: name and CPU. */
static void read_thread_stat(struct proc_reader *r, const struct task *task,
			     struct task_thread *thread)
{
	struct task_stat s;
	int once = -1;
	if (proc_read(r, &once, false, task->pid, thread->tid, "stat") < 0 ||
	    !task_parse_stat(r->text, &s))
		return;
	memcpy(thread->comm, s.comm, sizeof(thread->comm));
	if (thread->runtime) {
		task_split_cpu(s.user, s.system, thread->runtime, &thread->user, &thread->system);
	} else {
		thread->user = (int64_t)s.user * TASK_TICK_NS;
		thread->system = (int64_t)s.system * TASK_TICK_NS;
	}
}

/* Its status: context switches; of the main thread also what concerns all of the process. */
static void read_thread_status(struct proc_reader *r, struct task *task, struct task_thread *thread,
			       bool keep)
{
	struct task_status s;
	if (proc_read(r, &thread->fd[PROC_STATUS], keep, task->pid, thread->tid, "status") <= 0)
		return;
	task_parse_status(r->text, &s);
	if (s.have_switches) {
		thread->voluntary = (int64_t)s.voluntary;
		thread->involuntary = (int64_t)s.involuntary;
	}
	if (thread->tid == task->pid || s.have_memory)
		proc_take_status(task, &s);
}

/* One thread; false: it is gone. */
static bool read_thread(struct proc_reader *r, struct task *task, struct task_thread *thread,
			bool keep)
{
	uint64_t run = 0, delay, runs = 0;
	bool ran = true;
	if (r->schedstat) {
		ssize_t n = proc_read(r, &thread->fd[PROC_SCHEDSTAT], keep, task->pid, thread->tid,
				      "schedstat");
		if (n == -ESRCH || n == -ENOENT)
			return false;
		if (n > 0 && task_parse_schedstat(r->text, &run, &delay, &runs)) {
			ran = !thread->runs || run != thread->runtime || runs != thread->runs;
			thread->run_delay = (int64_t)delay;
			thread->runtime = run;
			thread->runs = runs;
		}
	}
	if (r->config.threads && ran)
		read_thread_stat(r, task, thread);
	if (r->slow && (ran || thread->tid == task->pid))
		read_thread_status(r, task, thread, keep);
	return true;
}

static void sum_threads(struct proc_reader *r, struct task *task)
{
	int64_t delay = task->dead_delay, voluntary = task->dead_voluntary,
		involuntary = task->dead_involuntary;
	for (size_t i = 0; i < task->nlisted; i++) {
		delay += task->threads[i].run_delay;
		voluntary += task->threads[i].voluntary;
		involuntary += task->threads[i].involuntary;
	}
	if (r->schedstat)
		proc_set(task, TASK_RUN_DELAY, (uint64_t)delay);
	if (!r->slow)
		return;
	proc_set(task, TASK_VOLUNTARY, (uint64_t)voluntary);
	proc_set(task, TASK_INVOLUNTARY, (uint64_t)involuntary);
}

void proc_read_threads(struct proc_reader *r, struct task_table *t, struct task *task, bool keep)
{
	bool lost = false;
	if (r->slow || (int64_t)task->nlisted != task->nthreads)
		list_threads(r, t, task);
	else
		for (size_t i = 0; i < task->nlisted; i++)
			task->threads[i].seen = t->pass;
	for (size_t i = 0; i < task->nlisted; i++) {
		struct task_thread *thread = &task->threads[i];
		if (thread->seen != t->pass || read_thread(r, task, thread, keep))
			continue;
		thread->seen = t->pass - 1;
		lost = true;
	}
	for (size_t i = 0; i < task->nlisted; i++)
		if (task->threads[i].seen != t->pass)
			proc_close_thread(r, &task->threads[i]);
	task_threads_sweep(task, t->pass);
	if (lost && !task->nlisted)
		list_threads(r, t, task);
	sum_threads(r, task);
}
