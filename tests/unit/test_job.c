/*
 * The job source, driven as the recorder drives it, on live jobs: whose processes are found, whether their account is
 * complete, and what is recorded of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_writer.h"
#include "live.h"
#include "sources/jobset.h"
#include "sources/sources.h"
#include "sources/tasks.h"

#define MS 1000000ll

struct watch {
	struct rec_writer *w;
	struct source_env env;
	struct jobset jobset;
	void *state;
	uint64_t now;
	int64_t cpu_ns, faults; /* what wait4 said of all that was reaped */
	int ended;
};

static const char *reader; /* of this round */

static bool can_use(const char *name)
{
	struct tasks_config config = { .proc_root = "/proc", .reader = name };
	struct tasks *t;
	if (tasks_open(&config, &t, NULL))
		return false;
	tasks_close(t);
	return true;
}

static void begin(struct watch *w, void (*command)(void *), void *arg)
{
	struct err e = { 0 };
	*w = (struct watch){ .w = fake_new() };
	map_init(&w->jobset.pids);
	w->env = (struct source_env){
		.w = w->w,
		.proc_root = "/proc",
		.sys_root = "/sys",
		.interval_ns = 10 * MS,
		.recorder_pid = getpid(),
		.jobset = &w->jobset,
		.task_reader = reader,
	};
	w->env.job_pid = fork();
	if (!w->env.job_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		command(arg);
		_exit(0);
	}
	rec_entity(w->w, ENTITY_HOST, 0, "host", 0, 1, &w->env.host);
	rec_entity(w->w, ENTITY_JOB, w->env.host, "job", w->env.job_pid, 1, &w->env.job);
	if (source_job.open(&w->env, &w->state, &e))
		fail_msg("%s", e.text);
}

static void tick(struct watch *w)
{
	fake_tick(w->w);
	w->now += (uint64_t)w->env.interval_ns;
	source_job.sample(w->state, w->now);
}

static void reap(struct watch *w)
{
	siginfo_t si = { 0 };
	struct rusage ru;
	while (!waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid) {
		source_job.before_reap(w->state, si.si_pid);
		assert_int_equal(wait4(si.si_pid, NULL, 0, &ru), si.si_pid);
		source_job.after_reap(w->state, si.si_pid, &ru);
		w->cpu_ns += (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000 * MS +
			     (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ll;
		w->faults += ru.ru_minflt;
		w->ended += si.si_pid == w->env.job_pid;
		si.si_pid = 0;
	}
}

/* Tick until the command ended, then once more, and close. */
static void finish(struct watch *w)
{
	while (!w->ended) {
		tick(w);
		usleep(10000);
		reap(w);
	}
	tick(w);
	source_job.close(w->state);
	assert_int_equal(w->w->bad, 0);
}

static void release(struct watch *w)
{
	map_free(&w->jobset.pids);
	free(w->w);
}

static int64_t fact(const struct watch *w, const char *key)
{
	return strtoll(fake_fact(w->w, key), NULL, 10);
}

static int64_t job_value(struct watch *w, enum metric_id metric)
{
	return fake_i64(w->w, w->env.job, metric);
}

static int64_t cpu_fact(const struct watch *w)
{
	return fact(w, "job.user_ns") + fact(w, "job.system_ns");
}

/* ------------------------------------------------------------------------------------------- jobs */

static void short_children(void *arg)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		if (!pid) {
			live_burn_ms(5);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* 40 children that lived 5 ms each, between ticks or not: all there, to the us that wait4 tells. */
static void children_between_ticks_are_counted(void)
{
	struct watch w;
	begin(&w, short_children, NULL);
	finish(&w);
	assert_int_equal(cpu_fact(&w), w.cpu_ns);
	assert_in_range(cpu_fact(&w), 200 * MS, 900 * MS);
	/* And so it was put at the last tick, but for the fractions of a us that wait4 leaves out. */
	int64_t put = job_value(&w, METRIC_CPU_USER) + job_value(&w, METRIC_CPU_SYSTEM);
	assert_in_range(put, cpu_fact(&w), cpu_fact(&w) + 40 * 2000);
	assert_in_range(job_value(&w, METRIC_MEMORY_FAULTS_MINOR), w.faults, w.faults);
	assert_int_equal(fact(&w, "job.lost_children"), 0);
	release(&w);
}

static void three_generations(void *arg)
{
	for (int i = 0; i < 3; i++) {
		if (fork()) {
			wait(NULL);
			return;
		}
		live_burn_ms(20);
		live_write_read(1 << 20);
	}
	usleep(30000);
}

static void generations_are_counted_once(void)
{
	struct watch w;
	begin(&w, three_generations, NULL);
	finish(&w);
	assert_int_equal(cpu_fact(&w), w.cpu_ns);
	assert_int_equal(fact(&w, "job.written_bytes"), 3 << 20);
	assert_in_range(fact(&w, "job.read_bytes"), 3 << 20, (3 << 20) + 4096);
	assert_in_range(fact(&w, "job.processes"), 1,
			4); /* those between two ticks have no entity */
	release(&w);
}

static void ignoring(void *arg)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (!pid) {
			live_burn_ms(60);
			live_write_read(1 << 20);
			usleep(400000); /* seen after all of it, also on a busy host */
			_exit(0);
		}
		while (!kill(pid, 0))
			usleep(1000);
	}
	usleep(60000);
}

/* The kernel forgets what these used; what was seen of it stays. */
static void ignored_children_stay_as_last_seen(void)
{
	struct watch w;
	begin(&w, ignoring, NULL);
	finish(&w);
	assert_int_equal(fact(&w, "job.lost_children"), 2);
	assert_string_equal(w.w->notice_kind, "lost");
	assert_non_null(strstr(w.w->notice, "SIGCHLD"));
	assert_true(w.cpu_ns < 60 * MS);
	assert_in_range(cpu_fact(&w), w.cpu_ns + 120 * MS, w.cpu_ns + 400 * MS);
	assert_int_equal(fact(&w, "job.written_bytes"), 2 << 20);
	release(&w);
}

static void daemonising(void *arg)
{
	int alive[2];
	char nothing;
	if (pipe(alive))
		return;
	if (!fork()) {
		setsid();
		if (!fork()) {
			alarm(60);
			live_burn_ms(30);
			usleep(100000);
			live_burn_ms(30);
		}
		_exit(0);
	}
	close(alive[1]);
	wait(NULL);
	if (read(alive[0], &nothing, 1) == 0) /* the daemon has ended, or is about to */
		usleep(100000);
}

static void daemons_belong_to_the_job(void)
{
	struct watch w;
	begin(&w, daemonising, NULL);
	finish(&w);
	assert_int_equal(cpu_fact(&w), w.cpu_ns);
	assert_in_range(cpu_fact(&w), 60 * MS, 400 * MS);
	release(&w);
}

static void leave_a_daemon(void *arg)
{
	if (!fork()) {
		setsid();
		alarm(60);
		live_burn_ms(30);
		live_sleep(NULL);
	}
	usleep(100000);
}

/* The command ends, its child lives on: what that used until then is counted. */
static void a_job_that_forks_and_exits(void)
{
	struct watch w;
	begin(&w, leave_a_daemon, NULL);
	while (!w.ended) {
		tick(&w);
		usleep(10000);
		reap(&w);
	}
	tick(&w);
	assert_int_equal(job_value(&w, METRIC_SCHED_PROCESSES), 1);
	assert_int_equal(w.jobset.pids.count, 1);
	size_t i = 0;
	pid_t daemon = (pid_t)map_next(&w.jobset.pids, &i)->key;
	source_job.close(w.state);
	assert_in_range(cpu_fact(&w), w.cpu_ns + 30 * MS, w.cpu_ns + 300 * MS);
	kill(daemon, SIGKILL);
	waitpid(daemon, NULL, 0);
	release(&w);
}

static void at_once(void *arg)
{
	live_write_read(1 << 16);
}

/* It was over before the first tick. */
static void a_command_that_ends_at_once(void)
{
	struct watch w;
	begin(&w, at_once, NULL);
	usleep(50000);
	reap(&w);
	finish(&w);
	assert_int_equal(cpu_fact(&w), w.cpu_ns);
	assert_int_equal(fact(&w, "job.written_bytes"), 1 << 16);
	assert_int_equal(fact(&w, "job.processes"), 1);
	assert_true(fact(&w, "job.max_rss_bytes") > 0);
	uint32_t process = fake_entity(w.w, ENTITY_PROCESS, NULL);
	assert_true(process > 0);
	assert_int_equal(w.w->entities[process - 1].key, w.env.job_pid);
	assert_true(w.w->entities[process - 1].ended);
	release(&w);
}

static void strange(void *arg)
{
	prctl(PR_SET_NAME, ") R 1 (");
	live_touch(20 << 20);
	live_sleep(NULL);
}

static void what_is_recorded_of_a_process(void)
{
	struct watch w;
	begin(&w, strange, NULL);
	live_wait_asleep(w.env.job_pid);
	tick(&w);
	uint32_t process = fake_entity(w.w, ENTITY_PROCESS, ") R 1 (");
	assert_true(process > 0);
	assert_int_equal(w.w->entities[process - 1].parent, w.env.job);
	assert_non_null(strstr(w.w->entities[process - 1].attrs, "command_line"));
	assert_true(jobset_has(&w.jobset, w.env.job_pid));
	assert_false(jobset_has(&w.jobset, getpid()));
	assert_int_equal(fake_i64(w.w, process, METRIC_SCHED_THREADS), 1);
	assert_in_range(fake_i64(w.w, process, METRIC_MEMORY_RSS), 20 << 20, 40 << 20);
	assert_int_equal(job_value(&w, METRIC_MEMORY_RSS),
			 fake_i64(w.w, process, METRIC_MEMORY_RSS));
	assert_int_equal(job_value(&w, METRIC_SCHED_PROCESSES), 1);
	kill(w.env.job_pid, SIGKILL);
	finish(&w);
	assert_true(w.w->entities[process - 1].ended);
	assert_true(fake_find(w.w, process, METRIC_CPU_USER)->ended);
	assert_false(jobset_has(&w.jobset, w.env.job_pid));
	assert_int_equal(job_value(&w, METRIC_SCHED_PROCESSES), 0);
	assert_in_range(fact(&w, "job.max_rss_bytes"), 20 << 20, 40 << 20);
	assert_string_equal(fake_fact(w.w, "task_reader"), reader);
	release(&w);
}

static void becomes_true(void *arg)
{
	usleep(40000);
	execlp("sleep", "sleep", "0.2", (char *)NULL);
	_exit(1);
}

static void a_process_that_becomes_another(void)
{
	struct watch w;
	begin(&w, becomes_true, NULL);
	tick(&w);
	usleep(100000);
	tick(&w);
	uint32_t process = fake_entity(w.w, ENTITY_PROCESS, "sleep");
	assert_true(process > 0);
	assert_non_null(strstr(w.w->entities[process - 1].attrs, "sleep 0.2"));
	finish(&w);
	assert_int_equal(fact(&w, "job.processes"), 1);
	release(&w);
}

static void run_all_of(void (*check)(void))
{
	static const char *const readers[] = { "proc", "bpf" };
	for (int i = 0; i < 2; i++) {
		reader = readers[i];
		if (can_use(reader))
			check();
		else
			print_message("the reader %s does not work here\n", reader);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		run_all_of(name);             \
	}
TEST(children_between_ticks_are_counted)
TEST(generations_are_counted_once)
TEST(ignored_children_stay_as_last_seen)
TEST(daemons_belong_to_the_job)
TEST(a_job_that_forks_and_exits)
TEST(a_command_that_ends_at_once)
TEST(what_is_recorded_of_a_process)
TEST(a_process_that_becomes_another)

static void sleep_a_while(void *arg)
{
	pthread_t thread;
	pthread_create(&thread, NULL, live_sleep, NULL);
	usleep(200000);
}

static void single_threads_are_recorded(void **state)
{
	struct watch w;
	reader = "proc";
	begin(&w, sleep_a_while, NULL);
	source_job.close(w.state);
	w.env.threads = true;
	assert_int_equal(source_job.open(&w.env, &w.state, NULL), 0);
	usleep(50000);
	tick(&w);
	uint32_t thread = fake_entity(w.w, ENTITY_THREAD, NULL);
	assert_true(thread > 0);
	assert_int_equal(w.w->entities[w.w->entities[thread - 1].parent - 1].kind, ENTITY_PROCESS);
	assert_true(fake_i64(w.w, thread, METRIC_CPU_USER) >= 0);
	finish(&w);
	assert_true(w.w->entities[thread - 1].ended);
	release(&w);
}

/* Rounds of smaps_rollup: none in the first 5 s, then one in the budget, and the sum when it is complete. */
static void proportional_memory_comes_in_rounds(void **state)
{
	struct watch w;
	reader = "proc";
	begin(&w, strange, NULL);
	live_wait_asleep(w.env.job_pid);
	tick(&w);
	assert_null(fake_find(w.w, fake_entity(w.w, ENTITY_PROCESS, NULL), METRIC_MEMORY_PSS));
	w.now += 6000 * MS;
	tick(&w);
	uint32_t process = fake_entity(w.w, ENTITY_PROCESS, NULL);
	if (access("/proc/self/smaps_rollup", F_OK))
		skip();
	assert_in_range(fake_i64(w.w, process, METRIC_MEMORY_PSS), 20 << 20, 40 << 20);
	assert_int_equal(job_value(&w, METRIC_MEMORY_PSS),
			 fake_i64(w.w, process, METRIC_MEMORY_PSS));
	tick(&w);
	assert_int_equal(job_value(&w, METRIC_MEMORY_PSS), INT64_MIN);
	kill(w.env.job_pid, SIGKILL);
	finish(&w);
	release(&w);
}

/* Another user's process: what may be read is there, the rest is a gap that says why. */
static void another_users_job(void **state)
{
	int status;
	if (geteuid())
		skip();
	reader = "proc";
	struct watch w;
	begin(&w, strange, NULL);
	source_job.close(w.state);
	w.w->nfacts = 0;
	pid_t pid = fork();
	if (!pid) {
		w.env.recorder_pid = getpid();
		if (setgid(65534) || setuid(65534) || source_job.open(&w.env, &w.state, NULL))
			_exit(1);
		live_wait_asleep(w.env.job_pid);
		tick(&w);
		uint32_t process = fake_entity(w.w, ENTITY_PROCESS, ") R 1 (");
		if (strcmp(fake_gap(w.w, process, METRIC_IO_READ), "no permission") ||
		    strcmp(fake_gap(w.w, w.env.job, METRIC_IO_READ), "no permission"))
			_exit(2);
		if (fake_i64(w.w, process, METRIC_MEMORY_RSS) < 20 << 20)
			_exit(3);
		if (strcmp(w.w->notice_kind, "gap"))
			_exit(4);
		source_job.close(w.state);
		_exit(*fake_fact(w.w, "job.read_bytes") ? 5 : w.w->bad ? 6 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	kill(w.env.job_pid, SIGKILL);
	waitpid(w.env.job_pid, NULL, 0);
	release(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_between_ticks_are_counted),
		cmocka_unit_test(test_generations_are_counted_once),
		cmocka_unit_test(test_ignored_children_stay_as_last_seen),
		cmocka_unit_test(test_daemons_belong_to_the_job),
		cmocka_unit_test(test_a_job_that_forks_and_exits),
		cmocka_unit_test(test_a_command_that_ends_at_once),
		cmocka_unit_test(test_what_is_recorded_of_a_process),
		cmocka_unit_test(test_a_process_that_becomes_another),
		cmocka_unit_test(single_threads_are_recorded),
		cmocka_unit_test(proportional_memory_comes_in_rounds),
		cmocka_unit_test(another_users_job),
	};
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
