/* The host's sources over trees that stand for /proc and /sys, with a writer that remembers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "fake_writer.h"
#include "sources/sources.h"
#include "tree.h"

#define S 1000000000ULL

struct fixture {
	struct tree tree;
	struct rec_writer *w;
	struct source_env env;
	uint32_t host;
	uint64_t now;
	const struct source *source;
	void *state;
	struct err e;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	tree_new(&f->tree);
	f->w = fake_new();
	rec_entity(f->w, ENTITY_HOST, 0, "host", 0, 1, &f->host);
	f->env = (struct source_env){ .w = f->w,
				      .proc_root = f->tree.proc,
				      .sys_root = f->tree.sys,
				      .interval_ns = S,
				      .host = f->host };
	f->now = S;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	if (f->state)
		f->source->close(f->state);
	assert_int_equal(f->w->bad, 0);
	tree_free(&f->tree);
	free(f->w);
	free(f);
	return 0;
}

static int open_it(struct fixture *f, const struct source *source)
{
	f->source = source;
	return source->open(&f->env, &f->state, &f->e);
}

/* Open must fail, and so must probe, each with a sentence; returns probe's (static). */
static const char *refused(struct fixture *f, const struct source *source)
{
	static char text[1024];
	struct buf why = BUF_INIT;
	assert_true(open_it(f, source) < 0);
	assert_null(f->state);
	assert_true(strlen(f->e.text) > 10);
	assert_true(source->probe(&f->env, &why) < 0);
	snprintf(text, sizeof(text), "%s", why.data);
	buf_free(&why);
	return text;
}

static void tick(struct fixture *f)
{
	fake_tick(f->w);
	f->now += S;
	f->source->sample(f->state, f->now);
}

static void test_table(void **state)
{
	for (const struct source *const *s = sources; *s; s++) {
		assert_non_null((*s)->name);
		assert_non_null((*s)->help);
		assert_non_null((*s)->needs);
		assert_true((*s)->probe && (*s)->open && (*s)->sample && (*s)->close);
		for (const struct source *const *o = sources; o != s; o++)
			assert_string_not_equal((*o)->name, (*s)->name);
	}
}

static void test_cpu(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/stat",
		 "cpu  300 0 100 1000 50 0 10 5 0 0\ncpu0 100 0 50 500 25 0 5 5 0 0\n"
		 "cpu2 200 0 50 500 25 0 5 0 0 0\nintr 12 0 0\nctxt 4711\nbtime 5\nprocesses 99\n"
		 "procs_running 3\nprocs_blocked 1\n");
	tree_put(&f->tree, "/proc/schedstat",
		 "version 15\ncpu0 0 0 0 0 0 0 1 1000 1\ncpu2 0 0 0 0 0 0 1 500 1\n");
	tree_put(&f->tree, "/proc/loadavg", "1.25 0.58 0.59 1/467 12\n");
	assert_int_equal(open_it(f, &source_host_cpu), 0);
	tick(f);
	uint32_t cpu2 = fake_entity(f->w, ENTITY_CPU, "cpu2");
	assert_true(cpu2);
	assert_int_equal(f->w->entities[cpu2 - 1].key, 2);
	assert_int_equal(f->w->entities[cpu2 - 1].parent, f->host);
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_CPU_USER), 300 * tick_ns);
	assert_int_equal(fake_i64(f->w, cpu2, METRIC_CPU_USER), 200 * tick_ns);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_CPU_COUNT), 2);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_CPU_RUN_DELAY), 1500);
	assert_int_equal(fake_i64(f->w, cpu2, METRIC_CPU_RUN_DELAY), 500);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SCHED_SWITCHES), 4711);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SCHED_FORKS), 99);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SCHED_RUNNABLE), 3);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SCHED_BLOCKED), 1);
	assert_true(fake_f64(f->w, f->host, METRIC_SCHED_LOAD1) == 1.25);
}

/* cpu1 goes offline, comes back with an idle time that is a little less, and cpu5 appears. */
static void test_cpu_hotplug(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/stat", "cpu 2 0 0 20 0\ncpu0 1 0 0 10 0\ncpu1 1 0 0 10 0\n");
	assert_int_equal(open_it(f, &source_host_cpu), 0);
	tick(f);
	uint32_t cpu1 = fake_entity(f->w, ENTITY_CPU, "cpu1");
	tree_put(&f->tree, "/proc/stat", "cpu 2 0 0 30 0\ncpu0 1 0 0 20 0\n");
	tick(f);
	assert_string_equal(fake_gap(f->w, cpu1, METRIC_CPU_IDLE), "offline");
	assert_int_equal(fake_i64(f->w, f->host, METRIC_CPU_COUNT), 1);
	tree_put(&f->tree, "/proc/stat",
		 "cpu 9 0 0 40 0\ncpu0 1 0 0 20 0\ncpu1 2 0 0 9 0\ncpu5 6 0 0 1 0\n");
	tick(f);
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	assert_int_equal(fake_i64(f->w, cpu1, METRIC_CPU_IDLE), 10 * tick_ns);
	assert_int_equal(fake_i64(f->w, cpu1, METRIC_CPU_USER), 2 * tick_ns);
	assert_int_equal(fake_entity(f->w, ENTITY_CPU, "cpu1"), cpu1);
	uint32_t cpu5 = fake_entity(f->w, ENTITY_CPU, "cpu5");
	assert_int_equal(fake_i64(f->w, cpu5, METRIC_CPU_USER), 6 * tick_ns);
	/* no steal column in this kernel: no series, rather than zeros; no loadavg file: a gap */
	assert_null(fake_find(f->w, f->host, METRIC_CPU_STEAL));
	assert_string_equal(fake_gap(f->w, f->host, METRIC_SCHED_LOAD1), "not there");
	assert_string_equal(fake_gap(f->w, f->host, METRIC_SCHED_FORKS),
			    "the kernel gave no value");
	assert_null(fake_find(f->w, f->host, METRIC_CPU_RUN_DELAY));
}

static void test_cpu_many(void **state)
{
	struct fixture *f = *state;
	struct buf b = BUF_INIT;
	buf_adds(&b, "cpu 1 2 3 4 5 6 7 8 9 10\n");
	for (int i = 0; i < 300; i++)
		buf_addf(&b, "cpu%d %d 0 3 4 5 6 7 8 9 10\n", i, i);
	buf_adds(&b, "intr 5");
	for (int i = 0; i < 20000; i++)
		buf_adds(&b, " 0");
	buf_adds(&b, "\nctxt 77\n");
	tree_put(&f->tree, "/proc/stat", b.data);
	buf_free(&b);
	assert_int_equal(open_it(f, &source_host_cpu), 0);
	tick(f);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_CPU_COUNT), 300);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SCHED_SWITCHES), 77);
	uint32_t last = fake_entity(f->w, ENTITY_CPU, "cpu299");
	assert_int_equal(fake_i64(f->w, last, METRIC_CPU_USER),
			 299 * (1000000000 / sysconf(_SC_CLK_TCK)));
}

static void test_cpu_garbage(void **state)
{
	struct fixture *f = *state;
	refused(f, &source_host_cpu);
	tree_put(&f->tree, "/proc/stat", "");
	refused(f, &source_host_cpu);
	tree_put(&f->tree, "/proc/stat", "\x01\xff garbage\n\n");
	refused(f, &source_host_cpu);
	tree_put(&f->tree, "/proc/stat", "cpu 1 2 3 4 5 6 7 8\n");
	tree_put(&f->tree, "/proc/schedstat", "version 14\ncpu0 1 2 3\n");
	assert_int_equal(open_it(f, &source_host_cpu), 0);
	tree_put(&f->tree, "/proc/stat", ""); /* goes bad later: gaps, no values of before */
	tick(f);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_CPU_USER), INT64_MIN);
	assert_null(fake_find(f->w, f->host, METRIC_CPU_RUN_DELAY));
}

static void test_pressure(void **state)
{
	struct fixture *f = *state;
	assert_non_null(strstr(refused(f, &source_host_pressure), "CONFIG_PSI"));
	tree_put(&f->tree, "/proc/pressure/cpu", "some avg10=0.00 total=5\nfull total=0\n");
	tree_put(&f->tree, "/proc/pressure/memory", "some total=7\n");
	assert_int_equal(open_it(f, &source_host_pressure), 0);
	tick(f);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_PRESSURE_CPU_SOME), 5000);
	assert_null(fake_find(f->w, f->host, METRIC_PRESSURE_CPU_FULL));
	assert_int_equal(fake_i64(f->w, f->host, METRIC_PRESSURE_MEMORY_SOME), 7000);
	assert_string_equal(fake_gap(f->w, f->host, METRIC_PRESSURE_MEMORY_FULL),
			    "the kernel gave no value");
	assert_string_equal(fake_gap(f->w, f->host, METRIC_PRESSURE_IO_SOME), "not there");
}

static void test_memory(void **state)
{
	struct fixture *f = *state;
	refused(f, &source_host_memory);
	tree_put(&f->tree, "/proc/meminfo",
		 "MemTotal: 1000 kB\nMemFree: 200 kB\nBuffers: 10 kB\nCached: 300 kB\n"
		 "SwapTotal: 50 kB\nSwapFree: 20 kB\nDirty: 4 kB\nShmem: 3 kB\n");
	tree_put(&f->tree, "/proc/vmstat",
		 "nr_free_pages 5\npswpin 2\npswpout 3\npgfault 100\npgmajfault 10\n");
	assert_int_equal(open_it(f, &source_host_memory), 0);
	tick(f);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_MEMORY_TOTAL), 1024000);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_MEMORY_CACHED), 310 * 1024);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SWAP_USED), 30 * 1024);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_SWAP_IN), 2 * sysconf(_SC_PAGESIZE));
	assert_int_equal(fake_i64(f->w, f->host, METRIC_MEMORY_FAULTS_MINOR), 90);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_MEMORY_FAULTS_MAJOR), 10);
	/* kernels without these keys */
	assert_string_equal(fake_gap(f->w, f->host, METRIC_MEMORY_AVAILABLE),
			    "the kernel gave no value");
	assert_string_equal(fake_gap(f->w, f->host, METRIC_MEMORY_OOM_KILLS),
			    "the kernel gave no value");
	tree_put(&f->tree, "/proc/meminfo", ""); /* no value of before is put again */
	tick(f);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_MEMORY_TOTAL), INT64_MIN);
}

#define DISK(name, n) " 8 0 " name " " n " 0 10 " n " 2 0 20 5 0 7 9\n"

static void real_disk(struct fixture *f, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "/sys/block/%s/device/x", name);
	tree_put(&f->tree, path, "");
	snprintf(path, sizeof(path), "/sys/block/%s/size", name);
	tree_put(&f->tree, path, "1000\n");
	snprintf(path, sizeof(path), "/sys/block/%s/queue/rotational", name);
	tree_put(&f->tree, path, "0\n");
}

static void test_disk(void **state)
{
	struct fixture *f = *state;
	real_disk(f, "sda");
	real_disk(f, "cciss!c0d0");
	tree_put(&f->tree, "/sys/block/dm-0/size", "5\n");
	tree_put(&f->tree, "/proc/diskstats",
		 DISK("loop0", "1") DISK("sda", "4") DISK("sda1", "4") DISK("dm-0", "4")
			 DISK("cciss/c0d0", "6"));
	assert_int_equal(open_it(f, &source_host_disk), 0);
	tick(f);
	uint32_t sda = fake_entity(f->w, ENTITY_DISK, "sda");
	assert_string_equal(f->w->entities[sda - 1].attrs,
			    "{\"size_bytes\":512000,\"rotational\":false}");
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_READ), 10 * 512);
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_WRITTEN), 20 * 512);
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_READS), 4);
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_WRITES), 2);
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_READ_TIME), 4000000);
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_WRITE_TIME), 5000000);
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_BUSY), 7000000);
	assert_true(fake_entity(f->w, ENTITY_DISK, "cciss/c0d0"));
	assert_int_equal(f->w->nentities, 3); /* host and two disks: no partition, loop or dm */
}

/* Plugged in, out and in again: a new entity, the old one ended. */
static void test_disk_hotplug(void **state)
{
	struct fixture *f = *state;
	real_disk(f, "sda");
	real_disk(f, "sdb");
	tree_put(&f->tree, "/proc/diskstats", DISK("sda", "4294967290"));
	assert_int_equal(open_it(f, &source_host_disk), 0);
	tick(f);
	tree_put(&f->tree, "/proc/diskstats", DISK("sdb", "1") DISK("sda", "5"));
	tick(f);
	uint32_t sda = fake_entity(f->w, ENTITY_DISK, "sda");
	uint32_t sdb = fake_entity(f->w, ENTITY_DISK, "sdb");
	/* 32 bits of ms have wrapped: 4294967290 + 6 + 5 */
	assert_int_equal(fake_i64(f->w, sda, METRIC_DISK_READ_TIME), 4294967301LL * 1000000);
	assert_int_equal(fake_i64(f->w, sdb, METRIC_DISK_READS), 1);
	f->w->series[0].i = 0; /* the request count of this fixture went backwards on purpose */
	f->w->bad = 0;
	tree_put(&f->tree, "/proc/diskstats", DISK("sda", "6"));
	tick(f);
	assert_true(f->w->entities[sdb - 1].ended);
	assert_true(fake_find(f->w, sdb, METRIC_DISK_READS)->ended);
	tree_put(&f->tree, "/proc/diskstats", DISK("sda", "6") DISK("sdb", "1"));
	tick(f);
	assert_int_not_equal(fake_entity(f->w, ENTITY_DISK, "sdb"), sdb);
	assert_int_equal(f->w->nentities, 4);
}

static void test_disk_none_real(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/sys/block/dm-0/size", "5\n");
	tree_put(&f->tree, "/proc/diskstats", DISK("dm-0", "4") DISK("sda1", "4"));
	assert_int_equal(open_it(f, &source_host_disk), 0);
	tick(f);
	assert_true(fake_entity(f->w, ENTITY_DISK, "dm-0"));
	assert_int_equal(f->w->nentities, 2);
}

/* No sysfs at all: by their names alone. */
static void test_disk_no_sysfs(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/diskstats",
		 DISK("nvme0n1p1", "1") DISK("nvme0n1", "4") DISK("md0", "4") DISK("ram0", "4"));
	assert_int_equal(open_it(f, &source_host_disk), 0);
	tick(f);
	assert_true(fake_entity(f->w, ENTITY_DISK, "nvme0n1"));
	assert_int_equal(f->w->nentities, 2);
}

#define NET(name, n) name ": " n " 0 1 2 0 0 0 0 " n " 0 3 4 0 0 0 0\n"

static void test_net(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/sys/class/net/eth0/device/x", "");
	tree_put(&f->tree, "/proc/net/dev",
		 "Inter-|\n face |\n" NET("lo", "9") NET("eth0", "100") NET("docker0", "100"));
	assert_int_equal(open_it(f, &source_host_net), 0);
	tick(f);
	uint32_t eth0 = fake_entity(f->w, ENTITY_NET, "eth0");
	assert_int_equal(fake_i64(f->w, eth0, METRIC_NET_RECEIVED), 100);
	assert_int_equal(fake_i64(f->w, eth0, METRIC_NET_SENT), 100);
	assert_int_equal(fake_i64(f->w, eth0, METRIC_NET_ERRORS), 4);
	assert_int_equal(fake_i64(f->w, eth0, METRIC_NET_DROPPED), 6);
	assert_int_equal(f->w->nentities, 2);
	tree_put(&f->tree, "/proc/net/dev", "Inter-|\n face |\n");
	tick(f);
	assert_true(f->w->entities[eth0 - 1].ended);
}

static void test_net_container(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/sys/class/net/dummy/type", "772\n");
	tree_put(&f->tree, "/proc/net/dev", NET("lo", "9") NET("eth0", "100") NET("dummy", "1"));
	assert_int_equal(open_it(f, &source_host_net), 0);
	tick(f);
	assert_true(fake_entity(f->w, ENTITY_NET, "eth0"));
	assert_int_equal(f->w->nentities, 2);
}

static void test_frequency(void **state)
{
	struct fixture *f = *state;
	assert_non_null(strstr(refused(f, &source_host_frequency), "virtual machines"));
	tree_put(&f->tree, "/sys/devices/system/cpu/present", "0-1\n");
	tree_put(&f->tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
	tree_put(&f->tree, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "<unknown>\n");
	assert_int_equal(open_it(f, &source_host_frequency), 0);
	tick(f);
	assert_true(fake_f64(f->w, f->host, METRIC_CPU_FREQUENCY) == 2e9);
	tick(f); /* one second later: not read again */
	assert_true(isnan(fake_f64(f->w, f->host, METRIC_CPU_FREQUENCY)));
	tick(f);
	assert_true(fake_f64(f->w, f->host, METRIC_CPU_FREQUENCY) == 2e9);
}

static void test_frequency_cpuinfo(void **state)
{
	struct fixture *f = *state;
	tree_put(&f->tree, "/proc/cpuinfo", "flags : a aperfmperf\ncpu MHz : 2500.0\n");
	assert_int_equal(open_it(f, &source_host_frequency), 0);
	tick(f);
	assert_true(fake_f64(f->w, f->host, METRIC_CPU_FREQUENCY) == 2.5e9);
}

static void test_thermal(void **state)
{
	struct fixture *f = *state;
	refused(f, &source_thermal);
	tree_put(&f->tree, "/sys/class/hwmon/hwmon0/name", "coretemp\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon0/temp1_input", "45500\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon0/temp2_label", "Core 0\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon0/temp2_input", "44000\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon1/name", "nvme\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon1/temp1_input", "-3000\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon2/name", "nvme\n");
	tree_put(&f->tree, "/sys/class/hwmon/hwmon2/temp1_input", "31000\n");
	tree_put(&f->tree, "/sys/class/thermal/thermal_zone0/type", "acpitz\n");
	tree_put(&f->tree, "/sys/class/thermal/thermal_zone0/temp", "20000\n");
	tree_put(&f->tree, "/sys/class/thermal/thermal_zone1/type", "gone\n");
	assert_int_equal(open_it(f, &source_thermal), 0);
	tick(f);
	uint32_t id = fake_entity(f->w, ENTITY_SENSOR, "coretemp Package id 0");
	assert_true(fake_f64(f->w, id, METRIC_TEMPERATURE) == 45.5);
	id = fake_entity(f->w, ENTITY_SENSOR, "nvme");
	assert_true(fake_f64(f->w, id, METRIC_TEMPERATURE) == -3);
	id = fake_entity(f->w, ENTITY_SENSOR, "nvme #2");
	assert_true(fake_f64(f->w, id, METRIC_TEMPERATURE) == 31);
	id = fake_entity(f->w, ENTITY_SENSOR, "acpitz");
	assert_true(fake_f64(f->w, id, METRIC_TEMPERATURE) == 20);
	assert_int_equal(f->w->nentities, 5);
	f->now += 10 * S;
	tree_put(&f->tree, "/sys/class/thermal/thermal_zone0/temp", "\n");
	tick(f);
	assert_string_equal(fake_gap(f->w, id, METRIC_TEMPERATURE), "the kernel gave no value");
}

static void domain(struct fixture *f, const char *entry, const char *name, const char *range,
		   const char *now)
{
	char path[128];
	snprintf(path, sizeof(path), "/sys/class/powercap/%s/name", entry);
	tree_put(&f->tree, path, name);
	snprintf(path, sizeof(path), "/sys/class/powercap/%s/max_energy_range_uj", entry);
	tree_put(&f->tree, path, range);
	snprintf(path, sizeof(path), "/sys/class/powercap/%s/energy_uj", entry);
	tree_put(&f->tree, path, now);
}

static void test_energy(void **state)
{
	struct fixture *f = *state;
	assert_non_null(strstr(refused(f, &source_energy), "intel_rapl"));
	tree_put(&f->tree, "/sys/class/powercap/intel-rapl/enabled", "1\n");
	domain(f, "intel-rapl:0", "package-0\n", "1000\n", "900\n");
	domain(f, "intel-rapl:0:0", "core\n", "1000\n", "10\n");
	domain(f, "intel-rapl:0:1", "dram\n", "1000\n", "20\n");
	domain(f, "intel-rapl-mmio:0", "package-0\n", "1000\n", "5\n");
	assert_int_equal(open_it(f, &source_energy), 0);
	tick(f);
	uint32_t package = fake_entity(f->w, ENTITY_ENERGY, "package-0");
	uint32_t core = fake_entity(f->w, ENTITY_ENERGY, "package-0 core");
	assert_int_equal(f->w->nentities,
			 4); /* host, package, core, dram: mmio is the package again */
	assert_int_equal(fake_i64(f->w, package, METRIC_ENERGY), 0);
	domain(f, "intel-rapl:0", "package-0\n", "1000\n", "50\n"); /* has wrapped */
	domain(f, "intel-rapl:0:0", "core\n", "1000\n", "30\n");
	domain(f, "intel-rapl:0:1", "dram\n", "1000\n", "21\n");
	tick(f);
	assert_int_equal(fake_i64(f->w, package, METRIC_ENERGY), 150);
	assert_int_equal(fake_i64(f->w, core, METRIC_ENERGY), 20);
	assert_int_equal(fake_i64(f->w, f->host, METRIC_ENERGY), 151); /* package and dram */
	tree_put(&f->tree, "/sys/class/powercap/intel-rapl:0/energy_uj", "");
	tick(f);
	assert_string_equal(fake_gap(f->w, package, METRIC_ENERGY), "the kernel gave no value");
	assert_string_equal(fake_gap(f->w, f->host, METRIC_ENERGY), "a domain could not be read");
}

static void test_energy_no_permission(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	domain(f, "intel-rapl:0", "package-0\n", "1000\n", "900\n");
	snprintf(path, sizeof(path), "%s/class/powercap/intel-rapl:0/energy_uj", f->tree.sys);
	chmod(path, 0);
	bool root = !geteuid(); /* who reads files of any mode: try as nobody */
	assert_int_equal(root ? seteuid(65534) : 0, 0);
	const char *why = refused(f, &source_energy);
	assert_int_equal(root ? seteuid(0) : 0, 0);
	assert_non_null(strstr(why, "chmod"));
}

/* Every source, over trees of empty files and of noise: no crash, no value out of nothing. */
static void test_noise(void **state)
{
	struct fixture *f = *state;
	static const char *const files[] = {
		"/proc/stat",
		"/proc/schedstat",
		"/proc/loadavg",
		"/proc/meminfo",
		"/proc/vmstat",
		"/proc/diskstats",
		"/proc/net/dev",
		"/proc/cpuinfo",
		"/proc/pressure/cpu",
		"/proc/pressure/memory",
		"/proc/pressure/io",
		"/sys/devices/system/cpu/present",
		"/sys/class/hwmon/hwmon0/name",
		"/sys/class/hwmon/hwmon0/temp1_input",
		"/sys/class/powercap/intel-rapl:0/name",
		"/sys/class/powercap/intel-rapl:0/energy_uj",
	};
	static const char *const texts[] = { "",
					     "\n",
					     ":",
					     "\xff\xfe 1 2\n3",
					     "cpu\ncpu0",
					     "0-",
					     "99999999999999999999999 99999999999999999999999\n" };
	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
			tree_put(&f->tree, files[i], texts[t]);
		for (const struct source *const *s = sources; *s; s++) {
			struct buf why = BUF_INIT;
			f->state = NULL;
			(*s)->probe(&f->env, &why);
			assert_true(why.len > 0);
			buf_free(&why);
			if (open_it(f, *s))
				continue;
			tick(f);
			f->source->close(f->state);
			f->state = NULL;
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		TEST(test_cpu),
		TEST(test_cpu_hotplug),
		TEST(test_cpu_many),
		TEST(test_cpu_garbage),
		TEST(test_pressure),
		TEST(test_memory),
		TEST(test_disk),
		TEST(test_disk_hotplug),
		TEST(test_disk_none_real),
		TEST(test_disk_no_sysfs),
		TEST(test_net),
		TEST(test_net_container),
		TEST(test_frequency),
		TEST(test_frequency_cpuinfo),
		TEST(test_thermal),
		TEST(test_energy),
		TEST(test_energy_no_permission),
		TEST(test_noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
