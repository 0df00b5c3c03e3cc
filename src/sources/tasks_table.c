/* The table of watched processes; see tasks.h. Knows nothing of how they are read. */
#include "sources/tasks.h"

#include <stdlib.h>
#include <string.h>

struct task_table *task_table_new(void)
{
	return calloc(1, sizeof(struct task_table));
}

static void task_free(struct task *task)
{
	free(task->threads);
	free(task->ended);
	free(task);
}

void task_table_free(struct task_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		task_free(t->list[i]);
	free(t->list);
	free(t->changed);
	map_free(&t->by_pid);
	free(t);
}

struct task *task_find(const struct task_table *t, pid_t pid)
{
	uint64_t v;
	if (!map_get(&t->by_pid, (uint64_t)pid, &v))
		return NULL;
	return (struct task *)(uintptr_t)v;
}

struct task *task_add(struct task_table *t, pid_t pid, uint64_t start)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		struct task **list = realloc(t->list, cap * sizeof(struct task *));
		if (!list)
			return NULL;
		t->list = list;
		t->cap = cap;
	}
	struct task *task = calloc(1, sizeof(*task));
	if (!task || map_put(&t->by_pid, (uint64_t)pid, (uintptr_t)task)) {
		free(task);
		return NULL;
	}
	task->pid = pid;
	task->start = start;
	t->list[t->n++] = task;
	return task;
}

void task_gone(struct task_table *t, struct task *task)
{
	if (task->gone)
		return;
	if (task_find(t, task->pid) == task)
		map_del(&t->by_pid, (uint64_t)task->pid);
	task->gone = true;
	t->ngone++;
}

void task_table_pass(struct task_table *t)
{
	t->pass++;
	t->nchanged = 0;
}

void task_changed(struct task_table *t, struct task *task)
{
	if (task->changed == t->pass)
		return;
	if (t->nchanged == t->cap_changed) {
		size_t cap = t->cap_changed ? t->cap_changed * 2 : 64;
		struct task **changed = realloc(t->changed, cap * sizeof(struct task *));
		if (!changed)
			return; /* what changed shows at its next change */
		t->changed = changed;
		t->cap_changed = cap;
	}
	task->changed = t->pass;
	t->changed[t->nchanged++] = task;
}

void task_table_sweep(struct task_table *t, bool (*drop)(struct task *, void *), void *arg)
{
	size_t kept = 0, nchanged = 0;
	if (!t->ngone)
		return;
	for (size_t i = 0; i < t->nchanged; i++)
		if (!t->changed[i]->gone)
			t->changed[nchanged++] = t->changed[i];
	t->nchanged = nchanged;
	t->ngone = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct task *task = t->list[i];
		if (task->gone && drop(task, arg)) {
			task_free(task);
			continue;
		}
		t->ngone += task->gone;
		t->list[kept++] = task;
	}
	t->n = kept;
}

/* Where tid is, or belongs, in the sorted list. */
static size_t thread_position(const struct task *task, pid_t tid)
{
	size_t low = 0, high = task->nlisted;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (task->threads[mid].tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct task_thread *task_thread_get(struct task *task, pid_t tid)
{
	size_t at = thread_position(task, tid);
	if (at < task->nlisted && task->threads[at].tid == tid)
		return &task->threads[at];
	if (task->nlisted == task->cap_listed) {
		size_t cap = task->cap_listed ? task->cap_listed * 2 : 8;
		struct task_thread *threads = realloc(task->threads, cap * sizeof(*threads));
		if (!threads)
			return NULL;
		task->threads = threads;
		task->cap_listed = cap;
	}
	memmove(&task->threads[at + 1], &task->threads[at],
		(task->nlisted - at) * sizeof(*task->threads));
	task->nlisted++;
	task->threads[at] = (struct task_thread){ .tid = tid, .fd = { -1, -1, -1 } };
	return &task->threads[at];
}

/* The owner has to know of it; one that finds no memory is never ended. */
static void keep_ended(struct task *task, const struct task_thread *thread)
{
	if (task->nended == task->cap_ended) {
		size_t cap = task->cap_ended ? task->cap_ended * 2 : 8;
		struct task_thread *ended = realloc(task->ended, cap * sizeof(*ended));
		if (!ended)
			return;
		task->ended = ended;
		task->cap_ended = cap;
	}
	task->ended[task->nended++] = *thread;
}

void task_threads_sweep(struct task *task, uint32_t pass)
{
	size_t kept = 0;
	for (size_t i = 0; i < task->nlisted; i++) {
		struct task_thread *thread = &task->threads[i];
		if (thread->seen == pass) {
			task->threads[kept++] = *thread;
			continue;
		}
		if (thread->entity)
			keep_ended(task, thread);
		task->dead_delay += thread->run_delay;
		task->dead_voluntary += thread->voluntary;
		task->dead_involuntary += thread->involuntary;
	}
	task->nlisted = kept;
}

void task_split_cpu(uint64_t utime, uint64_t stime, uint64_t runtime, int64_t *user,
		    int64_t *system)
{
	uint64_t said_user = (uint64_t)*user, said_system = (uint64_t)*system;
	if (runtime <= said_user + said_system)
		return;
	uint64_t s = 0;
	if (stime && !utime)
		s = runtime;
	else if (stime)
		s = (uint64_t)((double)stime / (double)(utime + stime) * (double)runtime);
	if (s > runtime)
		s = runtime;
	if (s < said_system)
		s = said_system;
	if (runtime - s < said_user)
		s = runtime - said_user;
	*system = (int64_t)s;
	*user = (int64_t)(runtime - s);
}
