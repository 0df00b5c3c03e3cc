/*
 * The NVML source against the doubles of tests/doubles/nvml: real shared objects, loaded the way the driver's
 * library is. A double is opened by its path first; the source's own dlopen then gets that one by its name.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "fake_writer.h"
#include "sources/gpu_reason.h"
#include "sources/jobset.h"
#include "sources/nvml_thread.h"
#include "sources/sources.h"
#include "tree.h"

#define MS NS_PER_MS

struct fixture {
	struct tree tree;
	struct rec_writer *w;
	struct jobset jobset;
	struct source_env env;
	void *library, *state;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char script[PATH_MAX];
	tree_new(&f->tree);
	f->w = fake_new();
	f->env = (struct source_env){ .w = f->w,
				      .proc_root = f->tree.proc,
				      .sys_root = f->tree.sys,
				      .interval_ns = 100 * MS,
				      .jobset = &f->jobset };
	rec_entity(f->w, ENTITY_HOST, 0, "host", 0, 1, &f->env.host);
	snprintf(script, sizeof(script), "%s/script", f->tree.root);
	setenv("NVML_DOUBLE", script, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	if (f->state)
		source_nvml.close(f->state);
	if (f->library)
		dlclose(f->library);
	assert_int_equal(f->w->bad, 0);
	map_free(&f->jobset.pids);
	tree_free(&f->tree);
	free(f->w);
	free(f);
	return 0;
}

static void open_it(struct fixture *f, const char *double_path, const char *script)
{
	struct err e = { "" };
	tree_put(&f->tree, "/script", script);
	f->library = dlopen(double_path, RTLD_NOW);
	assert_non_null(f->library);
	assert_int_equal(source_nvml.open(&f->env, &f->state, &e), 0);
}

static void tick(struct fixture *f, uint64_t ahead_ns)
{
	fake_tick(f->w);
	source_nvml.sample(f->state, clock_mono_ns() + ahead_ns);
}

/* Tick until something was put or said about GPUs; the source's thread needs its time. */
static void tick_until_answer(struct fixture *f)
{
	for (int i = 0; i < 5000; i++) {
		tick(f, 0);
		uint32_t gpu = fake_entity(f->w, ENTITY_GPU, NULL);
		struct fake_series *s = gpu ? fake_find(f->w, gpu, METRIC_GPU_UTILIZATION) : NULL;
		if ((s && (s->put_now || s->gap_now)) || *fake_fact(f->w, "gpu.reason"))
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 2 * MS }, NULL);
	}
	fail_msg("no answer in 10 s");
}

static void test_values(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/11/stat", "");
	map_put(&f->jobset.pids, 11, 5);
	map_put(&f->jobset.pids, 99, 6);
	open_it(f, NVML_DOUBLE_PATH,
		"gpus 2\nname NVIDIA \"X\"\n1.utilization 87\n1.processes 11:5000 12:6000 99\n"
		"temperature 61\n1.memory.total 85899345920\n1.memory.used 34359738368\n");
	tick_until_answer(f);
	uint32_t second = fake_entity(f->w, ENTITY_GPU, NULL), first = second - 1;
	assert_string_equal(f->w->entities[second - 1].name, "NVIDIA \"X\"");
	assert_int_equal(f->w->entities[second - 1].key, 1);
	assert_string_equal(f->w->entities[second - 1].attrs,
			    "{\"index\":1,\"uuid\":\"GPU-00000000-0000-0000-0000-000000000001\","
			    "\"pci\":\"00000000:42:00.0\",\"memory_bytes\":85899345920,"
			    "\"driver\":\"550.54.15\"}");
	assert_true(fake_f64(f->w, first, METRIC_GPU_UTILIZATION) == 0.5);
	assert_true(fake_f64(f->w, second, METRIC_GPU_UTILIZATION) == 0.87);
	assert_int_equal(fake_i64(f->w, second, METRIC_MEMORY_TOTAL), 85899345920);
	assert_int_equal(fake_i64(f->w, second, METRIC_MEMORY_USED), 34359738368);
	assert_true(fake_f64(f->w, second, METRIC_POWER) == 123.456);
	assert_true(fake_f64(f->w, second, METRIC_TEMPERATURE) == 61);
	assert_int_equal(fake_i64(f->w, first, METRIC_GPU_PROCESSES), 0);
	assert_int_equal(fake_i64(f->w, first, METRIC_GPU_JOB_PROCESSES), 0);
	assert_int_equal(fake_i64(f->w, second, METRIC_GPU_PROCESSES), 3);
	assert_int_equal(fake_i64(f->w, second, METRIC_GPU_JOB_PROCESSES), 2);
	assert_string_equal(fake_fact(f->w, "gpu.reason"), "");
}

/* An old driver: first versions of all calls, entries of 16 bytes, no power. */
static void test_old_driver(void **state)
{
	struct fixture *f = *state;
	map_put(&f->jobset.pids, 7, 5);
	open_it(f, NVML_DOUBLE_OLD_PATH, "processes 6:1 7:2 8:3\n");
	tick_until_answer(f);
	uint32_t gpu = fake_entity(f->w, ENTITY_GPU, NULL);
	assert_true(fake_f64(f->w, gpu, METRIC_GPU_UTILIZATION) == 0.5);
	assert_int_equal(fake_i64(f->w, gpu, METRIC_MEMORY_USED), 1073741824 + 268435456);
	assert_int_equal(fake_i64(f->w, gpu, METRIC_GPU_PROCESSES), 3);
	assert_int_equal(fake_i64(f->w, gpu, METRIC_GPU_JOB_PROCESSES), 1);
	assert_string_equal(fake_gap(f->w, gpu, METRIC_POWER), "this driver does not have it");
}

/* Branch R535 wrote entries of 32 bytes behind the name that promises 24. */
static void test_r535(void **state)
{
	struct fixture *f = *state;
	map_put(&f->jobset.pids, 8, 5);
	open_it(f, NVML_DOUBLE_PATH, "processes 6:1 7:2 8:3\nprocess_bytes 32\n");
	tick_until_answer(f);
	uint32_t gpu = fake_entity(f->w, ENTITY_GPU, NULL);
	assert_int_equal(fake_i64(f->w, gpu, METRIC_GPU_JOB_PROCESSES), 1);
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	open_it(f, NVML_DOUBLE_PATH,
		"gpus 2\n0.fail.nvmlDeviceGetUtilizationRates 3\n0.fail.nvmlDeviceGetPowerUsage "
		"15\n"
		"0.processes 4000000:1\n1.fail.nvmlDeviceGetHandleByIndex_v2 4\n");
	tick_until_answer(f);
	uint32_t lost = fake_entity(f->w, ENTITY_GPU, "NVIDIA GPU");
	uint32_t gpu = fake_entity(f->w, ENTITY_GPU, "NVIDIA Double 9000");
	assert_string_equal(fake_gap(f->w, gpu, METRIC_GPU_UTILIZATION), "not supported");
	assert_string_equal(fake_gap(f->w, gpu, METRIC_POWER), "the GPU is lost");
	assert_int_equal(fake_i64(f->w, gpu, METRIC_MEMORY_USED), 1073741824);
	assert_int_equal(fake_i64(f->w, gpu, METRIC_GPU_PROCESSES), 1);
	/* a pid that does not exist here: the job's share is not known, not zero */
	assert_true(*fake_gap(f->w, gpu, METRIC_GPU_JOB_PROCESSES));
	assert_string_equal(fake_gap(f->w, lost, METRIC_MEMORY_USED), "no permission");
}

/* More processes than there is room for: their number is known, whose they are is not. */
static void test_many_processes(void **state)
{
	struct fixture *f = *state;
	struct buf b = BUF_INIT;
	buf_adds(&b, "processes ");
	for (int i = 1; i <= NVML_PIDS_MAX + 9; i++)
		buf_addf(&b, "%d ", i);
	open_it(f, NVML_DOUBLE_PATH, b.data);
	buf_free(&b);
	tick_until_answer(f);
	uint32_t gpu = fake_entity(f->w, ENTITY_GPU, NULL);
	assert_int_equal(fake_i64(f->w, gpu, METRIC_GPU_PROCESSES), NVML_PIDS_MAX + 9);
	assert_true(*fake_gap(f->w, gpu, METRIC_GPU_JOB_PROCESSES));
}

/* The driver hangs in the middle: gaps that say so, and closing does not wait for it. */
static void test_hang(void **state)
{
	struct fixture *f = *state;
	open_it(f, NVML_DOUBLE_PATH, "");
	tick_until_answer(f);
	uint32_t gpu = fake_entity(f->w, ENTITY_GPU, NULL);
	assert_true(fake_f64(f->w, gpu, METRIC_GPU_UTILIZATION) == 0.5);
	tree_put(&f->tree, "/script", "hang.nvmlDeviceGetPowerUsage 600\n");
	nanosleep(&(struct timespec){ .tv_nsec = 250 * MS }, NULL);
	tick(f, 0); /* may still take what was read before the hang */
	for (int i = 0; i < 3; i++)
		tick(f, 10 * NS_PER_S); /* as if ten seconds had passed */
	assert_string_equal(fake_gap(f->w, gpu, METRIC_GPU_UTILIZATION),
			    "the driver did not answer");
	source_nvml.close(f->state); /* leaves the thread behind */
	f->state = NULL;
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL); /* it may end before its library goes */
}

static void test_hang_at_start(void **state)
{
	struct fixture *f = *state;
	open_it(f, NVML_DOUBLE_PATH, "hang.nvmlInit_v2 400\n");
	tick(f, 0);
	assert_int_equal(fake_entity(f->w, ENTITY_GPU, NULL), 0);
	assert_string_equal(fake_fact(f->w, "gpu.reason"), "");
	tick(f, 11 * NS_PER_S);
	assert_non_null(strstr(fake_fact(f->w, "gpu.reason"), "did not answer"));
	nanosleep(&(struct timespec){ .tv_nsec = 500 * MS }, NULL);
	for (int i = 0; i < 100 && !fake_entity(f->w, ENTITY_GPU, NULL); i++) {
		tick(f, 0);
		nanosleep(&(struct timespec){ .tv_nsec = 10 * MS }, NULL);
	}
	assert_true(fake_entity(f->w, ENTITY_GPU, NULL)); /* late, but there */
}

static void test_no_driver(void **state)
{
	struct fixture *f = *state;
	struct buf why = BUF_INIT;
	open_it(f, NVML_DOUBLE_PATH, "fail.nvmlInit_v2 9\n");
	tick_until_answer(f);
	assert_string_equal(fake_fact(f->w, "gpu.reason"),
			    "no NVIDIA driver is loaded: the driver is not loaded");
	assert_true(source_nvml.probe(&f->env, &why) < 0);
	assert_string_equal(why.data, "no NVIDIA driver is loaded: the driver is not loaded");
	buf_free(&why);
}

static void test_no_gpu(void **state)
{
	struct fixture *f = *state;
	open_it(f, NVML_DOUBLE_PATH, "gpus 0\n");
	tick_until_answer(f);
	assert_non_null(strstr(fake_fact(f->w, "gpu.reason"), "shows no GPU"));
	assert_int_equal(fake_entity(f->w, ENTITY_GPU, NULL), 0);
}

static void test_probe(void **state)
{
	struct fixture *f = *state;
	struct buf why = BUF_INIT;
	tree_put(&f->tree, "/script", "gpus 3\n");
	f->library = dlopen(NVML_DOUBLE_PATH, RTLD_NOW);
	assert_int_equal(source_nvml.probe(&f->env, &why), 0);
	assert_string_equal(why.data, "driver 550.54.15, 3 GPUs, the first is NVIDIA Double 9000");
	buf_free(&why);
}

static void test_no_library(void **state)
{
	struct fixture *f = *state;
	struct err e = { "" };
	if (dlopen(NVML_SONAME, RTLD_NOW)) {
		print_message("this machine has a " NVML_SONAME "\n");
		skip();
	}
	assert_true(source_nvml.open(&f->env, &f->state, &e) < 0);
	assert_string_equal(e.text, "no NVIDIA driver: libnvidia-ml.so.1 was not found");
	assert_string_equal(fake_fact(f->w, "gpu.reason"), e.text);
}

static const char *reason(struct fixture *f, const char *failure, char *out, size_t cap)
{
	struct buf b = BUF_INIT;
	struct gpu_facts facts;
	gpu_facts_read(&facts, f->tree.proc, f->tree.sys);
	gpu_reason(&b, &facts, failure);
	snprintf(out, cap, "%s", b.data);
	buf_free(&b);
	return out;
}

static void test_reason(void **state)
{
	struct fixture *f = *state;
	char text[512];
	tree_put(&f->tree, "/sys/class/drm/card0/device/vendor", "0x8086\n");
	tree_put(&f->tree, "/sys/class/drm/card0-HDMI-A-1/device/vendor", "0x8086\n");
	assert_string_equal(
		reason(f, NULL, text, sizeof(text)),
		"no NVIDIA driver: libnvidia-ml.so.1 was not found; an Intel GPU cannot "
		"be read by this version");
	tree_put(&f->tree, "/sys/bus/pci/devices/0/vendor", "0x1002\n");
	tree_put(&f->tree, "/sys/bus/pci/devices/0/class", "0x120000\n");
	tree_put(&f->tree, "/sys/bus/pci/devices/1/vendor", "0x1002\n");
	tree_put(&f->tree, "/sys/bus/pci/devices/1/class", "0x038000\n");
	tree_put(&f->tree, "/sys/bus/pci/devices/2/vendor", "0x10de\n"); /* a network card */
	tree_put(&f->tree, "/sys/bus/pci/devices/2/class", "0x020000\n");
	assert_non_null(strstr(reason(f, NULL, text, sizeof(text)), "; 2 AMD GPUs cannot"));
	tree_put(&f->tree, "/sys/bus/pci/devices/3/vendor", "0x10de\n");
	tree_put(&f->tree, "/sys/bus/pci/devices/3/class", "0x030200\n");
	assert_non_null(
		strstr(reason(f, NULL, text, sizeof(text)), "an NVIDIA GPU on the PCI bus"));
	tree_put(&f->tree, "/proc/driver/nvidia/version", "NVRM version: 550\n");
	assert_non_null(strstr(reason(f, NULL, text, sizeof(text)), "--gpus all"));
	assert_non_null(strstr(reason(f, "boom", text, sizeof(text)), "does not work: boom"));
}

static void test_stride(void **state)
{
	unsigned char b[256];
	static const size_t strides[] = { 16, 24, 32 };
	for (size_t i = 0; i < 3; i++) {
		memset(b, NVML_POISON, sizeof(b));
		memset(b, 0, 3 * strides[i]);
		assert_int_equal(nvml_process_stride(b, sizeof(b), 3, 24), strides[i]);
		b[3 * strides[i] - 1] = NVML_POISON; /* a last byte that looks unwritten */
		assert_int_equal(nvml_process_stride(b, sizeof(b), 3, 24), strides[i]);
	}
	memset(b, 0, sizeof(b)); /* the driver wrote all of it: believe the header */
	assert_int_equal(nvml_process_stride(b, sizeof(b), 3, 24), 24);
	memset(b, NVML_POISON, sizeof(b));
	assert_int_equal(nvml_process_stride(b, sizeof(b), 3, 16), 16);
}

static void test_schedule(void **state)
{
	/* 20 ms before the next tick */
	assert_true(nvml_next_read_ns(10100 * MS, 10000 * MS, 1000 * MS, 0) == 10980 * MS);
	/* slow readings begin earlier, at most half an interval */
	assert_true(nvml_next_read_ns(10100 * MS, 10000 * MS, 1000 * MS, 100 * MS) == 10800 * MS);
	assert_true(nvml_next_read_ns(10100 * MS, 10000 * MS, 1000 * MS, 900 * MS) == 10500 * MS);
	/* too late for that tick: the one after it */
	assert_true(nvml_next_read_ns(10990 * MS, 10000 * MS, 1000 * MS, 0) == 11980 * MS);
	assert_true(nvml_next_read_ns(13990 * MS, 10000 * MS, 1000 * MS, 0) == 14980 * MS);
	/* ticks of 1 ms: ten times a second */
	assert_true(nvml_next_read_ns(10000 * MS, 10000 * MS, 1 * MS, 0) == 10080 * MS);
	/* no tick yet, or no interval */
	assert_true(nvml_next_read_ns(5 * MS, 0, 1000 * MS, 0) == 1005 * MS);
	assert_true(nvml_next_read_ns(5 * MS, 0, 0, 0) == 1005 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_no_library), /* first: the doubles would be found by name later */
		TEST(test_values),
		TEST(test_old_driver),
		TEST(test_r535),
		TEST(test_errors),
		TEST(test_many_processes),
		TEST(test_hang),
		TEST(test_hang_at_start),
		TEST(test_no_driver),
		TEST(test_no_gpu),
		TEST(test_probe),
		TEST(test_reason),
		cmocka_unit_test(test_stride),
		cmocka_unit_test(test_schedule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
