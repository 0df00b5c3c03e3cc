/*
 * The task reader over a BPF iterator; see tasks.h and bpf/task_iter.bpf.c. One read gives all tasks of
 * interest; here the threads of a process are added up and its CPU time is divided as the kernel does it.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "sources/bpf/task_iter.h"
#include "sources/tasks.h"
#include "sources/tasks_bpf_load.h"
#include "sources/tasks_parse.h"

#define BUFFER   65536
#define SLACK_NS 20000000 /* the clocks of two CPUs may differ by so much */
#define REREAD   32   /* passes after which a sleeper of the job is asked again for its memory */
#define PRECISE  1000 /* memory may be off by one in so many */

/* All that must be touched of a process that sleeps. */
struct bpf_entry {
	struct task *task;
	uint32_t key, seen;
};

struct bpf_reader {
	struct tasks_config config;
	struct tasks_bpf_fds fds;
	struct task_iter_pass *pass; /* mapped */
	struct bpf_entry *list;      /* of all processes */
	size_t n, cap;
	uint32_t run;         /* of the iterator: a pass may take two */
	uint64_t load_ns;     /* CPU time of the child that loaded the program */
	int root;             /* /proc, for what the iterator says only about */
	uint64_t vague_pages; /* the kernel's counters of memory are right to so many */
	uint64_t page_bytes;
	char *buffer;
};

/* task->reader of a process that this reader watches. */
struct bpf_task {
	uint32_t run; /* of the iterator, that the sums are of */
	size_t entry; /* in bpf_reader.list */
	uint64_t sum[TI_SUMS];
	uint64_t said_user, said_system;
	int64_t main_delay, rss, swapped; /* pages */
	uint64_t peak_rss;
	unsigned flags;
	uint64_t runtime; /* when rss was last asked of /proc */
	int64_t rss_then, rss_exact;
	uint32_t asked; /* at this run; 0: never */
};

static void begin_run(struct bpf_task *b, uint32_t run)
{
	if (b->run == run)
		return;
	memset(b->sum, 0, sizeof(b->sum));
	b->rss = b->swapped = 0;
	b->flags = 0;
	b->run = run;
}

/* From now on this reader watches it. NULL: out of memory. */
static struct bpf_task *adopt(struct bpf_reader *r, struct task *task)
{
	if (task->reader)
		return task->reader;
	if (r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 64;
		struct bpf_entry *list = realloc(r->list, cap * sizeof(*list));
		if (!list)
			return NULL;
		r->list = list;
		r->cap = cap;
	}
	struct bpf_task *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->entry = r->n;
	r->list[r->n++] = (struct bpf_entry){ .task = task };
	task->reader = b;
	return b;
}

/* It is gone: nobody expects it any more. */
static void drop_entry(struct bpf_reader *r, struct task *task)
{
	struct bpf_task *b = task->reader;
	if (!b || b->entry >= r->n || r->list[b->entry].task != task)
		return;
	r->list[b->entry] = r->list[--r->n];
	((struct bpf_task *)r->list[b->entry].task->reader)->entry = b->entry;
	b->entry = SIZE_MAX;
}

static void add_up(struct bpf_task *b, const struct task_record_thread *r)
{
	for (int i = 0; i < TI_SUMS; i++)
		b->sum[i] += r->sum[i];
	if (r->flags & TI_MEMORY && !(b->flags & TI_MEMORY)) {
		b->rss = r->rss;
		b->swapped = r->swapped;
	}
	b->flags |= r->flags;
}

static struct task *process_of(struct bpf_reader *reader, struct task_table *t,
			       const struct task_record_process *r)
{
	uint64_t start = r->start / TASK_TICK_NS;
	pid_t pid = (pid_t)r->t.pid;
	struct task *task = task_find(t, pid);
	if (task && task->start != start) {
		drop_entry(reader, task);
		task_gone(t, task);
		task = NULL;
	}
	return task ? task : task_add(t, pid, start);
}

static void take_name(struct task *task, const char *comm)
{
	if (!strncmp(task->comm, comm, TASK_COMM - 1))
		return;
	task->renamed = task->comm[0];
	memcpy(task->comm, comm, TASK_COMM - 1);
	task->comm[TASK_COMM - 1] = 0;
}

static void take_thread(struct bpf_reader *reader, struct task *task,
			const struct task_record_thread *r, const uint64_t cpu[3])
{
	struct task_thread *thread = task_thread_get(task, (pid_t)r->tid);
	if (!thread)
		return;
	thread->seen = reader->run;
	thread->run_delay = (int64_t)r->run_delay;
	if (!reader->config.threads)
		return;
	memcpy(thread->comm, r->comm, TASK_COMM - 1);
	task_split_cpu(cpu[0], cpu[1], cpu[2], &thread->user, &thread->system);
}

static void take_process(struct bpf_reader *reader, struct task_table *t,
			 const struct task_record_process *r)
{
	static const struct {
		int counter, child;
	} reaped[] = {
		{ TASK_USER, TI_C_UTIME },          { TASK_SYSTEM, TI_C_STIME },
		{ TASK_MINOR_FAULTS, TI_C_MINOR },  { TASK_MAJOR_FAULTS, TI_C_MAJOR },
		{ TASK_VOLUNTARY, TI_C_VOLUNTARY }, { TASK_INVOLUNTARY, TI_C_INVOLUNTARY },
	};
	struct task *task = process_of(reader, t, r);
	struct bpf_task *b = task ? adopt(reader, task) : NULL;
	if (!b)
		return;
	reader->list[b->entry].key = r->t.key;
	reader->list[b->entry].seen = reader->run;
	task_changed(t, task);
	begin_run(b, reader->run);
	add_up(b, &r->t);
	b->said_user = r->said_utime;
	b->said_system = r->said_stime;
	b->main_delay = (int64_t)r->t.run_delay;
	b->peak_rss = r->peak_rss;
	task->key = r->t.key;
	task->ppid = (pid_t)r->ppid;
	task->nthreads = r->nthreads;
	task->job |= r->t.flags & TI_JOB;
	task->kernel = r->t.flags & TI_KERNEL;
	task->autoreap = r->t.flags & TI_AUTOREAP;
	task->state = r->t.flags & TI_ZOMBIE ? 'Z' : 0;
	take_name(task, r->t.comm);
	for (size_t i = 0; i < sizeof(reaped) / sizeof(*reaped); i++) {
		task->reaped[reaped[i].counter] = (int64_t)r->child[reaped[i].child];
		task->reaped_have |= 1u << reaped[i].counter;
	}
	if (r->nthreads > 1 || task->nlisted)
		take_thread(reader, task, &r->t,
			    (uint64_t[]){ r->main_utime, r->main_stime, r->main_runtime });
}

static void take_other_thread(struct bpf_reader *reader, struct task_table *t,
			      const struct task_record_thread *r)
{
	struct task *task = task_find(t, (pid_t)r->pid);
	if (!task || !task->reader || task->key != r->key)
		return; /* its process was not seen yet: all of it at the next pass */
	begin_run(task->reader, reader->run);
	add_up(task->reader, r);
	take_thread(reader, task, r, (const uint64_t *)r->sum);
}

/* -------------------------------------------------------------------------- once all was added up */

/*
 * Since 6.2 each CPU holds back some pages of each counter. Where that matters, /proc is asked, which adds them
 * all up; in between its answer is moved by what the iterator sees change.
 */
static int64_t exact_rss(const struct bpf_reader *reader, const struct task *task,
			 struct bpf_task *b)
{
	char path[48], text[128];
	uint64_t pages;
	if (b->flags & TI_EXACT || (uint64_t)b->rss > reader->vague_pages * PRECISE ||
	    (task->state == 'Z' && task->nthreads > 1))
		return b->rss;
	bool ran = b->runtime != b->sum[TI_RUNTIME] || !b->asked;
	if (ran || (task->job && reader->run - b->asked >= REREAD)) {
		snprintf(path, sizeof(path), "%d/statm", (int)task->pid);
		if (io_read_text(reader->root, path, text, sizeof(text)) > 0 &&
		    task_parse_statm(text, &pages)) {
			b->rss_exact = (int64_t)pages;
			b->rss_then = b->rss;
			b->asked = reader->run;
			b->runtime = b->sum[TI_RUNTIME];
		}
	}
	int64_t rss = b->asked ? b->rss_exact + b->rss - b->rss_then : b->rss;
	return rss > 0 ? rss : 0;
}

static void finish_memory(const struct bpf_reader *reader, struct task *task, struct bpf_task *b)
{
	if (task->kernel)
		return;
	bool there = b->flags & TI_MEMORY;
	task->rss = (there ? exact_rss(reader, task, b) : 0) * (int64_t)reader->page_bytes;
	task->swapped = b->swapped * (int64_t)reader->page_bytes;
	task->peak_rss = (int64_t)(b->peak_rss * reader->page_bytes);
	if (task->peak_rss && task->peak_rss < task->rss)
		task->peak_rss = task->rss;
	task->have |= TASK_HAS_RSS | TASK_HAS_SWAPPED;
}

static int64_t run_delay(const struct task *task, const struct bpf_task *b)
{
	if (!task->nlisted)
		return b->main_delay + task->dead_delay;
	int64_t delay = task->dead_delay;
	for (size_t i = 0; i < task->nlisted; i++)
		delay += task->threads[i].run_delay;
	return delay;
}

static int64_t at_least(int64_t a, uint64_t b)
{
	return a > (int64_t)b ? a : (int64_t)b;
}

static void finish(const struct bpf_reader *reader, struct task *task)
{
	struct bpf_task *b = task->reader;
	const uint64_t *sum = b->sum;
	int64_t *own = task->own;
	task_threads_sweep(task, b->run);
	own[TASK_USER] = at_least(own[TASK_USER], b->said_user);
	own[TASK_SYSTEM] = at_least(own[TASK_SYSTEM], b->said_system);
	task_split_cpu(sum[TI_UTIME], sum[TI_STIME], sum[TI_RUNTIME], &own[TASK_USER],
		       &own[TASK_SYSTEM]);
	own[TASK_RUN_DELAY] = run_delay(task, b);
	own[TASK_MINOR_FAULTS] = (int64_t)sum[TI_MINOR_FAULTS];
	own[TASK_MAJOR_FAULTS] = (int64_t)sum[TI_MAJOR_FAULTS];
	own[TASK_VOLUNTARY] = (int64_t)sum[TI_VOLUNTARY];
	own[TASK_INVOLUNTARY] = (int64_t)sum[TI_INVOLUNTARY];
	own[TASK_READ] = (int64_t)sum[TI_RCHAR];
	own[TASK_WRITTEN] = (int64_t)sum[TI_WCHAR];
	own[TASK_DISK_READ] = (int64_t)sum[TI_READ_BYTES];
	own[TASK_DISK_WRITTEN] = (int64_t)sum[TI_WRITE_BYTES];
	task->have |= (1u << TASK_COUNTERS) - 1;
	finish_memory(reader, task, b);
	task->fresh = task->have;
	task->denied = 0;
	task->stale = false;
}

/* ------------------------------------------------------------------------------------------ a pass */

/* Take all whole records from the n bytes in the buffer; the bytes that are left. */
static size_t take_records(struct bpf_reader *r, struct task_table *t, size_t n)
{
	size_t at = 0;
	while (n - at >= sizeof(struct task_record_thread)) {
		const void *record = r->buffer + at;
		const struct task_record_thread *thread = record;
		size_t size = thread->kind == TI_PROCESS ? sizeof(struct task_record_process)
							 : sizeof(*thread);
		if (n - at < size)
			break;
		if (thread->kind == TI_PROCESS)
			take_process(r, t, record);
		else
			take_other_thread(r, t, thread);
		at += size;
	}
	memmove(r->buffer, r->buffer + at, n - at);
	return n - at;
}

static int run_iterator(struct bpf_reader *r, struct task_table *t, bool whole)
{
	struct task_iter_pass *p = r->pass;
	int fd = bpf_iter_create(r->fds.link);
	if (fd < 0)
		return fd;
	r->run++;
	p->number++;
	p->whole = whole;
	p->skipped = p->skipped_sum = 0;
	p->since = p->now > SLACK_NS ? p->now - SLACK_NS : 0;
	p->now = 0;
	memset(p->running[p->number & 1], 0, sizeof(p->running[0]));
	memset(p->present, 0, sizeof(p->present));
	size_t have = 0;
	ssize_t n;
	do {
		n = read(fd, r->buffer + have, BUFFER - have);
		if (n > 0)
			have = take_records(r, t, have + (size_t)n);
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	int rc = n < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static bool was_left_out(const struct bpf_reader *r, uint32_t key)
{
	uint32_t bit = key % TI_BITS;
	return r->pass->present[bit / 64] >> bit % 64 & 1;
}

/*
 * End those that were neither seen nor left out. False: those that were left out are not all of the others, since
 * two that are TI_BITS apart share a bit, or somebody slept through who was never seen.
 */
static bool end_missing(struct bpf_reader *r, struct task_table *t)
{
	uint64_t n = 0, sum = 0;
	for (size_t i = r->n; i-- > 0;) {
		struct bpf_entry e = r->list[i];
		if (e.seen == r->run)
			continue;
		if (was_left_out(r, e.key)) {
			n++;
			sum += task_iter_mix(e.key);
		} else {
			drop_entry(r, e.task);
			task_gone(t, e.task);
		}
	}
	return n == r->pass->skipped && sum == r->pass->skipped_sum;
}

static int read_all(void *state, struct task_table *t)
{
	struct bpf_reader *r = state;
	int rc = run_iterator(r, t, !r->run);
	if (!rc && !end_missing(r, t)) {
		rc = run_iterator(r, t, true);
		if (!rc)
			end_missing(r, t);
	}
	for (size_t i = 0; i < t->nchanged; i++)
		if (!t->changed[i]->gone)
			finish(r, t->changed[i]);
	return rc;
}

static void forget(void *state, struct task *task)
{
	struct bpf_reader *r = state;
	if (task->gone && task->reader)
		bpf_map_delete_elem(r->fds.members, &task->key);
	drop_entry(r, task);
	free(task->reader);
	task->reader = NULL;
}

/* ----------------------------------------------------------------------------------- open and close */

static void close_reader(void *state)
{
	struct bpf_reader *r = state;
	if (r->pass)
		munmap(r->pass, sizeof(*r->pass));
	tasks_bpf_close(&r->fds);
	if (r->root >= 0)
		close(r->root);
	free(r->list);
	free(r->buffer);
	free(r);
}

static int open_reader(const struct tasks_config *config, void **ret_state, struct err *e)
{
	struct bpf_reader *r = calloc(1, sizeof(*r));
	char *buffer = malloc(BUFFER);
	if (!r || !buffer) {
		free(r);
		free(buffer);
		return err_set(e, ENOMEM, "out of memory");
	}
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t ncpus = cpus > 0 ? (uint64_t)cpus : 1;
	r->config = *config;
	r->buffer = buffer;
	r->fds = (struct tasks_bpf_fds){ -1, -1, -1 };
	r->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	/* Three counters, each with a batch of max(32, 2 per CPU) on each CPU. */
	r->vague_pages = 3 * ncpus * (ncpus > 16 ? 2 * ncpus : 32);
	r->root = open(config->proc_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = tasks_bpf_load(config, &r->fds, &r->load_ns, e);
	if (!rc) {
		void *p = mmap(NULL, sizeof(*r->pass), PROT_READ | PROT_WRITE, MAP_SHARED,
			       r->fds.pass, 0);
		r->pass = p == MAP_FAILED ? NULL : p;
		rc = r->pass ? 0
			     : err_set(e, errno, "a BPF map cannot be mapped: %s", strerror(errno));
	}
	if (rc) {
		close_reader(r);
		return rc;
	}
	*ret_state = r;
	return 0;
}

static int probe(const struct tasks_config *config, struct buf *why)
{
	struct err e = { 0 };
	struct tasks_bpf_fds fds = { -1, -1, -1 };
	uint64_t cpu_ns = 0;
	int rc = tasks_bpf_load(config, &fds, &cpu_ns, &e);
	buf_adds(why, rc ? e.text : "the BPF task iterator loads");
	tasks_bpf_close(&fds);
	return rc;
}

static uint64_t helper_ns(const void *state)
{
	const struct bpf_reader *r = state;
	return r->load_ns;
}

const struct task_reader task_reader_bpf = {
	.name = "bpf",
	.help = "a BPF task iterator: one read gives all tasks",
	.probe = probe,
	.open = open_reader,
	.read = read_all,
	.forget = forget,
	.close = close_reader,
	.helper_ns = helper_ns,
};
