/*
 * Proportional memory (PSS) of the job's processes: /proc/PID/smaps_rollup.
 *
 * The kernel walks all page tables for it, up to 10 ns per page, and holds the lock of the process's memory map
 * meanwhile. So it is read in rounds, at most one each 5 s, and rounds are spread over ticks and time so
 * that they take at most a thousandth of a core. Between two reads the series has gaps; the job's sum is put when a
 * round is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "sources/job.h"
#include "sources/series.h"

#define ROUND_NS (5 * NS_PER_S)
#define SHARE    1000    /* of a core: one part in so many */
#define BURST_NS 2000000 /* budget that may be saved up */

static int64_t thread_cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static int read_pss(const struct job *j, pid_t pid, int64_t *ret)
{
	char path[256], text[4096];
	uint64_t kb;
	snprintf(path, sizeof(path), "%s/%d/smaps_rollup", j->env.proc_root, (int)pid);
	ssize_t n = io_read_text(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (!io_find_u64(text, "Pss:", &kb))
		return -ENODATA;
	*ret = (int64_t)kb * 1024;
	return 0;
}

static void make_series(struct job *j, struct job_process *p)
{
	static const enum metric_id metric = METRIC_MEMORY_PSS;
	if (!p->has_pss_series && p->entity &&
	    !series_make(j->env.w, p->entity, &metric, 1, "/proc/PID/smaps_rollup", &p->pss_series))
		p->has_pss_series = true;
}

static void read_one(struct job *j, struct task *task)
{
	struct job_process *p = task->owner;
	int rc = read_pss(j, task->pid, &p->pss);
	p->pss_round = j->pss.round;
	make_series(j, p);
	if (!p->has_pss_series)
		return;
	if (!rc) {
		rec_put_i64(j->env.w, p->pss_series, p->pss);
		return;
	}
	p->pss = 0;
	if (rc == -EACCES || rc == -EPERM) {
		j->pss.denied = true;
		rec_gap(j->env.w, p->pss_series, series_reason(rc));
	}
}

/* Read on while there is budget; true: the round is complete. */
static bool go_on(struct job *j)
{
	struct task_table *t = j->tasks->table;
	for (size_t i = 0; i < t->n; i++) {
		struct task *task = t->list[i];
		struct job_process *p = task->owner;
		if (!task->job || task->gone || !p || p->pss_round == j->pss.round)
			continue;
		if (j->pss.budget_ns <= 0)
			return false;
		int64_t before = thread_cpu_ns();
		read_one(j, task);
		j->pss.budget_ns -= thread_cpu_ns() - before;
	}
	return true;
}

static void put_sum(struct job *j)
{
	struct task_table *t = j->tasks->table;
	int64_t sum = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i]->job && !t->list[i]->gone && t->list[i]->owner)
			sum += job_process(t->list[i])->pss;
	if (j->pss.denied)
		rec_gap(j->env.w, j->series[JOB_PSS], "no permission");
	else
		rec_put_i64(j->env.w, j->series[JOB_PSS], sum);
}

void job_pss_open(struct job *j)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/self/smaps_rollup", j->env.proc_root);
	j->pss.off = access(path, F_OK);
}

void job_pss_tick(struct job *j, uint64_t t_ns)
{
	struct job_pss *s = &j->pss;
	if (s->off)
		return;
	if (!s->started_ns)
		s->started_ns = t_ns; /* the first round is due after the first pause */
	s->budget_ns += (int64_t)(j->env.interval_ns / SHARE);
	if (s->budget_ns > BURST_NS)
		s->budget_ns = BURST_NS;
	if (!s->running && t_ns - s->started_ns < ROUND_NS)
		return;
	if (!s->running) {
		s->running = true;
		s->denied = false;
		s->round++;
		s->started_ns = t_ns;
	}
	if (!go_on(j))
		return;
	s->running = false;
	put_sum(j);
}
