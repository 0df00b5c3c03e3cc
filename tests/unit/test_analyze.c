/* Facts and findings of synthetic runs: each limit named right, healthy named healthy. */
#include "synthetic.h"

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

struct result {
	char path[128];
	struct rec_reader *r;
	struct run_facts f;
	struct findings all;
};

static void analyse(const struct synthetic *s, struct result *ret)
{
	struct err e = { 0 };
	synthetic_path(ret->path, sizeof(ret->path));
	synthetic_write(s, ret->path);
	assert_int_equal(rec_open(ret->path, &ret->r, &e), 0);
	assert_int_equal(facts_load(ret->r, &ret->f, &e), 0);
	analyze_run(&ret->f, &ret->all);
}

static void done(struct result *res)
{
	facts_release(&res->f);
	rec_reader_free(res->r);
	synthetic_remove(res->path);
}

static void expect_first(const struct synthetic *s, const char *id, enum severity severity)
{
	struct result res;
	analyse(s, &res);
	for (size_t i = 0; strcmp(res.all.v[0].id, id) && i < res.all.n; i++)
		print_message("%s: %s\n", res.all.v[i].id, res.all.v[i].text);
	assert_string_equal(res.all.v[0].id, id);
	assert_int_equal(res.all.v[0].severity, severity);
	assert_true(res.all.v[0].n_evidence > 0);
	done(&res);
}

static bool near(double a, double b, double relative)
{
	return fabs(a - b) <= relative * fabs(b);
}

static void facts_are_what_was_written(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.disk_read_mb_s = 2;
	analyse(&s, &res);
	const struct run_facts *f = &res.f;
	assert_true(near(f->run.wall_s, 60, 1e-9));
	assert_true(near(f->cpu.user_s, 54, 1e-6));
	assert_true(near(f->cpu.system_s, 6, 1e-6));
	assert_true(near(f->cpu.cores_mean, 1, 1e-6));
	assert_true(near(f->cpu.cores_training, 1, 0.01));
	assert_true(near(f->cpu.cores_allowed, 2, 1e-9));
	assert_true(near(f->cpu.others, 0.02, 0.1));
	assert_true(near(f->cpu.run_delay_share, 0.005 / 1.005, 0.02));
	assert_true(near(f->steps.p50_s, 0.05, 0.02));
	assert_true(near(f->steps.wait_share, 0.04, 1e-3));
	assert_true(near(f->steps.samples_per_s, 64 / 0.05, 0.01));
	assert_int_equal(f->steps.warmup, 10);
	assert_int_equal(f->steps.n, 1121);
	assert_true(near(f->memory.peak_rss, 400.4e6, 1e-6));
	assert_true(f->memory.limit_is_host);
	assert_true(near(f->io.disk_read, 120e6, 1e-6));
	assert_true(near(f->io.disk_read_per_s, 2e6, 0.01));
	assert_int_equal(f->checkpoints.n, 0);
	assert_int_equal(f->n_gpus, 0);
	done(&res);
}

static void healthy(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	expect_first(&s, "healthy", SEVERITY_OK);
}

/* Eight seconds at one sample per second must do. */
static void short_but_healthy(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.seconds = 10;
	expect_first(&s, "healthy", SEVERITY_OK);
}

static void input_bound(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.wait_share = 0.6;
	expect_first(&s, "input-bound", SEVERITY_LIMIT);
	s.wait_share = 0.15;
	expect_first(&s, "input-bound", SEVERITY_WARNING);
	/* Three workers would do, there is one idle core: no promise beyond it. */
	s.wait_share = 0.6;
	analyse(&s, &res);
	assert_non_null(strstr(res.all.v[0].advice, "num_workers=1"));
	assert_true(res.all.v[0].gain > 1.3 && res.all.v[0].gain < 2);
	done(&res);
}

static void no_core_for_workers(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.wait_share = 0.4;
	s.cores = 1.95;
	s.workers = 2;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "input-bound");
	assert_non_null(strstr(res.all.v[0].advice, "no core is idle"));
	done(&res);
}

static void cpu_oversubscribed(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.cores = 1.95;
	s.delay = 4;
	expect_first(&s, "cpu-oversubscribed", SEVERITY_LIMIT);
}

/* Two threads on two cores that others use as well: not the job's fault. */
static void host_contended(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.cores = 1.2;
	s.delay = 0.6;
	s.others = 0.8;
	analyse(&s, &res);
	assert_null(findings_get(&res.all, "cpu-oversubscribed"));
	assert_non_null(findings_get(&res.all, "host-contended"));
	assert_string_equal(res.all.v[0].id, "healthy");
	done(&res);
	s.cores = 0.9;
	s.delay = 1.1;
	s.others = 1.1;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "host-contended");
	assert_int_equal(res.all.v[0].severity, SEVERITY_LIMIT);
	assert_string_equal(res.all.v[1].id, "healthy");
	done(&res);
}

static void memory_growing(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.rss_mb_per_s = 5;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "memory-growing");
	assert_true(near(res.f.memory.growth.slope, 5e6, 0.02));
	done(&res);
	s.seconds = 11;
	s.rss_mb_per_s = 20;
	expect_first(&s, "memory-growing", SEVERITY_WARNING);
}

/* What may end the run goes before what slows it a little. */
static void leak_before_a_few_slow_steps(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.rss_mb_per_s = 5;
	s.slow_every = 15;
	s.slow_factor = 2.2;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "memory-growing");
	assert_int_equal(findings_get(&res.all, "uneven-steps")->severity, SEVERITY_WARNING);
	done(&res);
}

static void memory_near_limit(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.limit_mb = 430;
	expect_first(&s, "memory-near-limit", SEVERITY_WARNING);
	s.limit_mb = 405;
	expect_first(&s, "memory-near-limit", SEVERITY_LIMIT);
}

/* Forked workers share their pages: the sum of RSS passes the limit, what counts does not. */
static void shared_pages_count_once(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.processes = 9;
	s.limit_mb = 390;
	s.pss_mb = 100;
	analyse(&s, &res);
	assert_true(near(res.f.memory.peak_rss, 400.4e6, 1e-6));
	assert_true(near(res.f.memory.peak_used, 100e6, 1e-6));
	assert_string_equal(res.all.v[0].id, "healthy");
	done(&res);
}

/* A leak that has nearly filled what is allowed: the leak is the cause. */
static void leak_explains_near_limit(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.rss_mb_per_s = 5;
	s.limit_mb = 705;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "memory-growing");
	assert_int_equal(res.all.v[0].severity, SEVERITY_LIMIT);
	assert_int_equal(findings_get(&res.all, "memory-near-limit")->severity, SEVERITY_INFO);
	done(&res);
}

static void swapping(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.swap_mb_s = 40;
	s.memory_some = 0.1;
	s.faults_s = 2000;
	s.wait_share = 0.6; /* loading from swap */
	s.disk_read_mb_s = 40;
	s.io_some = 0.6;
	s.limit_mb = 410;
	expect_first(&s, "swapping", SEVERITY_LIMIT);
	/* Somebody else swaps. */
	s = synthetic_healthy();
	s.swap_mb_s = 40;
	s.memory_some = 0.3;
	expect_first(&s, "healthy", SEVERITY_OK);
}

/* Reading from disk looks like waiting for input: the disk is the cause. */
static void io_bound(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.disk_read_mb_s = 80;
	s.io_some = 0.7;
	s.wait_share = 0.75;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "io-bound");
	assert_int_equal(findings_get(&res.all, "input-bound")->severity, SEVERITY_INFO);
	done(&res);
}

static void others_on_the_disk(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.io_some = 0.7;
	expect_first(&s, "healthy", SEVERITY_OK);
}

/* Checkpoints make steps uneven; what is left of them without is even. */
static void checkpoint_stalls(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.checkpoint_every = 10;
	s.checkpoint_ms = 200;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "checkpoint-stalls");
	assert_null(findings_get(&res.all, "uneven-steps"));
	assert_true(near(res.f.checkpoints.share, 200.0 / 700, 0.03));
	done(&res);
}

static void gc_pauses(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.gc_every = 5;
	s.gc_ms = 80;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "gc-pauses");
	assert_null(findings_get(&res.all, "uneven-steps"));
	done(&res);
}

static void uneven_steps(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.slow_every = 12;
	s.slow_factor = 8;
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "uneven-steps");
	assert_non_null(strstr(res.all.v[0].text, "every 12 steps"));
	done(&res);
}

static void gpu_idle(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.gpu = 1;
	expect_first(&s, "gpu-idle", SEVERITY_LIMIT);
	s.gpu = 2;
	expect_first(&s, "healthy", SEVERITY_OK);
}

static void too_little(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.step_ms = 0;
	expect_first(&s, "too-little-evidence", SEVERITY_INFO);
	s = synthetic_healthy();
	s.no_job_metrics = true;
	expect_first(&s, "too-little-evidence", SEVERITY_INFO);
	s = synthetic_healthy();
	s.cores = 0.02; /* it sleeps */
	expect_first(&s, "too-little-evidence", SEVERITY_INFO);
	s = synthetic_healthy();
	s.seconds = 5;
	s.step_ms = 200;
	expect_first(&s, "too-little-evidence", SEVERITY_INFO);
}

static void job_failed(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.exit_code = "3";
	expect_first(&s, "job-failed", SEVERITY_WARNING);
	s.exit_code = "135"; /* a shell on a SIGBUS */
	analyse(&s, &res);
	assert_string_equal(res.all.v[0].id, "job-failed");
	assert_non_null(strstr(res.all.v[0].advice, "/dev/shm"));
	done(&res);
	s.exit_code = NULL;
	s.signal = "2";
	expect_first(&s, "healthy", SEVERITY_OK);
}

static void recorder_killed(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.unfinished = true;
	s.exit_code = NULL;
	analyse(&s, &res);
	assert_true(res.f.run.cut);
	assert_false(res.f.run.live);
	assert_false(res.f.run.has_exit);
	assert_string_equal(res.all.v[0].id, "healthy");
	done(&res);
}

/* Nothing was measured: nothing may turn into 0. */
static void absent_stays_absent(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct result res;
	(void)state;
	s.no_job_metrics = true;
	s.step_ms = 0;
	analyse(&s, &res);
	assert_true(isnan(res.f.cpu.cores_mean));
	assert_true(isnan(res.f.cpu.run_delay_share));
	assert_true(isnan(res.f.memory.peak_rss));
	assert_true(isnan(res.f.io.read));
	assert_true(isnan(res.f.steps.wait_share));
	assert_true(isnan(res.f.energy_j));
	assert_int_equal(res.f.checkpoints.n, -1);
	done(&res);
}

static void tables_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; analyses[i]; i++) {
		assert_non_null(analyses[i]->find);
		assert_true(strlen(analyses[i]->help) > 10);
	}
	for (int i = 0; i < TH__COUNT; i++)
		assert_true(thresholds[i].value > 0 && strlen(thresholds[i].why) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_what_was_written),
		cmocka_unit_test(healthy),
		cmocka_unit_test(short_but_healthy),
		cmocka_unit_test(input_bound),
		cmocka_unit_test(no_core_for_workers),
		cmocka_unit_test(cpu_oversubscribed),
		cmocka_unit_test(host_contended),
		cmocka_unit_test(memory_growing),
		cmocka_unit_test(leak_before_a_few_slow_steps),
		cmocka_unit_test(memory_near_limit),
		cmocka_unit_test(shared_pages_count_once),
		cmocka_unit_test(leak_explains_near_limit),
		cmocka_unit_test(swapping),
		cmocka_unit_test(io_bound),
		cmocka_unit_test(others_on_the_disk),
		cmocka_unit_test(checkpoint_stalls),
		cmocka_unit_test(gc_pauses),
		cmocka_unit_test(uneven_steps),
		cmocka_unit_test(gpu_idle),
		cmocka_unit_test(too_little),
		cmocka_unit_test(job_failed),
		cmocka_unit_test(recorder_killed),
		cmocka_unit_test(absent_stays_absent),
		cmocka_unit_test(tables_are_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
