/* What /proc and /sys say, as pure functions: real texts, old ones, and garbage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "sources/host_parse.h"

static void test_scale(void **state)
{
	assert_true(host_scale(123, 1000) == 123000);
	assert_true(host_scale(UINT64_MAX, 1) == INT64_MAX);
	assert_true(host_scale(1ULL << 60, 1000) == INT64_MAX);
	assert_true(host_scale(0, 1000) == 0);
}

static void test_cpu(void **state)
{
	const char *p = "cpu  10 2 30 400 50 6 7 8 9 1\ncpu3 1 0 3 40 5 0 0 0 0 0\nintr 1 2\n";
	struct host_cpu_line line;
	assert_true(host_parse_cpu(&p, &line));
	assert_int_equal(line.cpu, -1);
	assert_true(line.ticks[HOST_USER] == 12); /* nice in, guest not again */
	assert_true(line.ticks[HOST_SYSTEM] == 30);
	assert_true(line.ticks[HOST_IDLE] == 400);
	assert_true(line.ticks[HOST_IOWAIT] == 50);
	assert_true(line.ticks[HOST_IRQ] == 13);
	assert_true(line.ticks[HOST_STEAL] == 8);
	assert_true(host_parse_cpu(&p, &line));
	assert_int_equal(line.cpu, 3);
	assert_false(host_parse_cpu(&p, &line));
	assert_true(!strncmp(p, "intr", 4));
}

static void test_cpu_odd(void **state)
{
	/* Four columns (old kernels), no number, too few, a number out of range, a word that begins alike. */
	const char *p = "cpu 1 2 3 4\ncpux 1 2 3 4\ncpu1 1 2\ncpu99999999999999999999 1 2 3 4\n"
			"cpu8192 1 2 3 4\ncpu2 18446744073709551615 5 0 0 0 0 0 0";
	struct host_cpu_line line;
	assert_true(host_parse_cpu(&p, &line));
	assert_int_equal(line.have, 1u << HOST_USER | 1u << HOST_SYSTEM | 1u << HOST_IDLE);
	assert_true(host_parse_cpu(&p, &line));
	assert_int_equal(line.cpu, 2);
	assert_true(line.ticks[HOST_USER] == UINT64_MAX); /* saturated, not wrapped */
	assert_false(host_parse_cpu(&p, &line));
	assert_int_equal(*p, 0);
	p = "";
	assert_false(host_parse_cpu(&p, &line));
	p = "cpu\n";
	assert_false(host_parse_cpu(&p, &line));
	p = "cpu";
	assert_false(host_parse_cpu(&p, &line));
}

static void test_schedstat(void **state)
{
	const char *text = "version 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 100 200 3\n"
			   "domain0 MC 3 1 2 3\ncpu1 0 0 0 0 0 0 5 6\ncpu12 0 0 0 0 0 0 7 8 9\n";
	const char *p = text;
	uint64_t version, delay;
	int cpu;
	assert_true(host_parse_schedstat_version(text, &version));
	assert_true(version == 17);
	assert_true(host_parse_schedstat(&p, &cpu, &delay));
	assert_int_equal(cpu, 0);
	assert_true(delay == 200);
	assert_true(host_parse_schedstat(&p, &cpu, &delay));
	assert_int_equal(cpu, 12); /* cpu1 is cut short and left out */
	assert_true(delay == 8);
	assert_false(host_parse_schedstat(&p, &cpu, &delay));
	assert_false(host_parse_schedstat_version("hello", &version));
}

static void test_keys(void **state)
{
	struct host_key k[] = { { "MemTotal", false, 0 },
				{ "Cached", false, 0 },
				{ "x", true, 7 } };
	host_parse_keys("MemTotal:       24684084 kB\nMemTotalX: 5\nSwapCached: 9 kB\n"
			"Cached:\t 12 kB\nCached: 99 kB",
			k, 3);
	assert_true(k[0].have && k[0].value == 24684084);
	assert_true(k[1].have && k[1].value == 12); /* the first one counts */
	assert_false(k[2].have); /* not there: what was known before is forgotten */
	host_parse_keys("MemTotal:  kB\nCached\n", k, 3);
	assert_false(k[0].have || k[1].have || k[2].have);
	host_parse_keys("", k, 3);
	assert_false(k[0].have);
}

static void test_pressure(void **state)
{
	const char *text = "some avg10=6.56 avg60=2.42 avg300=0.61 total=7856673\n"
			   "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
	uint64_t us;
	assert_true(host_parse_pressure(text, "some", &us) && us == 7856673);
	assert_true(host_parse_pressure(text, "full", &us) && us == 12);
	/* "some" without a total must not take that of "full" */
	assert_false(host_parse_pressure("some avg10=1\nfull total=3\n", "some", &us));
	assert_false(host_parse_pressure("something total=3\n", "some", &us));
	assert_false(host_parse_pressure("some avg10=1 total=\n", "some", &us));
	assert_false(host_parse_pressure("", "some", &us));
	assert_true(us == 12); /* untouched on failure */
}

static void test_decimal(void **state)
{
	double v = -1;
	assert_true(host_parse_decimal("0.52 0.58 0.59 1/467 12\n", &v));
	assert_true(v > 0.5199 && v < 0.5201);
	assert_true(host_parse_decimal(" 12", &v) && v == 12);
	assert_true(host_parse_decimal("3.", &v) && v == 3);
	assert_true(host_parse_decimal("1.99999999999999999999999999", &v) && v > 1.99 && v <= 2);
	assert_false(host_parse_decimal("x", &v));
	assert_false(host_parse_decimal("-1", &v));
	assert_false(host_parse_decimal("", &v));
}

static void test_disk(void **state)
{
	const char *p =
		" 254       0 vda 58134 16139 4571786 16889 32280 12920 2818520 9625 0 9928 "
		"27390 6640 54 596080 617 4791 257\n"
		"   8 1 sda1 1 2 3 4\n"
		" 104 0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n";
	struct host_disk_line d;
	assert_true(host_parse_disk(&p, &d));
	assert_int_equal(d.name_len, 3);
	assert_memory_equal(d.name, "vda", 3);
	assert_true(d.reads == 58134 && d.read_sectors == 4571786 && d.read_ms == 16889);
	assert_true(d.writes == 32280 && d.write_sectors == 2818520 && d.write_ms == 9625);
	assert_true(d.busy_ms == 9928);
	assert_true(
		host_parse_disk(&p, &d)); /* four numbers (Linux 2.6.24 partitions) are too few */
	assert_memory_equal(d.name, "cciss/c0d0", 10);
	assert_true(d.busy_ms == 10);
	assert_false(host_parse_disk(&p, &d));
	p = "8 0\n8 0 \n\n8";
	assert_false(host_parse_disk(&p, &d));
}

static bool part(const char *disk, const char *p)
{
	return host_is_partition(disk, strlen(disk), p, strlen(p));
}

static void test_partition(void **state)
{
	assert_true(part("sda", "sda1"));
	assert_true(part("nvme0n1", "nvme0n1p12"));
	assert_false(part("sda", "sda"));
	assert_false(part("sda", "sdab"));
	assert_false(part("nvme0n1", "nvme0n12"));
	assert_false(part("nvme0n1", "nvme0n1p"));
	assert_false(part("", "1"));
}

static void test_net(void **state)
{
	const char *p =
		"Inter-|   Receive          |  Transmit\n face |bytes    packets errs drop\n"
		"    lo:    3193      29    0    0    0     0          0         0     3193      "
		"29    0    0    0     0       0          0\n"
		"eth0:1:5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n"
		"  wlan0: 1 2 3\n"
		":1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
	struct host_net_line n;
	assert_true(host_parse_net(&p, &n));
	assert_int_equal(n.name_len, 2);
	assert_true(n.received == 3193 && n.sent == 3193);
	assert_true(host_parse_net(&p, &n)); /* an alias, and no blank behind the colon */
	assert_int_equal(n.name_len, 6);
	assert_memory_equal(n.name, "eth0:1", 6);
	assert_true(n.received == 5 && n.received_errors == 7 && n.received_dropped == 8);
	assert_true(n.sent == 13 && n.sent_errors == 15 && n.sent_dropped == 16);
	assert_false(host_parse_net(&p, &n));
	p = "";
	assert_false(host_parse_net(&p, &n));
}

static void test_cpulist(void **state)
{
	uint64_t bits[4];
	assert_int_equal(host_parse_cpulist("0-3,8,10-11\n", bits, 4), 7);
	assert_true(bits[0] == 0xd0f && !bits[1]);
	assert_int_equal(host_parse_cpulist("63-64,255", bits, 4), 3);
	assert_true(bits[0] == 1ULL << 63 && bits[1] == 1 && bits[3] == 1ULL << 63);
	assert_int_equal(host_parse_cpulist("\n", bits, 4), 0);
	assert_int_equal(host_parse_cpulist("", bits, 4), 0);
	assert_true(host_parse_cpulist("256", bits, 4) < 0);
	assert_true(host_parse_cpulist("0-99999999999", bits, 4) < 0);
	assert_true(host_parse_cpulist("3-1", bits, 4) < 0);
	assert_true(host_parse_cpulist("1;2", bits, 4) < 0);
	assert_true(host_parse_cpulist("-3", bits, 4) < 0);
}

static void test_cpuinfo(void **state)
{
	double hz = 0;
	assert_true(host_parse_cpuinfo_hz("flags\t\t: fpu aperfmperf sse\ncpu MHz\t\t: 2000.000\n\n"
					  "flags\t\t: fpu aperfmperf\ncpu MHz\t\t: 3000.500\n",
					  &hz));
	assert_true(hz > 2500.24e6 && hz < 2500.26e6);
	/* Without the flag the kernel prints its nominal clock: no measurement */
	assert_false(host_parse_cpuinfo_hz("flags : fpu sse\ncpu MHz : 2000.000\n", &hz));
	assert_false(host_parse_cpuinfo_hz("flags : xaperfmperf\ncpu MHz : 2000.000\n", &hz));
	assert_false(host_parse_cpuinfo_hz("flags : fpu aperfmperf\n", &hz));
	assert_false(host_parse_cpuinfo_hz("", &hz));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scale),     cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_cpu_odd),   cmocka_unit_test(test_schedstat),
		cmocka_unit_test(test_keys),      cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_decimal),   cmocka_unit_test(test_disk),
		cmocka_unit_test(test_partition), cmocka_unit_test(test_net),
		cmocka_unit_test(test_cpulist),   cmocka_unit_test(test_cpuinfo),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
