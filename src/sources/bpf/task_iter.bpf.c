// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The BPF task iterator: one read of it walks all tasks of the reader's pid namespace and writes a record
 * for each that is of interest. In the job's mode those are the descendants of the recorder (and of the process
 * it was attached to): who is found to have a member as parent becomes a member, and stays one when it is
 * re-parented. Kernel types are declared here with only the fields that are used; libbpf finds where
 * the running kernel keeps them (CO-RE), so nothing of the build machine's kernel is needed.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "task_iter.h"

#define PF_KTHREAD   0x00200000
#define SIGCHLD      17
#define SA_NOCLDWAIT 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct percpu_counter {
	__s64 count;
};

struct mm_struct {
	unsigned long hiwater_rss;
	struct percpu_counter rss_stat[4];
};

/* Before 6.2: four longs. */
struct mm_rss_stat {
	int events_flag;
};

struct mm_struct___old {
	struct mm_rss_stat rss_stat;
};

struct prev_cputime {
	__u64 utime, stime;
};

struct task_io_accounting {
	__u64 rchar, wchar, read_bytes, write_bytes;
};

struct sched_info {
	unsigned long long run_delay, last_arrival;
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct signal_struct {
	int nr_threads;
	__u64 utime, stime, cutime, cstime;
	struct prev_cputime prev_cputime;
	unsigned long nvcsw, nivcsw, cnvcsw, cnivcsw;
	unsigned long min_flt, maj_flt, cmin_flt, cmaj_flt;
	struct task_io_accounting ioac;
	unsigned long long sum_sched_runtime;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct list_head {
	struct list_head *next, *prev;
};

struct task_struct {
	unsigned int flags;
	int exit_state;
	int on_rq;
	int pid, tgid;
	struct mm_struct *mm;
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
	struct list_head thread_node; /* the threads of its process, and the head of their list */
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct sched_entity se;
	struct sched_info sched_info;
	__u64 utime, stime;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	__u64 start_boottime;
	char comm[16];
	struct task_io_accounting ioac;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

const volatile struct task_iter_constants constants; /* said by the loader */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 17);
	__type(key, __u32);   /* tgid in the first pid namespace */
	__type(value, __u64); /* start_boottime */
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task_iter_pass);
} pass SEC(".maps");

static __always_inline unsigned int pid_of(struct task_struct *task)
{
	unsigned int level = constants.pid_level;
	int nr = 0;
	if (!level)
		return (unsigned int)task->pid;
	struct pid *pid = task->thread_pid;
	if (!pid || pid->level < level)
		return 0;
	const void *at = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
			 level * bpf_core_type_size(struct upid) +
			 bpf_core_field_offset(struct upid, nr);
	bpf_probe_read_kernel(&nr, sizeof(nr), at);
	return (unsigned int)nr;
}

static __always_inline int is_member(struct task_struct *leader)
{
	__u32 key = (__u32)leader->tgid;
	__u64 *start = bpf_map_lookup_elem(&members, &key);
	return start && *start == leader->start_boottime;
}

/* Is it of the job? Who is so for the first time is remembered. leader: of its thread group. */
static __always_inline int of_job(struct task_struct *leader)
{
	if (is_member(leader))
		return 1;
	struct task_struct *parent = leader->real_parent->group_leader;
	unsigned int ppid = pid_of(parent);
	unsigned int pid = pid_of(leader);
	if ((!ppid || ppid != constants.recorder) && pid != constants.job && !is_member(parent))
		return 0;
	if (pid == constants.recorder)
		return 0;
	__u32 key = (__u32)leader->tgid;
	__u64 start = leader->start_boottime;
	bpf_map_update_elem(&members, &key, &start, BPF_ANY);
	return 1;
}

static __always_inline int bit_is_set(const unsigned long long *bits, unsigned int i)
{
	return bits[i / 64 % (TI_BITS / 64)] >> i % 64 & 1;
}

static __always_inline void set_bit(unsigned long long *bits, unsigned int i)
{
	bits[i / 64 % (TI_BITS / 64)] |= 1ull << i % 64;
}

/*
 * Did it sleep ever since the last pass? It was not running then, is not now, and did not begin to in between.
 * Now and then it is looked at all the same, since others may take its memory.
 */
static __always_inline int slept(struct task_iter_pass *p, struct task_struct *task)
{
	unsigned int pid = (unsigned int)task->pid, now = p->number & 1;
	int was = bit_is_set(p->running[!now], pid);
	if (task->on_rq) {
		set_bit(p->running[now], pid);
		return 0;
	}
	return !was && !p->whole && task->sched_info.last_arrival < p->since &&
	       (pid + p->number) % 64;
}

static __always_inline void begin(struct task_iter_pass *p)
{
	if (bpf_core_field_exists(struct task_struct, sched_info))
		p->now = bpf_get_current_task_btf()->sched_info.last_arrival;
	else
		p->whole = 1;
}

/*
 * One counter of memory, in pages. Since 6.2 each CPU holds back some pages of it; who needs it to the
 * page asks /proc.
 */
static __always_inline long long mm_count(struct mm_struct *mm, unsigned int i)
{
	const char *at = (const char *)mm;
	long n = 0;
	if (bpf_core_type_exists(struct mm_rss_stat))
		at += bpf_core_field_offset(struct mm_struct___old, rss_stat) + i * sizeof(n);
	else
		at += bpf_core_field_offset(struct mm_struct, rss_stat) +
		      i * bpf_core_type_size(struct percpu_counter) +
		      bpf_core_field_offset(struct percpu_counter, count);
	bpf_probe_read_kernel(&n, sizeof(n), at);
	return n < 0 ? 0 : n;
}

static __always_inline void memory(struct task_record_thread *r, struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	r->rss = r->swapped = 0;
	if (!mm)
		return;
	r->rss = mm_count(mm, 0) + mm_count(mm, 1) + mm_count(mm, 3);
	r->swapped = mm_count(mm, 2);
	r->flags |= TI_MEMORY | (bpf_core_type_exists(struct mm_rss_stat) ? TI_EXACT : 0);
}

static __always_inline void head(struct task_record_thread *r, struct task_struct *task)
{
	r->flags |= task->flags & PF_KTHREAD ? TI_KERNEL : 0;
	r->flags |= task->exit_state ? TI_ZOMBIE : 0;
	r->tid = pid_of(task);
	r->key = (unsigned int)task->tgid;
	__builtin_memcpy(r->comm, task->comm, sizeof(r->comm));
	r->run_delay = task->sched_info.run_delay;
}

static __always_inline void thread_sums(struct task_record_thread *r, struct task_struct *task)
{
	r->sum[TI_UTIME] = task->utime;
	r->sum[TI_STIME] = task->stime;
	r->sum[TI_RUNTIME] = task->se.sum_exec_runtime;
	r->sum[TI_VOLUNTARY] = task->nvcsw;
	r->sum[TI_INVOLUNTARY] = task->nivcsw;
	r->sum[TI_MINOR_FAULTS] = task->min_flt;
	r->sum[TI_MAJOR_FAULTS] = task->maj_flt;
	r->sum[TI_RCHAR] = task->ioac.rchar;
	r->sum[TI_WCHAR] = task->ioac.wchar;
	r->sum[TI_READ_BYTES] = task->ioac.read_bytes;
	r->sum[TI_WRITE_BYTES] = task->ioac.write_bytes;
}

static __always_inline void process_sums(struct task_record_process *r, struct signal_struct *s)
{
	r->t.sum[TI_UTIME] += s->utime;
	r->t.sum[TI_STIME] += s->stime;
	r->t.sum[TI_RUNTIME] += s->sum_sched_runtime;
	r->t.sum[TI_VOLUNTARY] += s->nvcsw;
	r->t.sum[TI_INVOLUNTARY] += s->nivcsw;
	r->t.sum[TI_MINOR_FAULTS] += s->min_flt;
	r->t.sum[TI_MAJOR_FAULTS] += s->maj_flt;
	r->t.sum[TI_RCHAR] += s->ioac.rchar;
	r->t.sum[TI_WCHAR] += s->ioac.wchar;
	r->t.sum[TI_READ_BYTES] += s->ioac.read_bytes;
	r->t.sum[TI_WRITE_BYTES] += s->ioac.write_bytes;
	r->nthreads = (unsigned int)s->nr_threads;
	r->said_utime = s->prev_cputime.utime;
	r->said_stime = s->prev_cputime.stime;
	r->child[TI_C_UTIME] = s->cutime;
	r->child[TI_C_STIME] = s->cstime;
	r->child[TI_C_VOLUNTARY] = s->cnvcsw;
	r->child[TI_C_INVOLUNTARY] = s->cnivcsw;
	r->child[TI_C_MINOR] = s->cmin_flt;
	r->child[TI_C_MAJOR] = s->cmaj_flt;
}

static __always_inline int ignores_children(struct task_struct *task)
{
	struct sighand_struct *sighand = task->sighand;
	if (!sighand)
		return 0;
	return sighand->action[SIGCHLD - 1].sa.sa_handler == (void *)1 ||
	       sighand->action[SIGCHLD - 1].sa.sa_flags & SA_NOCLDWAIT;
}

static __always_inline void write_process(struct seq_file *seq, struct task_struct *task, int job)
{
	struct task_record_process r = { .t.kind = TI_PROCESS, .t.flags = job ? TI_JOB : 0 };
	struct mm_struct *mm = task->mm;
	head(&r.t, task);
	r.t.pid = r.t.tid;
	memory(&r.t, task);
	thread_sums(&r.t, task);
	r.main_utime = r.t.sum[TI_UTIME];
	r.main_stime = r.t.sum[TI_STIME];
	r.main_runtime = r.t.sum[TI_RUNTIME];
	process_sums(&r, task->signal);
	if (!r.nthreads)
		return; /* just being reaped: its counts may be in both places */
	r.t.flags |= ignores_children(task) ? TI_AUTOREAP : 0;
	r.peak_rss = mm ? mm->hiwater_rss : 0;
	r.start = task->start_boottime;
	r.ppid = pid_of(task->real_parent->group_leader);
	bpf_seq_write(seq, &r, sizeof(r));
}

static __always_inline void write_thread(struct seq_file *seq, struct task_struct *task,
					 struct task_struct *leader, int job)
{
	struct task_record_thread r = { .kind = TI_THREAD, .flags = job ? TI_JOB : 0 };
	head(&r, task);
	r.pid = pid_of(leader);
	if (leader->exit_state)
		memory(&r, task);
	thread_sums(&r, task);
	bpf_seq_write(seq, &r, sizeof(r));
}

/* Left out: is it of interest at all, and if so, counted? */
static __always_inline void skip(struct task_iter_pass *p, struct task_struct *task)
{
	if (!constants.all && !is_member(task))
		return;
	p->skipped++;
	set_bit(p->present, (unsigned int)task->tgid);
	p->skipped_sum += task_iter_mix((unsigned int)task->tgid);
}

SEC("iter/task")
int task_iter(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 zero = 0;
	struct task_iter_pass *p = bpf_map_lookup_elem(&pass, &zero);
	if (!task || !p || (!constants.all && task->flags & PF_KTHREAD))
		return 0;
	if (!p->now)
		begin(p);
	int main = task->pid == task->tgid, idle = slept(p, task);
	/* Who slept and is no member has not become one. */
	if (idle && !constants.all && !bit_is_set(p->member, (unsigned int)task->tgid))
		return 0;
	/* It is the only one of its process: before and behind it stands the head of the list. */
	if (idle && main && task->thread_node.next == task->thread_node.prev) {
		skip(p, task);
		return 0;
	}
	struct task_struct *leader = task->group_leader;
	int job = of_job(leader);
	if (job)
		set_bit(p->member, (unsigned int)task->tgid);
	if (!job && !constants.all)
		return 0;
	if (main)
		write_process(ctx->meta->seq, task, job);
	else
		write_thread(ctx->meta->seq, task, leader, job);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
