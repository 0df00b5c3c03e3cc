/*
 * Source host-cpu: /proc/stat, /proc/schedstat and /proc/loadavg. CPU time per state of the host and of each
 * core, time tasks waited for a core, tasks ready and blocked, context switches, forks, load, cores online.
 *
 * Cores come and go: one that is seen for the first time gets its entity then, one that went offline has
 * gaps that say so. A core's counters never go backwards here: the kernel's idle and iowait may, by a
 * little, when a core is put to sleep or brought back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"

enum { RUN_DELAY = HOST_STATES, CPU_SERIES };

static const enum metric_id cpu_metrics[CPU_SERIES] = {
	[HOST_USER] = METRIC_CPU_USER,      [HOST_SYSTEM] = METRIC_CPU_SYSTEM,
	[HOST_IDLE] = METRIC_CPU_IDLE,      [HOST_IOWAIT] = METRIC_CPU_IOWAIT,
	[HOST_IRQ] = METRIC_CPU_IRQ,        [HOST_STEAL] = METRIC_CPU_STEAL,
	[RUN_DELAY] = METRIC_CPU_RUN_DELAY,
};

enum { SWITCHES, FORKS, RUNNABLE, BLOCKED, STAT_KEYS };
static const char *const stat_keys[STAT_KEYS] = {
	[SWITCHES] = "ctxt",
	[FORKS] = "processes",
	[RUNNABLE] = "procs_running",
	[BLOCKED] = "procs_blocked",
};
static const enum metric_id stat_metrics[STAT_KEYS] = {
	[SWITCHES] = METRIC_SCHED_SWITCHES,
	[FORKS] = METRIC_SCHED_FORKS,
	[RUNNABLE] = METRIC_SCHED_RUNNABLE,
	[BLOCKED] = METRIC_SCHED_BLOCKED,
};

struct row {
	bool known, seen;
	uint32_t series[CPU_SERIES];
	int64_t last[CPU_SERIES]; /* what was put last */
};

struct state {
	struct rec_writer *w;
	uint32_t host;
	uint64_t tick_ns; /* one unit of /proc/stat */
	struct kfile stat, schedstat, loadavg;
	struct row total;
	struct row *cpus; /* by number */
	size_t ncpus;     /* room */
	uint32_t keys[STAT_KEYS], load, count;
};

static int make_row(struct state *s, struct row *r, uint32_t entity, unsigned have)
{
	series_none(r->series, CPU_SERIES);
	for (int i = 0; i < HOST_STATES; i++) {
		if (!(have & (1u << i)))
			continue;
		int rc = series_make(s->w, entity, &cpu_metrics[i], 1, "/proc/stat", &r->series[i]);
		if (rc)
			return rc;
	}
	r->known = true;
	if (s->schedstat.fd < 0)
		return 0;
	return series_make(s->w, entity, &cpu_metrics[RUN_DELAY], 1, "/proc/schedstat",
			   &r->series[RUN_DELAY]);
}

static bool make_room(struct state *s, size_t cpu)
{
	if (cpu < s->ncpus)
		return true;
	size_t n = s->ncpus ? s->ncpus : 8;
	while (n <= cpu)
		n *= 2;
	struct row *cpus = realloc(s->cpus, n * sizeof(*cpus));
	if (!cpus)
		return false;
	memset(cpus + s->ncpus, 0, (n - s->ncpus) * sizeof(*cpus));
	s->cpus = cpus;
	s->ncpus = n;
	return true;
}

/* The row of a line of /proc/stat, made when first seen; NULL if that failed. */
static struct row *row_of(struct state *s, const struct host_cpu_line *line, uint64_t t_ns)
{
	if (line->cpu < 0)
		return &s->total;
	size_t cpu = (size_t)line->cpu;
	if (!make_room(s, cpu))
		return NULL;
	struct row *r = &s->cpus[cpu];
	if (r->known)
		return r;
	char name[16];
	uint32_t entity;
	snprintf(name, sizeof(name), "cpu%d", line->cpu);
	if (rec_entity(s->w, ENTITY_CPU, s->host, name, line->cpu, t_ns, &entity) ||
	    make_row(s, r, entity, line->have))
		return NULL;
	return r;
}

static void put_row(struct state *s, struct row *r, const struct host_cpu_line *line)
{
	for (int i = 0; i < HOST_STATES; i++) {
		if (!(line->have & (1u << i)))
			continue;
		int64_t v = host_scale(line->ticks[i], s->tick_ns);
		if (v > r->last[i])
			r->last[i] = v;
		rec_put_i64(s->w, r->series[i], r->last[i]);
	}
	r->seen = true;
}

static int64_t sample_cpus(struct state *s, uint64_t t_ns)
{
	struct host_cpu_line line;
	int64_t online = 0;
	for (const char *p = s->stat.text; host_parse_cpu(&p, &line);) {
		struct row *r = row_of(s, &line, t_ns);
		online += line.cpu >= 0;
		if (r)
			put_row(s, r, &line);
	}
	for (size_t i = 0; i < s->ncpus; i++) {
		if (s->cpus[i].known && !s->cpus[i].seen)
			series_gap(s->w, s->cpus[i].series, CPU_SERIES, "offline");
		s->cpus[i].seen = false;
	}
	return online;
}

static void sample_keys(struct state *s)
{
	for (int i = 0; i < STAT_KEYS; i++) {
		uint64_t v;
		if (io_find_u64(s->stat.text, stat_keys[i], &v))
			rec_put_i64(s->w, s->keys[i], host_scale(v, 1));
		else
			rec_gap(s->w, s->keys[i], "the kernel gave no value");
	}
}

static void sample_delay(struct state *s)
{
	uint64_t delay;
	int64_t sum = 0;
	int cpu;
	ssize_t n = kfile_read(&s->schedstat);
	if (n == -EBADF)
		return;
	if (n < 0) {
		rec_gap(s->w, s->total.series[RUN_DELAY], series_reason((int)n));
		return;
	}
	/* A core that goes offline takes its share with it: the sum holds what it said last. */
	for (const char *p = s->schedstat.text; host_parse_schedstat(&p, &cpu, &delay);) {
		if ((size_t)cpu >= s->ncpus || !s->cpus[cpu].known)
			continue;
		struct row *r = &s->cpus[cpu];
		int64_t v = host_scale(delay, 1);
		if (v > r->last[RUN_DELAY])
			r->last[RUN_DELAY] = v;
		rec_put_i64(s->w, r->series[RUN_DELAY], r->last[RUN_DELAY]);
	}
	for (size_t i = 0; i < s->ncpus; i++)
		if (__builtin_add_overflow(sum, s->cpus[i].last[RUN_DELAY], &sum))
			sum = INT64_MAX;
	rec_put_i64(s->w, s->total.series[RUN_DELAY], sum);
}

static void sample_load(struct state *s)
{
	char text[64];
	double load;
	ssize_t n = s->loadavg.fd < 0 ? -EBADF : io_pread_text(s->loadavg.fd, text, sizeof(text));
	if (n >= 0 && host_parse_decimal(text, &load))
		rec_put_f64(s->w, s->load, load);
	else
		rec_gap(s->w, s->load, series_reason(n < 0 ? (int)n : -EINVAL));
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	ssize_t n = kfile_read(&s->stat);
	if (n < 0) {
		const char *why = series_reason((int)n);
		series_gap(s->w, s->total.series, HOST_STATES, why);
		for (size_t i = 0; i < s->ncpus; i++)
			if (s->cpus[i].known)
				series_gap(s->w, s->cpus[i].series, HOST_STATES, why);
		series_gap(s->w, s->keys, STAT_KEYS, why);
		rec_gap(s->w, s->count, why);
	} else {
		rec_put_i64(s->w, s->count, sample_cpus(s, t_ns));
		sample_keys(s);
	}
	sample_delay(s);
	sample_load(s);
}

static void close_source(void *state)
{
	struct state *s = state;
	kfile_close(&s->stat);
	kfile_close(&s->schedstat);
	kfile_close(&s->loadavg);
	free(s->cpus);
	free(s);
}

/* Use /proc/schedstat only where its columns mean what host_parse_schedstat takes them for. */
static void open_schedstat(struct kfile *f, const char *proc_root)
{
	uint64_t version;
	if (kfile_open(f, proc_root, "/schedstat"))
		return;
	if (kfile_read(f) < 0 || !host_parse_schedstat_version(f->text, &version) || version < 15)
		kfile_close(f);
}

static int open_series(struct state *s)
{
	static const enum metric_id load = METRIC_SCHED_LOAD1, count = METRIC_CPU_COUNT;
	struct host_cpu_line line;
	const char *p = s->stat.text;
	if (!host_parse_cpu(&p, &line) || line.cpu >= 0)
		return -EINVAL;
	int rc = make_row(s, &s->total, s->host, line.have);
	if (!rc)
		rc = series_make(s->w, s->host, stat_metrics, STAT_KEYS, "/proc/stat", s->keys);
	if (!rc)
		rc = series_make(s->w, s->host, &load, 1, "/proc/loadavg", &s->load);
	if (!rc)
		rc = series_make(s->w, s->host, &count, 1, "/proc/stat", &s->count);
	return rc;
}

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	s->host = env->host;
	long hz = sysconf(_SC_CLK_TCK);
	s->tick_ns = 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
	s->schedstat.fd = s->loadavg.fd = -1;
	int rc = kfile_open(&s->stat, env->proc_root, "/stat");
	if (!rc) {
		ssize_t n = kfile_read(&s->stat);
		rc = n < 0 ? (int)n : 0;
	}
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s/stat: %s", env->proc_root, strerror(-rc));
	}
	open_schedstat(&s->schedstat, env->proc_root);
	kfile_open(&s->loadavg, env->proc_root, "/loadavg");
	rc = open_series(s);
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s/stat does not begin with the line \"cpu\"",
			       env->proc_root);
	}
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	struct kfile stat = KFILE_INIT, sched = KFILE_INIT;
	struct host_cpu_line line;
	int cpus = 0, rc = kfile_open(&stat, env->proc_root, "/stat");
	ssize_t n = rc ? rc : kfile_read(&stat);
	if (n >= 0)
		for (const char *p = stat.text; host_parse_cpu(&p, &line);)
			cpus += line.cpu >= 0;
	kfile_close(&stat);
	if (n < 0 || !cpus) {
		buf_addf(why, "%s/stat: %s", env->proc_root,
			 n < 0 ? strerror((int)-n) : "no line for any CPU");
		return n < 0 ? (int)n : -EINVAL;
	}
	open_schedstat(&sched, env->proc_root);
	buf_addf(why, "%d cores online; %s", cpus,
		 sched.fd >= 0 ? "time waiting for a core is known for the whole host"
			       : "time waiting for a core is known for the job only, since the "
				 "kernel has no /proc/schedstat");
	kfile_close(&sched);
	return 0;
}

const struct source source_host_cpu = {
	.name = "host-cpu",
	.help = "CPU time per state and core, run queue, context switches, load",
	.needs = "/proc/stat",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
