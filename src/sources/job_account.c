/*
 * The job's account: nothing that any of its processes used may be lost or counted twice.
 *
 * A process's use is in its own books while it lives or is a zombie, and moves into those of whoever waits for
 * it: of another process of the job (the kernel's cutime, cminflt, I/O...), or of the recorder, which
 * gets its rusage. So the job's use is what the recorder reaped, and what all that live used themselves and
 * reaped; however short a child lived, it is in there. Two things the kernel does not carry over: the account
 * of children whose parent ignores SIGCHLD, and run delay. There the last that was seen is kept.
 */
#include "sources/job.h"

#include "base/clock.h"

#define IO_BITS ((unsigned)TASK_HAS_IO)

static int64_t known_total_of(const struct task *task, int counter)
{
	int64_t v = task->own[counter];
	if (task->reaped_have & 1u << counter)
		v += task->reaped[counter];
	return v;
}

int64_t job_total_of(const struct task *task, int counter)
{
	const struct job_process *p = task->owner;
	return known_total_of(task, counter) + p->held[counter] + p->lost[counter];
}

/* Is what its children used in the parent's books, for us to see? */
static bool books_show(const struct task *parent, int counter)
{
	return (parent->reaped_have | IO_BITS) & 1u << counter;
}

static void tell_lost(struct job *j, struct task *parent)
{
	struct job_process *p = parent->owner;
	j->lost_children++;
	if (p->told_lost)
		return;
	p->told_lost = true;
	job_notice(
		j, parent, "lost",
		"ignores SIGCHLD, so the kernel forgets what its children used: it is counted as "
		"last seen, and not at all for children that live less than a tick");
}

/* Keep what it has of dead children's page faults, now and at the two ticks before. */
static void note_faults(const struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	uint32_t pass = j->tasks->table->pass;
	int64_t now = task->reaped[TASK_MINOR_FAULTS];
	uint32_t ticks = p->noted ? pass - p->noted : 0;
	if (p->noted && !ticks)
		return;
	if (!p->noted)
		p->faults[0] = now;
	p->faults[2] = ticks == 1 ? p->faults[1] : p->faults[0];
	p->faults[1] = p->faults[0];
	p->faults[0] = now;
	p->noted = pass;
}

/*
 * Did the parent wait for this child? Then the child's page faults, of which every process has some, were
 * added to the parent's count of its children's since the tick at which it was last seen.
 */
static bool was_waited_for(const struct job *j, const struct task *child, struct task *parent)
{
	struct job_process *p = parent->owner;
	int64_t faults = job_total_of(child, TASK_MINOR_FAULTS);
	if (parent->gone)
		return !parent->autoreap;
	note_faults(j, parent);
	if (p->claimed_faults < p->faults[2])
		p->claimed_faults = p->faults[2];
	if (p->faults[0] - p->claimed_faults < faults)
		return false;
	p->claimed_faults += faults;
	return true;
}

/* ---------------------------------------------------------------------------------------- the sums */

static void uncount(struct job *j, struct job_process *p)
{
	if (!p->counts)
		return;
	for (int i = 0; i < TASK_COUNTERS; i++)
		j->live[i] -= p->counted[i];
	j->rss -= p->rss;
	j->swapped -= p->swapped;
	j->nthreads -= p->nthreads;
	j->nprocesses--;
	j->ndenied -= p->denied;
	p->counts = false;
}

static void count(struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	uncount(j, p);
	for (int i = 0; i < TASK_COUNTERS; i++)
		j->live[i] += p->counted[i] = job_total_of(task, i);
	j->rss += p->rss = task->rss;
	j->swapped += p->swapped = task->swapped;
	j->nthreads += p->nthreads = task->nthreads;
	j->nprocesses++;
	j->ndenied += p->denied = task->denied;
	j->have |= task->have;
	p->counts = true;
	if (j->max_rss < task->peak_rss)
		j->max_rss = task->peak_rss;
}

void job_account_leaves(struct job *j, struct task *task)
{
	if (task->owner)
		uncount(j, task->owner);
}

/* ----------------------------------------------------------------------------- closing accounts */

/* Close the account of a child that vanished at the tick before. */
static void settle(struct job *j, struct task *child)
{
	struct job_process *c = child->owner;
	struct task *parent = c->parent;
	c->fate = JOB_SETTLED;
	if (!parent) {
		/* Its parent was reaped by the recorder, and the child's account with it, but for run delay. */
		if (c->orphaned)
			j->dead[TASK_RUN_DELAY] += job_total_of(child, TASK_RUN_DELAY);
		else
			for (int i = 0; i < TASK_COUNTERS; i++)
				j->dead[i] += job_total_of(child, i);
		return;
	}
	struct job_process *p = parent->owner;
	bool waited = was_waited_for(j, child, parent);
	for (int i = 0; i < TASK_COUNTERS; i++) {
		if (!waited)
			p->lost[i] += job_total_of(child, i);
		else if (!books_show(parent, i))
			p->held[i] += job_total_of(child, i);
	}
	if (!waited)
		tell_lost(j, parent);
	if (p->counts)
		count(j, parent);
}

static int64_t ru_ns(struct timeval t)
{
	return (int64_t)t.tv_sec * (int64_t)NS_PER_S + (int64_t)t.tv_usec * (int64_t)NS_PER_US;
}

void job_account_reaped(struct job *j, struct task *task, const struct rusage *ru)
{
	struct job_process *p = task->owner;
	int64_t closed[TASK_COUNTERS] = {
		[TASK_USER] = ru_ns(ru->ru_utime),
		[TASK_SYSTEM] = ru_ns(ru->ru_stime),
		[TASK_MINOR_FAULTS] = ru->ru_minflt,
		[TASK_MAJOR_FAULTS] = ru->ru_majflt,
		[TASK_VOLUNTARY] = ru->ru_nvcsw,
		[TASK_INVOLUNTARY] = ru->ru_nivcsw,
		[TASK_RUN_DELAY] = task->own[TASK_RUN_DELAY] + (p ? p->held[TASK_RUN_DELAY] : 0),
		[TASK_READ] = task->own[TASK_READ],
		[TASK_WRITTEN] = task->own[TASK_WRITTEN],
		[TASK_DISK_READ] = task->own[TASK_DISK_READ],
		[TASK_DISK_WRITTEN] = task->own[TASK_DISK_WRITTEN],
	};
	for (int i = 0; i < TASK_COUNTERS; i++)
		j->dead[i] += closed[i] + (p ? p->lost[i] : 0);
	if (p) {
		p->fate = JOB_SETTLED;
		uncount(j, p);
	}
	if (j->max_rss < (int64_t)ru->ru_maxrss * 1024)
		j->max_rss = (int64_t)ru->ru_maxrss * 1024;
}

/* ------------------------------------------------------------------------------------- every tick */

/* Those that were settled will be freed: nobody may point at them. */
static void drop_parent(struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	if (!p->parent || job_process(p->parent)->fate != JOB_SETTLED)
		return;
	p->parent = NULL;
	p->orphaned = true;
	task->stale = true;
}

static void find_parent(const struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	if (task->ppid == j->env.recorder_pid)
		p->orphaned = false;
	if (p->parent || task->ppid == j->env.recorder_pid)
		return;
	struct task *parent = task_find(j->tasks->table, task->ppid);
	if (parent && parent != task && parent->job && parent->owner) {
		p->parent = parent;
		p->orphaned = false;
	}
}

/* Somebody ended now or at the last tick: look at all. Children stand behind their parents: theirs first. */
static void close_accounts(struct job *j)
{
	struct task_table *t = j->tasks->table;
	j->nvanished = 0;
	for (size_t k = t->n; k-- > 0;) {
		struct task *task = t->list[k];
		if (!task->job || !task->owner)
			continue;
		if (job_process(task)->fate == JOB_VANISHED) {
			settle(j, task);
		} else if (task->gone && job_process(task)->fate == JOB_LIVES) {
			job_process(task)->fate = JOB_VANISHED;
			uncount(j, task->owner);
			j->nvanished++;
		}
	}
	for (size_t k = 0; k < t->n; k++)
		if (t->list[k]->job && t->list[k]->owner)
			drop_parent(j, t->list[k]);
}

void job_account(struct job *j)
{
	struct task_table *t = j->tasks->table;
	j->behind = 0;
	for (size_t k = 0; k < t->nchanged; k++) {
		struct task *task = t->changed[k];
		if (!task->job || !task->owner || task->gone)
			continue;
		note_faults(j, task);
		find_parent(j, task);
		count(j, task);
		j->behind |= task->have & ~task->fresh;
	}
	if (t->ngone || j->nvanished)
		close_accounts(j);
	for (int i = 0; i < TASK_COUNTERS; i++)
		j->total[i] = j->dead[i] + j->live[i];
}
