/*
 * Source host-frequency: the mean clock of the host's cores, from cpufreq (scaling_cur_freq) or from
 * /proc/cpuinfo.
 *
 * Reading the clock of one core costs the kernel 1 us to (on older kernels) an interrupt to that core, and
 * /proc/cpuinfo is long. So it is read at most every 2 s (cpuinfo: 10 s), from at most 32 cores spread over
 * all; at ticks between there is no sample.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

enum { CORES_MAX = 32, CPUFREQ_EVERY_S = 2, CPUINFO_EVERY_S = 10 };

struct state {
	struct rec_writer *w;
	uint32_t series;
	struct kfile cores[CORES_MAX];
	int ncores;
	struct kfile cpuinfo; /* only where there is no cpufreq */
	uint64_t next_ns;
};

static int open_core(struct kfile *f, const char *sys_root, int cpu)
{
	char path[96];
	snprintf(path, sizeof(path), "/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
	return kfile_open(f, sys_root, path);
}

/* Numbers of the cores present, 0 if that is not known. */
static int cpus_present(const char *sys_root, uint64_t *bits)
{
	struct kfile f = KFILE_INIT;
	int n = 0;
	if (!kfile_open(&f, sys_root, "/devices/system/cpu/present") && kfile_read(&f) > 0)
		n = host_parse_cpulist(f.text, bits, HOST_CPUS_MAX / 64);
	kfile_close(&f);
	return n > 0 ? n : 0;
}

/* Descriptors for up to CORES_MAX cores, evenly spread. */
static void open_cores(struct state *s, const char *sys_root)
{
	uint64_t bits[HOST_CPUS_MAX / 64];
	int n = cpus_present(sys_root, bits), i = 0;
	int step = (n + CORES_MAX - 1) / CORES_MAX;
	for (int cpu = 0; cpu < HOST_CPUS_MAX && n && s->ncores < CORES_MAX; cpu++) {
		if (!(bits[cpu / 64] >> (cpu % 64) & 1) || i++ % step)
			continue;
		if (!open_core(&s->cores[s->ncores], sys_root, cpu))
			s->ncores++;
	}
}

static bool read_cpufreq(struct state *s, double *ret_hz)
{
	uint64_t khz, sum = 0;
	unsigned n = 0;
	for (int i = 0; i < s->ncores; i++) /* a core that is offline says EBUSY or the like */
		if (!kfile_read_u64(&s->cores[i], &khz) && khz && khz < 100000000) {
			sum += khz;
			n++;
		}
	if (!n)
		return false;
	*ret_hz = (double)sum * 1000 / n;
	return true;
}

static bool read_cpuinfo(struct kfile *f, double *ret_hz)
{
	return kfile_read(f) > 0 && host_parse_cpuinfo_hz(f->text, ret_hz);
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	double hz;
	if (t_ns < s->next_ns)
		return;
	uint64_t every_ns = (s->ncores ? CPUFREQ_EVERY_S : CPUINFO_EVERY_S) * NS_PER_S;
	s->next_ns = t_ns + every_ns - every_ns / 8; /* a tick that is a little early counts */
	if (s->ncores ? read_cpufreq(s, &hz) : read_cpuinfo(&s->cpuinfo, &hz))
		rec_put_f64(s->w, s->series, hz);
	else
		rec_gap(s->w, s->series, "the kernel gave no value");
}

static void close_source(void *state)
{
	struct state *s = state;
	for (int i = 0; i < s->ncores; i++)
		kfile_close(&s->cores[i]);
	kfile_close(&s->cpuinfo);
	free(s);
}

#define ABSENT                                                                                     \
	"this machine does not tell the clock of its cores: no cpufreq in %s/devices/system/cpu, " \
	"and no measured clock in %s/cpuinfo (usual for virtual machines)"

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	static const enum metric_id metric = METRIC_CPU_FREQUENCY;
	struct state *s = calloc(1, sizeof(*s));
	double hz;
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	s->cpuinfo.fd = -1;
	open_cores(s, env->sys_root);
	if (!s->ncores) {
		kfile_open(&s->cpuinfo, env->proc_root, "/cpuinfo");
		if (!read_cpuinfo(&s->cpuinfo, &hz)) {
			close_source(s);
			return err_set(e, ENOENT, ABSENT, env->sys_root, env->proc_root);
		}
	}
	int rc = series_make(s->w, env->host, &metric, 1, s->ncores ? "cpufreq" : "/proc/cpuinfo",
			     &s->series);
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s", strerror(-rc));
	}
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	struct state s = { .cpuinfo = KFILE_INIT };
	double hz;
	int rc = 0;
	open_cores(&s, env->sys_root);
	if (!s.ncores)
		kfile_open(&s.cpuinfo, env->proc_root, "/cpuinfo");
	if (s.ncores && read_cpufreq(&s, &hz)) {
		buf_addf(why, "mean of %d cores from cpufreq, now %.2f GHz", s.ncores, hz / 1e9);
	} else if (!s.ncores && read_cpuinfo(&s.cpuinfo, &hz)) {
		buf_addf(why, "mean of all cores from /proc/cpuinfo, now %.2f GHz", hz / 1e9);
	} else {
		buf_addf(why, ABSENT, env->sys_root, env->proc_root);
		rc = -ENOENT;
	}
	for (int i = 0; i < s.ncores; i++)
		kfile_close(&s.cores[i]);
	kfile_close(&s.cpuinfo);
	return rc;
}

const struct source source_host_frequency = {
	.name = "host-frequency",
	.help = "mean clock of the cores",
	.needs = "/sys/devices/system/cpu/cpu*/cpufreq or /proc/cpuinfo",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
