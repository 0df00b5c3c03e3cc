/*
 * How the /proc reader finds processes that are new; see tasks_proc.h.
 *
 * The kernel lists the children of each thread, so the job is walked from the recorder downwards, at the cost of
 * the job and not of the host: only where a process ran since (who slept made no children) and only
 * while the host's newest pid changes. A list may miss entries while it changes, so each look is repeated at the
 * next pass, and now and then everything is looked at. Kernels without such lists, and whoever wants all
 * processes, get a scan of /proc for pids not seen before.
 */
#include "sources/tasks_proc.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

#define LOOKS 2 /* a change is looked for in this many passes */

/* The newest pid is the last word of /proc/loadavg. Did it change since the last pass? */
static bool pids_changed(struct proc_reader *r)
{
	char text[128];
	r->previous_pid = r->last_pid;
	if (r->loadavg < 0 || io_pread_text(r->loadavg, text, sizeof(text)) <= 0)
		return true;
	const char *p = strrchr(text, ' ');
	if (!p || !io_parse_u64(&p, &r->last_pid))
		return true;
	return r->last_pid != r->previous_pid;
}

/* Was pid given out since the last pass? Pids go up and around. */
static bool pid_is_new(const struct proc_reader *r, pid_t pid)
{
	uint64_t p = (uint64_t)pid, from = r->previous_pid, to = r->last_pid;
	return from <= to ? p > from && p <= to : p > from || p <= to;
}

/* ------------------------------------------------------------------------------ by lists of children */

static void meet_found(struct proc_reader *r, struct task_table *t)
{
	while (r->found.n > 0) {
		pid_t pid = r->found.pids[--r->found.n];
		if (!task_find(t, pid))
			proc_meet(r, t, pid);
	}
}

static void walk_task(struct proc_reader *r, struct task_table *t, struct task *task)
{
	struct proc_task *p = task->reader;
	for (size_t i = 0; i < task->nlisted; i++) {
		struct task_thread *thread = &task->threads[i];
		int rc = proc_children(r, &thread->fd[PROC_CHILDREN], p->active > 1, task->pid,
				       thread->tid);
		if (rc == -EMFILE)
			p->walks = LOOKS;
	}
	meet_found(r, t);
}

static void walk(struct proc_reader *r, struct task_table *t)
{
	r->found.n = 0;
	if (r->config.recorder_pid) {
		int rc = proc_children(r, &r->own_children, true, r->config.recorder_pid,
				       r->config.recorder_pid);
		if (rc == -ENOENT)
			r->children = false;
		meet_found(r, t);
	}
	/* Those that are found on the way are appended, and looked at in their turn. */
	for (size_t i = 0; i < t->n; i++) {
		struct task *task = t->list[i];
		struct proc_task *p = task->reader;
		if (!task->job || !p || task->gone || !(r->full || p->walks > 0))
			continue;
		p->walks -= p->walks > 0;
		walk_task(r, t, task);
	}
}

/* ----------------------------------------------------------------------------------------- by a scan */

static bool is_candidate(struct proc_reader *r, const struct task_table *t, pid_t pid)
{
	uint64_t v;
	if (task_find(t, pid))
		return false;
	return r->config.all || r->full || pid_is_new(r, pid) ||
	       !map_get(&r->strangers, (uint64_t)pid, &v);
}

/* Take in who belongs to the job, until nobody new does: a child may come before its parent. */
static void take_in(struct proc_reader *r, struct task_table *t)
{
	size_t left, before;
	do {
		left = 0;
		before = r->found.n;
		for (size_t i = 0; i < before; i++) {
			pid_t pid = r->found.pids[i];
			if (!proc_meet(r, t, pid))
				r->found.pids[left++] = pid;
		}
		r->found.n = left;
	} while (left && left < before && !r->config.all);
	for (size_t i = 0; i < left; i++)
		map_put(&r->strangers, (uint64_t)r->found.pids[i], 1);
}

/*
 * With all processes listed: a child may have been read before its parent was known to be the job's. Only those
 * from `first` on are new; the parents of others may be gone long since, and their pids somebody else's.
 */
static void settle_membership(struct task_table *t, size_t first)
{
	bool changed;
	do {
		changed = false;
		for (size_t i = first; i < t->n; i++) {
			struct task *task = t->list[i];
			const struct task *parent = task->job ? NULL : task_find(t, task->ppid);
			if (parent && parent->job && !task->gone)
				changed = task->job = true;
		}
	} while (changed);
}

static void scan(struct proc_reader *r, struct task_table *t)
{
	size_t kept = 0, before = t->n;
	if (proc_list(r, ".", &r->found))
		return;
	if (r->full)
		map_free(&r->strangers);
	for (size_t i = 0; i < r->found.n; i++)
		if (is_candidate(r, t, r->found.pids[i]))
			r->found.pids[kept++] = r->found.pids[i];
	r->found.n = kept;
	take_in(r, t);
	if (r->config.all && t->n > before)
		settle_membership(t, before);
}

void proc_find(struct proc_reader *r, struct task_table *t)
{
	if (pids_changed(r))
		r->walks = LOOKS;
	if (!r->walks && !r->full)
		return;
	r->walks -= r->walks > 0;
	if (!r->config.all && r->children)
		walk(r, t);
	if (r->config.all || !r->children)
		scan(r, t);
}
