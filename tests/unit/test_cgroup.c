/* Cgroups: finding them in texts of all kinds of systems, their limits on the way up, and their usage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_writer.h"
#include "sources/cgroup_limits.h"
#include "sources/sources.h"
#include "tree.h"

#define S 1000000000ULL

static const char mounts_v2[] = "25 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
				"30 25 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime "
				"shared:4 - cgroup2 cgroup2 rw\n";
static const char mounts_v1[] =
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 master:2 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
static const char cgroup_v1[] = "9:name=systemd:/\n4:memory:/user/a:b\n3:cpuset:/\n"
				"2:cpu,cpuacct:/user\n0::/uni\n";

static void find(const char *cgroup, const char *mounts, const char *controller, int version,
		 const char *dir)
{
	struct cgroup_place p = { 0 };
	assert_int_equal(cgroup_place_find(cgroup, mounts, controller, "/sys", &p), 0);
	assert_int_equal(p.version, version);
	assert_string_equal(p.dir, dir);
}

static void not_found(const char *cgroup, const char *mounts, const char *controller, int error)
{
	struct cgroup_place p = { .version = 77 };
	assert_int_equal(cgroup_place_find(cgroup, mounts, controller, "/sys", &p), -error);
	assert_int_equal(p.version, 77);
}

static void test_find(void **state)
{
	find("0::/user.slice/x.scope\n", mounts_v2, "cpu", 2, "/sys/fs/cgroup/user.slice/x.scope");
	find("0::/\n", mounts_v2, "memory", 2, "/sys/fs/cgroup");
	find(cgroup_v1, mounts_v1, "memory", 1, "/sys/fs/cgroup/memory/user/a:b");
	find(cgroup_v1, mounts_v1, "cpuacct", 1, "/sys/fs/cgroup/cpu,cpuacct/user");
	find(cgroup_v1, mounts_v1, "cpuset", 1, "/sys/fs/cgroup/cpuset");
	find(cgroup_v1, mounts_v1, "", 2, "/sys/fs/cgroup/unified/uni");
	find(cgroup_v1, mounts_v1, "pids", 2, "/sys/fs/cgroup/unified/uni");
	not_found("", mounts_v2, "cpu", ENOENT);
	not_found("garbage\n::\n0:\n0::relative\n", mounts_v2, "cpu", ENOENT);
	not_found("0::/a\n", "", "cpu", ENOENT);
	not_found("0::/a\n", "1 2 3\n- cgroup2\n", "cpu", ENOENT);
	not_found("4:memory:/a\n", mounts_v2, "memory", ENOENT); /* listed, but not mounted here */
}

/* Mounts that show a part of the tree, and blanks in a name. */
static void test_find_namespaces(void **state)
{
	const char *part = "30 25 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
	find("0::/docker/abc\n", part, "cpu", 2, "/sys/fs/cgroup");
	find("0::/docker/abc/job\n", part, "cpu", 2, "/sys/fs/cgroup/job");
	not_found("0::/docker/abcd\n", part, "cpu", EXDEV);
	not_found("0::/docker\n", part, "cpu", EXDEV);
	not_found("0::/../other\n", mounts_v2, "cpu", EXDEV);
	not_found("0::/..\n", mounts_v2, "cpu", EXDEV);
	find("0::/..a\n", mounts_v2, "cpu", 2, "/sys/fs/cgroup/..a");
	find("0::/a b\n", "30 25 0:26 / /mnt/my\\040cg rw - cgroup2 cgroup rw\n", "cpu", 2,
	     "/mnt/my cg/a b");
	/* the second mount fits where the first does not */
	const char *two = "30 25 0:26 /x /a rw - cgroup2 c rw\n31 25 0:26 / /b rw - cgroup2 c rw\n";
	find("0::/y\n", two, "cpu", 2, "/b/y");
}

static void test_find_long(void **state)
{
	char text[PATH_MAX + 64] = "0::/", mounts[PATH_MAX + 128];
	memset(text + 4, 'x', PATH_MAX);
	strcpy(text + 4 + PATH_MAX, "\n");
	not_found(text, mounts_v2, "cpu", ENAMETOOLONG);
	text[4 + PATH_MAX - 10] = 0;
	not_found(text, mounts_v2, "cpu", ENAMETOOLONG);
	snprintf(mounts, sizeof(mounts), "30 25 0:26 / %s rw - cgroup2 c rw\n", text + 3);
	not_found("0::/aaaaaaaaaaaaaaaa\n", mounts, "cpu", ENAMETOOLONG);
}

static void test_up(void **state)
{
	struct cgroup_place p = { 0 };
	assert_int_equal(cgroup_place_find("0::/a/b\n", mounts_v2, "cpu", "/fake", &p), 0);
	assert_string_equal(p.dir, "/fake/fs/cgroup/a/b");
	assert_true(cgroup_place_up(&p));
	assert_string_equal(p.dir, "/fake/fs/cgroup/a");
	assert_string_equal(p.path, "/a");
	assert_true(cgroup_place_up(&p));
	assert_string_equal(p.dir, "/fake/fs/cgroup");
	assert_string_equal(p.path, "/");
	assert_false(cgroup_place_up(&p));
	assert_string_equal(p.dir, "/fake/fs/cgroup");
}

static void test_numbers(void **state)
{
	double cores = -1;
	int64_t bytes = -1;
	assert_true(cgroup_parse_cpu_max("150000 100000\n", &cores) && cores == 1.5);
	assert_true(cgroup_parse_cpu_max("max 100000\n", &cores) && cores == 0);
	assert_false(cgroup_parse_cpu_max("100000\n", &cores));
	assert_false(cgroup_parse_cpu_max("100000 0\n", &cores));
	assert_false(cgroup_parse_cpu_max("", &cores));
	assert_true(cgroup_parse_memory("4096\n", &bytes) && bytes == 4096);
	assert_true(cgroup_parse_memory("max\n", &bytes) && bytes == INT64_MAX);
	assert_true(cgroup_parse_memory("9223372036854771712\n", &bytes) && bytes == INT64_MAX);
	assert_true(cgroup_parse_memory("18446744073709551615\n", &bytes) && bytes == INT64_MAX);
	assert_true(cgroup_parse_memory("-1\n", &bytes) && bytes == INT64_MAX);
	assert_true(cgroup_parse_memory("0\n", &bytes) && bytes == 0);
	assert_false(cgroup_parse_memory("x\n", &bytes));
}

struct fixture {
	struct tree tree;
	struct rec_writer *w;
	struct source_env env;
	uint64_t now;
	void *state;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	tree_new(&f->tree);
	f->w = fake_new();
	f->env = (struct source_env){ .w = f->w,
				      .proc_root = f->tree.proc,
				      .sys_root = f->tree.sys,
				      .interval_ns = S,
				      .job_pid = 42,
				      .recorder_pid = 7 };
	rec_entity(f->w, ENTITY_HOST, 0, "host", 0, 1, &f->env.host);
	rec_entity(f->w, ENTITY_JOB, f->env.host, "job", 42, 1, &f->env.job);
	tree_put(&f->tree, "/proc/meminfo", "MemTotal: 8000000 kB\n");
	tree_put(&f->tree, "/proc/self/mountinfo", mounts_v2);
	tree_put(&f->tree, "/sys/devices/system/cpu/online", "0-7\n");
	tree_put(&f->tree, "/proc/42/status", "Name:\tx\nCpus_allowed_list:\t0-5,100\n");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	if (f->state)
		source_cgroup.close(f->state);
	assert_int_equal(f->w->bad, 0);
	tree_free(&f->tree);
	free(f->w);
	free(f);
	return 0;
}

static void open_it(struct fixture *f)
{
	struct err e = { "" };
	struct buf why = BUF_INIT;
	assert_int_equal(source_cgroup.open(&f->env, &f->state, &e), 0);
	source_cgroup.probe(&f->env, &why);
	assert_true(why.len > 10);
	buf_free(&why);
	f->now = 1ULL << 60; /* behind any time the source took from the real clock */
}

static void tick(struct fixture *f)
{
	fake_tick(f->w);
	f->now += 2 * S;
	source_cgroup.sample(f->state, f->now);
}

static void put_v2_level(struct fixture *f, const char *dir, const char *cpu_max,
			 const char *memory_max, const char *memory_current)
{
	const char *const files[][2] = {
		{ "cpu.max", cpu_max },
		{ "memory.max", memory_max },
		{ "memory.current", memory_current },
		{ "memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n" },
		{ "cgroup.events", "populated 1\n" },
		{ "cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 4\n"
			      "nr_throttled 2\nthrottled_usec 5\n" },
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", dir, files[i][0]);
		if (files[i][1])
			tree_put(&f->tree, path, files[i][1]);
	}
}

static void test_v2(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/42/cgroup", "0::/slurm/job\n");
	put_v2_level(f, "/slurm/job", "max 100000\n", "2000000000\n", "700000000\n");
	put_v2_level(f, "/slurm", "250000 100000\n", "1000000000\n", "900000000\n");
	tree_put(&f->tree, "/sys/fs/cgroup/slurm/cpu.stat", "throttled_usec 7\n");
	tree_put(&f->tree, "/sys/fs/cgroup/slurm/cpuset.cpus.effective", "1-4\n");
	tree_put(&f->tree, "/sys/fs/cgroup/slurm/job/cpu.pressure",
		 "some total=11\nfull total=12\n");
	open_it(f);
	tick(f);
	uint32_t cg = fake_entity(f->w, ENTITY_CGROUP, "/slurm/job");
	uint32_t job = f->env.job;
	assert_true(fake_f64(f->w, job, METRIC_CPU_ALLOWED) == 2.5); /* the parent's quota */
	assert_int_equal(fake_i64(f->w, job, METRIC_MEMORY_LIMIT), 1000000000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_LIMIT), 1000000000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_USED),
			 900000000); /* where the limit is */
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_OOM_KILLS), 1);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_USER), 20000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_SYSTEM), 10000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_THROTTLED), 7000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_PRESSURE_CPU_SOME), 11000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_PRESSURE_CPU_FULL), 12000);
	assert_null(fake_find(f->w, cg, METRIC_PRESSURE_IO_SOME));
	assert_non_null(strstr(f->w->entities[cg - 1].attrs, "\"quota_cores\":2.5"));
	assert_non_null(strstr(f->w->entities[cg - 1].attrs, "/fs/cgroup/slurm\""));
	/* A smaller limit in the job's own cgroup: used follows it. */
	tree_put(&f->tree, "/sys/fs/cgroup/slurm/job/memory.max", "800000000\n");
	tree_put(&f->tree, "/sys/fs/cgroup/slurm/job/cpu.max", "50000 100000\n");
	tick(f);
	assert_true(fake_f64(f->w, job, METRIC_CPU_ALLOWED) == 0.5);
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_LIMIT), 800000000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_USED), 700000000);
	/* counted on from 7000, not back to the 5000 of the other directory */
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_THROTTLED), 7000);
	tree_put(&f->tree, "/sys/fs/cgroup/slurm/job/cpu.stat", "throttled_usec 9\n");
	tick(f);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_THROTTLED), 11000);
	assert_string_equal(fake_gap(f->w, cg, METRIC_CPU_USER), "the kernel gave no value");
}

/* No quota: cpuset and affinity decide; no limit: physical memory does. */
static void test_v2_unlimited(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/42/cgroup", "0::/a\n");
	put_v2_level(f, "/a", "max 100000\n", "max\n", "5\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpuset.cpus.effective", "2-7\n");
	open_it(f);
	tick(f);
	uint32_t cg = fake_entity(f->w, ENTITY_CGROUP, "/a");
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 4); /* 2-5 */
	assert_true(fake_f64(f->w, cg, METRIC_CPU_ALLOWED) == 6);
	assert_int_equal(fake_i64(f->w, f->env.job, METRIC_MEMORY_LIMIT), 8192000000);
	assert_string_equal(fake_gap(f->w, cg, METRIC_MEMORY_LIMIT), "no limit");
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_USED), 5);
}

static void test_moves_and_ends(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/42/cgroup", "0::/a\n");
	put_v2_level(f, "/a", "max 100000\n", "max\n", "5\n");
	put_v2_level(f, "/b", "100000 100000\n", "max\n", "6\n");
	open_it(f);
	tick(f);
	uint32_t a = fake_entity(f->w, ENTITY_CGROUP, "/a");
	tree_put(&f->tree, "/proc/42/cgroup", "0::/b\n");
	tick(f);
	uint32_t b = fake_entity(f->w, ENTITY_CGROUP, "/b");
	assert_true(f->w->entities[a - 1].ended);
	assert_int_equal(fake_i64(f->w, b, METRIC_MEMORY_USED), 6);
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 1);
	tree_del(&f->tree, "/proc/42/cgroup");
	tree_del(&f->tree, "/proc/42/status");
	tick(f); /* the job is gone: its limits and what its cgroup used stay known */
	assert_int_equal(fake_i64(f->w, b, METRIC_MEMORY_USED), 6);
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 1);
}

/* Version 1 with several hierarchies: quota above, cpuset at the root, memory nearly at 2^63. */
static void test_v1(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/self/mountinfo", mounts_v1);
	tree_put(&f->tree, "/proc/42/cgroup", cgroup_v1);
	tree_put(&f->tree, "/sys/fs/cgroup/memory/user/a:b/memory.limit_in_bytes",
		 "9223372036854771712\n");
	tree_put(&f->tree, "/sys/fs/cgroup/memory/user/a:b/memory.usage_in_bytes", "123\n");
	tree_put(&f->tree, "/sys/fs/cgroup/memory/user/a:b/memory.oom_control",
		 "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	tree_put(&f->tree, "/sys/fs/cgroup/memory/release_agent", "\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_quota_us", "-1\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_period_us", "100000\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/user/cpuacct.usage_user", "1000\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/user/cpuacct.usage_sys", "500\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/user/cpu.stat",
		 "nr_periods 0\nnr_throttled 0\nthrottled_time 70\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpuset/release_agent", "\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
	open_it(f);
	tick(f);
	uint32_t cg = fake_entity(f->w, ENTITY_CGROUP, "/user/a:b");
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 4);
	assert_int_equal(fake_i64(f->w, f->env.job, METRIC_MEMORY_LIMIT), 8192000000);
	assert_string_equal(fake_gap(f->w, cg, METRIC_MEMORY_LIMIT), "no limit");
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_USED), 123);
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_OOM_KILLS), 2);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_USER), 1000);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_SYSTEM), 500);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_THROTTLED), 70);
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_quota_us", "150000\n");
	tick(f);
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 1.5);
}

/* An old version 1 kernel without usage_user: times in ticks. */
static void test_v1_old(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/self/mountinfo", mounts_v1);
	tree_put(&f->tree, "/proc/42/cgroup", "2:cpu,cpuacct:/x\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu,cpuacct/x/cpuacct.stat", "user 3\nsystem 4\n");
	open_it(f);
	tick(f);
	uint32_t cg = fake_entity(f->w, ENTITY_CGROUP, "/x");
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_USER), 3 * tick_ns);
	assert_int_equal(fake_i64(f->w, cg, METRIC_CPU_SYSTEM), 4 * tick_ns);
}

/* In the root cgroup, usage would be the host's: no cgroup entity, limits by affinity and memory alone. */
static void test_root(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/42/cgroup", "0::/\n");
	tree_put(&f->tree, "/sys/fs/cgroup/cpu.stat", "user_usec 20\nsystem_usec 10\n");
	open_it(f);
	tick(f);
	assert_int_equal(fake_entity(f->w, ENTITY_CGROUP, NULL), 0);
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 6);
	assert_int_equal(fake_i64(f->w, f->env.job, METRIC_MEMORY_LIMIT), 8192000000);
}

/* A container that sees the host's path but has only its own part mounted, as the root of the mount. */
static void test_container(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/42/cgroup", "0::/kubepods/pod1/c1\n");
	put_v2_level(f, "", "100000 100000\n", "5000\n", "4000\n");
	open_it(f);
	tick(f);
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 1);
	assert_int_equal(fake_i64(f->w, f->env.job, METRIC_MEMORY_LIMIT), 5000);
}

static void test_no_cgroups(void **state)
{
	struct fixture *f = *state;
	open_it(f);
	tick(f);
	assert_true(fake_f64(f->w, f->env.job, METRIC_CPU_ALLOWED) == 6);
	tree_del(&f->tree, "/sys/devices/system/cpu/online");
	tree_put(&f->tree, "/proc/42/status", "Name: x\n");
	source_cgroup.close(f->state);
	open_it(f);
	tick(f);
	assert_string_equal(fake_gap(f->w, f->env.job, METRIC_CPU_ALLOWED),
			    "the kernel gave no value");
}

static void test_no_job(void **state)
{
	struct fixture *f = *state;
	f->env.job = 0;
	f->env.job_pid = 0; /* the recorder's own, pid 7 */
	tree_put(&f->tree, "/proc/7/cgroup", "0::/me\n");
	put_v2_level(f, "/me", "100000 100000\n", "max\n", "77\n");
	open_it(f);
	tick(f);
	uint32_t cg = fake_entity(f->w, ENTITY_CGROUP, "/me");
	assert_int_equal(fake_i64(f->w, cg, METRIC_MEMORY_USED), 77);
	assert_true(fake_f64(f->w, cg, METRIC_CPU_ALLOWED) == 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_namespaces),
		cmocka_unit_test(test_find_long),
		cmocka_unit_test(test_up),
		cmocka_unit_test(test_numbers),
		TEST(test_v2),
		TEST(test_v2_unlimited),
		TEST(test_moves_and_ends),
		TEST(test_v1),
		TEST(test_v1_old),
		TEST(test_root),
		TEST(test_container),
		TEST(test_no_cgroups),
		TEST(test_no_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
