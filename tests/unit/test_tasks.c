/*
 * The task readers on live processes: what each says alone, that both say the same, and bad luck. The tests of
 * the BPF reader are skipped where the kernel or the rights do not allow it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/sched.h>
#include <sys/syscall.h>

#include "live.h"
#include "sources/tasks.h"
#include "sources/tasks_parse.h"
#include "tree.h"

#define MB 1000000

static const char *const readers[] = { "proc", "bpf" };

static struct tasks_config config_of(const char *reader)
{
	return (struct tasks_config){
		.proc_root = "/proc",
		.interval_ns = 1000000000,
		.recorder_pid = getpid(),
		.reader = reader,
	};
}

/* NULL: this reader does not work here. */
static struct tasks *open_with(const struct tasks_config *config)
{
	struct tasks *t = NULL;
	struct err e = { 0 };
	if (!tasks_open(config, &t, &e))
		return t;
	print_message("%s: %s\n", config->reader, e.text);
	assert_string_equal(config->reader, "bpf");
	return NULL;
}

static struct tasks *open_reader(const char *reader)
{
	struct tasks_config config = config_of(reader);
	return open_with(&config);
}

static struct task *read_and_find(struct tasks *t, pid_t pid)
{
	assert_int_equal(tasks_read(t), 0);
	return task_find(t->table, pid);
}

static bool drop_all(struct task *task, void *arg)
{
	return true;
}

/* ------------------------------------------------------------------------------------------ parsing */

static const char stat_text[] =
	"42 (x) R 1 (\ny) S 7 42 42 0 -1 4194304 101 102 3 4 55 66 77 88 20 -5 9 0 123456 1000 200 "
	"18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

static void parse_stat(void **state)
{
	struct task_stat s;
	assert_true(task_parse_stat(stat_text, &s));
	assert_int_equal(s.pid, 42);
	assert_string_equal(s.comm, "x) R 1 (\ny");
	assert_int_equal(s.state, 'S');
	assert_int_equal(s.ppid, 7);
	assert_int_equal(s.minor_faults, 101);
	assert_int_equal(s.reaped_minor_faults, 102);
	assert_int_equal(s.major_faults, 3);
	assert_int_equal(s.reaped_major_faults, 4);
	assert_int_equal(s.user, 55);
	assert_int_equal(s.system, 66);
	assert_int_equal(s.reaped_user, 77);
	assert_int_equal(s.reaped_system, 88);
	assert_int_equal(s.nthreads, 9);
	assert_int_equal(s.start, 123456);
	assert_false(s.kernel);
}

/* Cut anywhere, the text is refused or understood, never read behind its end. */
static void parse_cut_texts(void **state)
{
	static const char *const texts[] = {
		stat_text,
		"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
		"cancelled_write_bytes: 7\n",
		"Name:\tx\nVmHWM:\t 12 kB\nVmRSS:\t 11 kB\nSigIgn:\t0000000000010000\n"
		"voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n",
		"1 2 3\n",
	};
	for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
		for (size_t n = 0; n <= strlen(texts[k]); n++) {
			char *text = strndup(texts[k], n); /* a sanitizer guards its end */
			struct task_stat s;
			struct task_io io;
			struct task_status status;
			uint64_t a, b, c;
			const char *p = text;
			pid_t pid;
			task_parse_stat(text, &s);
			task_parse_io(text, &io);
			task_parse_status(text, &status);
			task_parse_statm(text, &a);
			task_parse_schedstat(text, &a, &b, &c);
			while (task_parse_child(&p, &pid))
				;
			free(text);
		}
	}
}

static void parse_status_and_io(void **state)
{
	struct task_status s;
	struct task_io io;
	task_parse_status("Name:\tVmRSS: 9\nNSpid:\t70\t1\nVmHWM:\t 12 kB\nVmRSS:\t 11 kB\n"
			  "VmSwap:\t 3 kB\nSigIgn:\t0000000000011006\n"
			  "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n",
			  &s);
	assert_true(s.have_memory && s.have_switches && s.ignores_sigchld);
	assert_int_equal(s.peak_rss, 12 * 1024);
	assert_int_equal(s.rss, 11 * 1024);
	assert_int_equal(s.swapped, 3 * 1024);
	assert_int_equal(s.voluntary, 5);
	assert_int_equal(s.involuntary, 6);
	assert_int_equal(s.pid_level, 1);
	task_parse_status("SigIgn:\t00000000000a0000\n", &s);
	assert_false(s.ignores_sigchld || s.have_memory || s.have_switches);
	assert_true(task_parse_io("rchar: 1\nwchar: 2\nread_bytes: 5\nwrite_bytes: 6\n"
				  "cancelled_write_bytes: 7\n",
				  &io));
	assert_int_equal(io.disk_written, 6);
	assert_false(task_parse_io("rchar: 1\n", &io));
}

/* ---------------------------------------------------------------------------------------- the table */

static void table_tells_pids_that_came_again_apart(void **state)
{
	struct task_table *t = task_table_new();
	task_table_pass(t);
	struct task *a = task_add(t, 100, 5);
	task_gone(t, a);
	assert_null(task_find(t, 100));
	struct task *b = task_add(t, 100, 9);
	task_gone(t, a); /* again: b stays */
	assert_ptr_equal(task_find(t, 100), b);
	assert_false(b->gone);
	assert_true(a->gone);
	assert_int_equal(t->n, 2);
	task_table_free(t);
}

static void threads_that_ended_stay_counted(void **state)
{
	struct task_table *t = task_table_new();
	struct task *task = task_add(t, 1, 1);
	for (pid_t tid = 30; tid > 0; tid--) {
		struct task_thread *thread = task_thread_get(task, tid);
		thread->seen = tid % 3 ? 1 : 2;
		thread->run_delay = 10;
		thread->voluntary = 1;
		thread->entity = tid == 1;
	}
	assert_int_equal(task->nlisted, 30);
	task_threads_sweep(task, 2);
	assert_int_equal(task->nlisted, 10);
	assert_int_equal(task->dead_delay, 200);
	assert_int_equal(task->dead_voluntary, 20);
	assert_int_equal(task->nended, 1);
	for (size_t i = 0; i < task->nlisted; i++)
		assert_int_equal(task->threads[i].tid, 3 * (int)(i + 1));
	task_table_free(t);
}

static void cpu_is_split_as_the_ticks_fell(void **state)
{
	int64_t user = 0, system = 0;
	task_split_cpu(75, 25, 1000, &user, &system);
	assert_int_equal(user, 750);
	assert_int_equal(system, 250);
	task_split_cpu(75, 75, 1100, &user, &system); /* the user's part may not shrink */
	assert_int_equal(user, 750);
	assert_int_equal(system, 350);
	task_split_cpu(1000, 1000, 900, &user, &system); /* nor the sum */
	assert_int_equal(user + system, 1100);
	user = system = 0;
	task_split_cpu(0, 0, 77, &user, &system);
	assert_int_equal(user, 77);
	user = system = 0;
	task_split_cpu(0, 4, 77, &user, &system);
	assert_int_equal(system, 77);
}

/* ---------------------------------------------------------------------------- both say the same */

static void short_child(void *arg)
{
	pid_t pid = fork();
	if (!pid) {
		live_burn_ms(15);
		live_write_read(1 << 18);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *burn_and_end(void *arg)
{
	live_burn_ms(10);
	return arg;
}

/* Threads that live and threads that ended, children waited for, memory, files. */
static void busy(void *arg)
{
	pthread_t t;
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, NULL, burn_and_end, NULL);
		pthread_join(t, NULL);
		pthread_create(&t, NULL, live_sleep, NULL);
		pthread_detach(t);
	}
	live_touch(30 * MB);
	live_write_read(1 << 20);
	live_burn_ms(30);
	for (int i = 0; i < 3; i++)
		short_child(NULL);
	usleep(5000);
}

static void assert_near(int64_t a, int64_t b, int64_t most, const char *what)
{
	if (a - b > most || b - a > most)
		fail_msg("%s: %lld and %lld", what, (long long)a, (long long)b);
}

static void assert_same(const struct task *a, const struct task *b)
{
	static const char *const names[TASK_COUNTERS] = {
		"user",    "system",    "delay",        "minor",     "major",       "read",
		"written", "disk read", "disk written", "voluntary", "involuntary",
	};
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->ppid, b->ppid);
	assert_int_equal(a->start, b->start);
	assert_string_equal(a->comm, b->comm);
	assert_int_equal(a->nthreads, b->nthreads);
	assert_int_equal(a->autoreap, b->autoreap);
	assert_int_equal(a->kernel, b->kernel);
	assert_int_equal(a->job, b->job);
	assert_int_equal(a->rss, b->rss);
	assert_int_equal(a->have & b->have, a->have);
	for (int i = 0; i < TASK_COUNTERS; i++) {
		bool cpu = i == TASK_USER || i == TASK_SYSTEM;
		if (!(a->have & b->have & 1u << i))
			continue;
		assert_near(a->own[i], b->own[i], cpu ? TASK_TICK_NS : 0, names[i]);
		if (a->reaped_have & b->reaped_have & 1u << i)
			assert_near(a->reaped[i], b->reaped[i], cpu ? TASK_TICK_NS : 0, names[i]);
	}
	assert_near(a->own[TASK_USER] + a->own[TASK_SYSTEM],
		    b->own[TASK_USER] + b->own[TASK_SYSTEM], 0, "CPU");
}

static void both_readers_say_the_same(void **state)
{
	struct tasks *bpf = open_reader("bpf");
	if (!bpf)
		skip();
	struct tasks *proc = open_reader("proc");
	struct live l[3] = { live_start(busy, NULL), live_start(short_child, NULL),
			     live_start(NULL, NULL) };
	/* Dead threads' context switches are known to /proc only if it saw them alive. */
	for (int pass = 0; pass < 3; pass++) {
		for (int i = 0; i < 3; i++)
			live_wait_asleep(l[i].pid);
		tasks_read(proc);
		tasks_read(bpf);
		for (int i = 0; i < 3; i++) {
			struct task *a = task_find(proc->table, l[i].pid);
			struct task *b = task_find(bpf->table, l[i].pid);
			assert_non_null(a);
			assert_non_null(b);
			a->have &= ~(i ? 0u : 1u << TASK_VOLUNTARY | 1u << TASK_INVOLUNTARY);
			assert_same(a, b);
		}
	}
	assert_int_equal(task_find(bpf->table, l[0].pid)->nthreads, 4);
	assert_in_range(task_find(bpf->table, l[0].pid)->rss, 30 * MB, 90 * MB);
	for (int i = 0; i < 3; i++)
		live_end(&l[i]);
	tasks_close(proc);
	tasks_close(bpf);
}

/* ---------------------------------------------------------------------------------- each of them */

static void counts_are_right(struct tasks *t)
{
	struct live l = live_start(busy, NULL);
	live_wait_asleep(l.pid);
	struct task *task = read_and_find(t, l.pid);
	assert_non_null(task);
	assert_true(task->job);
	assert_int_equal(task->ppid, getpid());
	assert_int_equal(task->nthreads, 4);
	int64_t own = task->own[TASK_USER] + task->own[TASK_SYSTEM];
	int64_t reaped = task->reaped[TASK_USER] + task->reaped[TASK_SYSTEM];
	assert_in_range(own, 60 * MB, 300 * MB);
	assert_in_range(reaped, 3 * 15 * MB - 3 * TASK_TICK_NS, 300 * MB);
	/* The process and its dead children: 1 MiB and three times 256 KiB, written and read back. */
	assert_int_equal(task->own[TASK_WRITTEN], (1 << 20) + 3 * (1 << 18) + 1);
	assert_in_range(task->own[TASK_READ], (1 << 20) + 3 * (1 << 18),
			(1 << 20) + 3 * (1 << 18) + 4096);
	assert_in_range(task->rss, 30 * MB, 90 * MB);
	live_end(&l);
	tasks_read(t);
	assert_null(task_find(t->table, l.pid));
}

static void set_name(void *arg)
{
	prctl(PR_SET_NAME, arg);
}

static void names_mean_nothing(struct tasks *t)
{
	static char *const names[] = { ") R 1 (", ") R 1 ) S", "\n1 (x) R", "((((((", "" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct live l = live_start(set_name, names[i]);
		struct task *task = read_and_find(t, l.pid);
		assert_non_null(task);
		assert_string_equal(task->comm, names[i]);
		assert_int_equal(task->ppid, getpid());
		live_end(&l);
	}
}

static void *leave_main_alone(void *arg)
{
	usleep(20000);
	live_touch(20 * MB);
	live_say_ready(*(int *)arg);
	return live_sleep(NULL);
}

/* The main thread ends, the process lives on in another. */
static void main_thread_may_end(struct tasks *t)
{
	int fds[2];
	char c;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		pthread_t thread;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&thread, NULL, leave_main_alone, &fds[1]);
		pthread_exit(NULL);
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	live_wait_asleep(pid);
	for (int i = 0; i < 2; i++) {
		struct task *task = read_and_find(t, pid);
		assert_non_null(task);
		assert_int_equal(task->state, 'Z');
		assert_int_equal(task->nthreads, 2);
		assert_in_range(task->rss, 20 * MB, 80 * MB);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

static void daemonise(void *arg)
{
	int *out = arg;
	if (fork())
		return; /* and stay, as the process that started it */
	setsid();
	pid_t pid = fork();
	if (pid) {
		if (write(out[1], &pid, sizeof(pid)) < 0)
			abort();
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, 0);
	alarm(60); /* should the test die before */
	live_sleep(NULL);
}

/* Double fork and a session of its own: it becomes the child of the subreaper, and is found. */
static void daemons_are_found(struct tasks *t)
{
	int fds[2];
	pid_t pid;
	assert_int_equal(pipe(fds), 0);
	struct live l = live_start(daemonise, fds);
	assert_int_equal(read(fds[0], &pid, sizeof(pid)), (int)sizeof(pid));
	/* While it changes its parent, a reading may miss it; a later one does not. */
	for (int i = 0; i < 100 && !read_and_find(t, pid); i++)
		usleep(10000);
	for (int i = 0; i < 3; i++) {
		struct task *task = read_and_find(t, pid);
		assert_non_null(task);
		assert_true(task->job);
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	live_end(&l);
	close(fds[0]);
	close(fds[1]);
}

/* A tree of children of children is found at once, however deep. */
static void nest(void *arg)
{
	int depth = *(int *)arg;
	if (depth) {
		int next = depth - 1;
		live_start(nest, &next);
	}
}

static void trees_are_found_at_once(struct tasks *t)
{
	int depth = 20;
	struct live l = live_start(nest, &depth);
	assert_int_equal(tasks_read(t), 0);
	size_t n = 0;
	for (size_t i = 0; i < t->table->n; i++)
		n += !t->table->list[i]->gone;
	assert_int_equal(n, 21);
	live_end(&l);
	usleep(50000); /* the others die with their parents, one after the other */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	tasks_read(t);
	tasks_sweep(t, drop_all, NULL);
}

/* Fork with the pid that was just given up; 0 where the kernel or the rights do not allow it. */
static pid_t fork_with_pid(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};
	long rc = syscall(SYS_clone3, &args, sizeof(args));
	if (rc == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live_sleep(NULL);
	}
	return rc > 0 ? (pid_t)rc : 0;
}

static void pids_come_again(struct tasks *t)
{
	struct live l = live_start(busy, NULL);
	struct task *before = read_and_find(t, l.pid);
	assert_non_null(before);
	uint64_t start = before->start;
	pid_t pid = l.pid;
	live_end(&l);
	usleep(20000); /* another start time, in 100ths of a second */
	if (!fork_with_pid(pid)) {
		print_message("pids cannot be chosen here\n");
		return;
	}
	struct task *after = read_and_find(t, pid);
	assert_non_null(after);
	assert_ptr_not_equal(after, before);
	assert_true(before->gone);
	assert_true(after->start > start);
	assert_true(after->own[TASK_WRITTEN] < 1 << 20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A storm of processes that are there when they are listed and gone when they are read. */
static void processes_die_while_they_are_read(struct tasks *t)
{
	pid_t storm = fork();
	if (!storm) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			for (int i = 0; i < 8; i++)
				if (!fork())
					_exit(0);
			while (wait(NULL) > 0)
				;
		}
	}
	for (int i = 0; i < 300; i++) {
		assert_int_equal(tasks_read(t), 0);
		assert_non_null(task_find(t->table, storm));
		for (size_t k = 0; k < t->table->n; k++)
			assert_true(t->table->list[k]->pid > 0);
		tasks_sweep(t, drop_all, NULL);
	}
	kill(storm, SIGKILL);
	waitpid(storm, NULL, 0);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	tasks_read(t);
	tasks_sweep(t, drop_all, NULL);
}

/* Sleepers are not read again and again, but who lives and who does not is known at each pass. */
static void sleepers_come_and_go(struct tasks *t)
{
	enum { MANY = 200 };
	struct live l[MANY];
	unsigned draw = 1;
	for (int i = 0; i < MANY; i++)
		l[i] = live_start(NULL, NULL);
	for (int pass = 0; pass < 20; pass++) {
		assert_int_equal(tasks_read(t), 0);
		for (int i = 0; i < MANY; i++) {
			struct task *task = task_find(t->table, l[i].pid);
			assert_non_null(task);
			assert_false(task->gone);
			assert_true(task->rss > 0);
		}
		if (pass > 5) /* the rest is asleep in all eyes */
			assert_true(t->table->nchanged < MANY);
		for (int i = 0; i < 10; i++) {
			draw = draw * 1103515245 + 12345;
			struct live *one = &l[draw / 65536 % MANY];
			pid_t gone = one->pid;
			live_end(one);
			if (i == 0) {
				assert_int_equal(tasks_read(t), 0);
				assert_null(task_find(t->table, gone));
			}
			*one = live_start(NULL, NULL);
		}
		tasks_sweep(t, drop_all, NULL);
	}
	for (int i = 0; i < MANY; i++)
		live_end(&l[i]);
	assert_int_equal(tasks_read(t), 0);
	tasks_sweep(t, drop_all, NULL);
	assert_int_equal(t->table->n, 0);
}

/* Two sleepers whose pids look alike to a table of bits: one ends. */
static void pids_that_look_alike(struct tasks *t)
{
	struct live l = live_start(NULL, NULL);
	pid_t twin = fork_with_pid(l.pid + 32768);
	if (!twin) {
		live_end(&l);
		print_message("pids cannot be chosen here\n");
		return;
	}
	for (int i = 0; i < 5; i++)
		tasks_read(t);
	pid_t pid = l.pid;
	live_end(&l);
	tasks_read(t);
	assert_null(task_find(t->table, pid));
	assert_non_null(task_find(t->table, twin));
	kill(twin, SIGKILL);
	waitpid(twin, NULL, 0);
	tasks_read(t);
	assert_null(task_find(t->table, twin));
}

static void for_each_reader(void (*check)(struct tasks *))
{
	int tried = 0;
	usleep(20000); /* what others left dies, and is ours to reap */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		struct tasks *t = open_reader(readers[i]);
		if (!t)
			continue;
		tasks_read(t);
		check(t);
		tasks_close(t);
		tried++;
	}
	assert_true(tried > 0);
}

static void counts(void **state)
{
	for_each_reader(counts_are_right);
}

static void names(void **state)
{
	for_each_reader(names_mean_nothing);
}

static void main_thread(void **state)
{
	for_each_reader(main_thread_may_end);
}

static void daemons(void **state)
{
	for_each_reader(daemons_are_found);
}

static void trees(void **state)
{
	for_each_reader(trees_are_found_at_once);
}

static void pid_reuse(void **state)
{
	for_each_reader(pids_come_again);
}

static void sleepers(void **state)
{
	for_each_reader(sleepers_come_and_go);
}

static void alike(void **state)
{
	for_each_reader(pids_that_look_alike);
}

static void storm(void **state)
{
	for_each_reader(processes_die_while_they_are_read);
}

/* ----------------------------------------------------------------------------- /proc and its limits */

/* Many processes, and far fewer descriptors than would be kept: all are read, at every pass. */
static void five_thousand_with_few_descriptors(void **state)
{
	enum { MANY = 5000 };
	struct rlimit before, few;
	pid_t *pids = calloc(MANY, sizeof(*pids));
	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_max = few.rlim_cur = 64;
	for (int i = 0; i < MANY; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			live_sleep(NULL);
		}
		assert_true(pids[i] > 0);
	}
	pid_t pid = fork(); /* the limit cannot be raised again by everybody */
	if (!pid) {
		struct tasks *t;
		struct tasks_config config = config_of("proc");
		int ok = 0;
		config.recorder_pid = getppid();
		setrlimit(RLIMIT_NOFILE, &few);
		if (tasks_open(&config, &t, NULL))
			_exit(1);
		for (int pass = 0; pass < 3; pass++) {
			tasks_read(t);
			ok = 0;
			for (int i = 0; i < MANY; i++) {
				struct task *task = task_find(t->table, pids[i]);
				ok += task && task->have & TASK_HAS_RSS && task->rss > 0;
			}
			if (ok != MANY)
				_exit(2);
		}
		tasks_close(t);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	for (int i = 0; i < MANY; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < MANY; i++)
		waitpid(pids[i], NULL, 0);
	free(pids);
	assert_int_equal(status, 0);
}

static int read_as_nobody(pid_t target)
{
	struct tasks *t;
	struct tasks_config config = config_of("proc");
	config.recorder_pid = getppid();
	if (setgid(65534) || setuid(65534) || tasks_open(&config, &t, NULL))
		return 10;
	tasks_read(t);
	const struct task *task = task_find(t->table, target);
	if (!task)
		return 11;
	if (task->denied != TASK_HAS_IO || task->have & TASK_HAS_IO)
		return 12;
	if (!(task->have & TASK_HAS_RSS) || task->rss <= 0 || task->own[TASK_USER] < 25 * MB)
		return 13;
	tasks_close(t);
	return 0;
}

static void another_users_process(void **state)
{
	int status;
	if (geteuid())
		skip();
	struct live l = live_start(busy, NULL);
	pid_t pid = fork();
	if (!pid)
		_exit(read_as_nobody(l.pid));
	waitpid(pid, &status, 0);
	live_end(&l);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A /proc without lists of children, clocks or anything but stat: as on old kernels. */
static void bare_proc_is_scanned(void **state)
{
	struct tree tree;
	tree_new(&tree);
	tree_put(&tree, "/proc/10/stat",
		 "10 (job) S 5 0 0 0 0 0 1 0 0 0 9 1 0 0 0 0 1 0 1000 0 0\n");
	tree_put(&tree, "/proc/9/stat",
		 "9 (child) S 10 0 0 0 0 0 1 0 0 0 2 0 0 0 0 0 1 0 1001 0 0\n");
	tree_put(&tree, "/proc/11/stat",
		 "11 (other) S 1 0 0 0 0 0 1 0 0 0 7 0 0 0 0 0 1 0 500 0 0\n");
	tree_put(&tree, "/proc/12/stat", "12 (torn");
	tree_put(&tree, "/proc/13/comm", "no stat\n");
	struct tasks_config config = config_of("proc");
	config.proc_root = tree.proc;
	config.recorder_pid = 5;
	struct tasks *t = open_with(&config);
	assert_int_equal(tasks_read(t), 0);
	assert_int_equal(t->table->n, 2);
	struct task *job = task_find(t->table, 10), *child = task_find(t->table, 9);
	assert_non_null(job);
	assert_non_null(child);
	assert_string_equal(child->comm, "child");
	assert_int_equal(job->own[TASK_USER], 9 * TASK_TICK_NS);
	assert_false(job->have & TASK_HAS_RSS);
	assert_false(job->have & 1u << TASK_RUN_DELAY);
	tree_del(&tree, "/proc/9/stat");
	assert_int_equal(tasks_read(t), 0);
	assert_null(task_find(t->table, 9));
	assert_non_null(task_find(t->table, 10));
	tasks_close(t);
	tree_free(&tree);
}

static void all_processes_of_the_host(void **state)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		struct tasks_config config = config_of(readers[i]);
		config.all = true;
		struct tasks *t = open_with(&config);
		if (!t)
			continue;
		struct live l = live_start(NULL, NULL);
		assert_int_equal(tasks_read(t), 0);
		struct task *self = task_find(t->table, getpid());
		struct task *child = task_find(t->table, l.pid);
		assert_non_null(self);
		assert_non_null(child);
		assert_false(self->job);
		struct task *parent = task_find(t->table, getppid());
		assert_true(!parent || !parent->job);
		assert_true(child->job);
		live_end(&l);
		tasks_close(t);
	}
}

static void single_threads(void **state)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		struct tasks_config config = config_of(readers[i]);
		config.threads = true;
		struct tasks *t = open_with(&config);
		if (!t)
			continue;
		struct live l = live_start(busy, NULL);
		live_wait_asleep(l.pid);
		struct task *task = read_and_find(t, l.pid);
		assert_non_null(task);
		assert_int_equal(task->nlisted, 4);
		/* The main thread did all but what the three that ended did. */
		assert_int_equal(task->threads[0].tid, l.pid);
		assert_in_range(task->threads[0].user + task->threads[0].system, 30 * MB, 300 * MB);
		assert_in_range(task->threads[1].user + task->threads[1].system, 0, 5 * MB);
		assert_string_equal(task->threads[1].comm, task->comm);
		live_end(&l);
		tasks_close(t);
	}
}

static void auto_begins_with_proc(void **state)
{
	struct tasks *t = open_reader("auto");
	assert_non_null(t);
	assert_ptr_equal(t->reader, &task_reader_proc);
	tasks_close(t);
	struct tasks_config config = config_of("perf");
	struct err e = { 0 };
	assert_int_equal(tasks_open(&config, &t, &e), -EINVAL);
	assert_non_null(strstr(e.text, "perf"));
}

/* When /proc has cost more than loading BPF would have, the readers change, and nothing jumps. */
static void auto_changes_when_it_pays(void **state)
{
	struct tasks *bpf = open_reader("bpf");
	if (!bpf)
		skip();
	tasks_close(bpf);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	struct tasks *t = open_reader("auto");
	struct live l = live_start(busy, NULL);
	live_wait_asleep(l.pid);
	struct task before = *read_and_find(t, l.pid);
	t->paid_ns = 1000000000;
	t->cost_ns = 1000000000;
	struct task *after = read_and_find(t, l.pid);
	assert_ptr_equal(t->reader, &task_reader_bpf);
	assert_non_null(after);
	before.have &= ~(1u << TASK_VOLUNTARY | 1u << TASK_INVOLUNTARY);
	assert_same(&before, after);
	assert_int_equal(t->table->n, 1);
	live_end(&l);
	tasks_close(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_stat),
		cmocka_unit_test(parse_cut_texts),
		cmocka_unit_test(parse_status_and_io),
		cmocka_unit_test(table_tells_pids_that_came_again_apart),
		cmocka_unit_test(threads_that_ended_stay_counted),
		cmocka_unit_test(cpu_is_split_as_the_ticks_fell),
		cmocka_unit_test(both_readers_say_the_same),
		cmocka_unit_test(counts),
		cmocka_unit_test(names),
		cmocka_unit_test(main_thread),
		cmocka_unit_test(daemons),
		cmocka_unit_test(trees),
		cmocka_unit_test(pid_reuse),
		cmocka_unit_test(sleepers),
		cmocka_unit_test(alike),
		cmocka_unit_test(storm),
		cmocka_unit_test(five_thousand_with_few_descriptors),
		cmocka_unit_test(another_users_process),
		cmocka_unit_test(bare_proc_is_scanned),
		cmocka_unit_test(all_processes_of_the_host),
		cmocka_unit_test(single_threads),
		cmocka_unit_test(auto_begins_with_proc),
		cmocka_unit_test(auto_changes_when_it_pays),
	};
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
