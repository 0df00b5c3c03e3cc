/*
 * Which reader is used, and the passes; see tasks.h.
 *
 * Loading the BPF program costs some 20 ms of CPU once, and one pass of it costs something for every task of
 * the host, of the job or not; /proc costs more per process that ran, but nothing for the others. So
 * "auto" begins with /proc, adds up what it costs more than BPF would, and changes over when that has reached
 * the price of loading: at worst twice the cost of the better choice, whatever the job does.
 */
#include "sources/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

/* As measured with caches as cold as they are at one pass a second. */
#define BPF_LOAD_NS 40000000 /* to open and load the program */
#define BPF_PASS_NS 30000    /* one pass, without tasks */
#define BPF_HOST_NS 700      /* per task of the host that is looked at */
#define BPF_TASK_NS 1500     /* per task that is read */

const struct task_reader *const task_readers[] = { &task_reader_proc, &task_reader_bpf, NULL };

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static const struct task_reader *reader_named(const char *name)
{
	for (const struct task_reader *const *r = task_readers; *r; r++)
		if (!strcmp((*r)->name, name))
			return *r;
	return NULL;
}

int tasks_open(const struct tasks_config *config, struct tasks **ret, struct err *e)
{
	bool is_auto = !config->reader || !strcmp(config->reader, "auto");
	const struct task_reader *reader =
		is_auto ? &task_reader_proc : reader_named(config->reader);
	if (!reader)
		return err_set(e, EINVAL, "there is no task reader '%s': auto, proc or bpf",
			       config->reader);
	struct tasks *t = calloc(1, sizeof(*t));
	struct task_table *table = task_table_new();
	if (!t || !table) {
		free(t);
		task_table_free(table);
		return err_set(e, ENOMEM, "out of memory");
	}
	t->config = *config;
	t->table = table;
	t->reader = reader;
	t->may_change = is_auto;
	t->loadavg = -1;
	int rc = reader->open(&t->config, &t->state, e);
	if (rc) {
		free(t);
		task_table_free(table);
		return rc;
	}
	*ret = t;
	return 0;
}

/* Tasks of the whole host: the number behind the slash in /proc/loadavg. 0: not known. */
static uint64_t host_tasks(struct tasks *t)
{
	char text[128];
	if (t->loadavg < 0) {
		int root = open(t->config.proc_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return 0;
		t->loadavg = openat(root, "loadavg", O_RDONLY | O_CLOEXEC);
		close(root);
	}
	if (t->loadavg < 0 || io_pread_text(t->loadavg, text, sizeof(text)) < 0)
		return 0;
	const char *p = strchr(text, '/');
	uint64_t n = 0;
	return p && p++ && io_parse_u64(&p, &n) ? n : 0;
}

/* Only who ran in the last pass is read in full, by either. */
static uint64_t bpf_estimate_ns(struct tasks *t)
{
	uint64_t threads = 0;
	for (size_t i = 0; i < t->table->nchanged; i++)
		threads += (uint64_t)t->table->changed[i]->nthreads;
	return BPF_PASS_NS + BPF_HOST_NS * host_tasks(t) + BPF_TASK_NS * threads;
}

static void forget_all(struct tasks *t)
{
	for (size_t i = 0; i < t->table->n; i++)
		t->reader->forget(t->state, t->table->list[i]);
}

/* Change to BPF; what /proc holds is released, what was counted stays. */
static void change_to_bpf(struct tasks *t)
{
	void *state = NULL;
	t->may_change = false;
	if (task_reader_bpf.open(&t->config, &state, NULL))
		return;
	forget_all(t);
	t->reader->close(t->state);
	t->reader = &task_reader_bpf;
	t->state = state;
}

static void consider_change(struct tasks *t)
{
	if (t->cost_ns < BPF_PASS_NS)
		return;
	uint64_t other = bpf_estimate_ns(t);
	if (t->cost_ns > other)
		t->paid_ns += t->cost_ns - other;
	if (t->paid_ns > BPF_LOAD_NS)
		change_to_bpf(t);
}

int tasks_read(struct tasks *t)
{
	if (t->may_change)
		consider_change(t);
	uint64_t before = thread_cpu_ns();
	task_table_pass(t->table);
	int rc = t->reader->read(t->state, t->table);
	t->cost_ns = thread_cpu_ns() - before;
	return rc;
}

struct sweep {
	struct tasks *t;
	bool (*drop)(struct task *, void *);
	void *arg;
};

static bool sweep_one(struct task *task, void *arg)
{
	struct sweep *s = arg;
	if (!s->drop(task, s->arg))
		return false;
	s->t->reader->forget(s->t->state, task);
	return true;
}

void tasks_sweep(struct tasks *t, bool (*drop)(struct task *, void *), void *arg)
{
	struct sweep s = { t, drop, arg };
	task_table_sweep(t->table, sweep_one, &s);
}

void tasks_close(struct tasks *t)
{
	if (!t)
		return;
	forget_all(t);
	t->reader->close(t->state);
	task_table_free(t->table);
	if (t->loadavg >= 0)
		close(t->loadavg);
	free(t);
}
