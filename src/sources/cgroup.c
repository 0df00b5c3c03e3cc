/*
 * Source cgroup: the control group the job runs in, versions 1 and 2. What the job may use (cpu.allowed and
 * memory.limit, on the job and on the cgroup), what the cgroup used, how long it was held back by its quota,
 * its stalls, and its processes killed for lack of memory.
 *
 * Limits are looked for in every cgroup from the job's own up. memory.used and the kills are read where the
 * smallest memory limit is set, so that used stands beside limit; time held back where the smallest quota is.
 * Limits, and whether the job has moved, are looked at every 2 s; usage at each tick.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources/attrs.h"
#include "sources/cgroup_limits.h"
#include "sources/cgroup_usage.h"
#include "sources/host_parse.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

#define LIMITS_EVERY_NS (2 * NS_PER_S)

static const enum metric_id value_metrics[CGROUP_VALUES] = {
	[CGROUP_USER] = METRIC_CPU_USER,
	[CGROUP_SYSTEM] = METRIC_CPU_SYSTEM,
	[CGROUP_THROTTLED] = METRIC_CPU_THROTTLED,
	[CGROUP_USED] = METRIC_MEMORY_USED,
	[CGROUP_OOM_KILLS] = METRIC_MEMORY_OOM_KILLS,
	[CGROUP_STALL_CPU] = METRIC_PRESSURE_CPU_SOME,
	[CGROUP_STALL_CPU_FULL] = METRIC_PRESSURE_CPU_FULL,
	[CGROUP_STALL_MEMORY] = METRIC_PRESSURE_MEMORY_SOME,
	[CGROUP_STALL_MEMORY_FULL] = METRIC_PRESSURE_MEMORY_FULL,
	[CGROUP_STALL_IO] = METRIC_PRESSURE_IO_SOME,
	[CGROUP_STALL_IO_FULL] = METRIC_PRESSURE_IO_FULL,
};

/* On the cgroup, and on the job. */
enum { ALLOWED, LIMIT, LIMITS };
static const enum metric_id limit_metrics[LIMITS] = {
	[ALLOWED] = METRIC_CPU_ALLOWED,
	[LIMIT] = METRIC_MEMORY_LIMIT,
};

struct state {
	struct rec_writer *w;
	const char *proc_root, *sys_root;
	uint32_t host, job;
	uint32_t entity; /* 0: the job is in no cgroup but the root */
	pid_t pid;
	int64_t memory_total; /* 0: not known */
	struct cgroup_where where;
	struct cgroup_limits limits;
	struct cgroup_usage usage;
	uint32_t series[CGROUP_VALUES], limit_series[LIMITS], job_series[LIMITS];
	uint64_t next_limits_ns;
};

/* The path that says most: that of version 2, else of the first controller that is not at the root. */
static const struct cgroup_place *main_place(const struct cgroup_where *where)
{
	static const enum cgroup_controller order[] = { CGROUP_MEMORY, CGROUP_CPU, CGROUP_CPUACCT,
							CGROUP_CPUSET, CGROUP_UNIFIED };
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const struct cgroup_place *p = &where->places[order[i]];
		if (p->version && !cgroup_is_root(p))
			return p;
	}
	return NULL;
}

static void set_attrs(struct state *s, const struct cgroup_place *place)
{
	const struct cgroup_limits *l = &s->limits;
	struct buf b = BUF_INIT;
	attrs_i64(&b, "version", place->version);
	if (l->quota_cores > 0) {
		attrs_f64(&b, "quota_cores", l->quota_cores);
		attrs_text(&b, "quota_at", l->quota_dir);
	}
	if (l->memory_bytes != INT64_MAX) {
		attrs_i64(&b, "memory_limit_bytes", l->memory_bytes);
		attrs_text(&b, "memory_limit_at", l->memory_dir);
	}
	if (l->cores_cpuset)
		attrs_i64(&b, "cpuset_cores", l->cores_cpuset);
	attrs_store(&b, s->w, s->entity);
}

static void leave(struct state *s, uint64_t t_ns)
{
	series_end(s->w, s->series, CGROUP_VALUES);
	series_end(s->w, s->limit_series, LIMITS);
	if (s->entity)
		rec_entity_end(s->w, s->entity, t_ns);
	s->entity = 0;
	cgroup_usage_close(&s->usage);
}

static int make_series(struct state *s, const char *source)
{
	int rc = series_make(s->w, s->entity, limit_metrics, LIMITS, source, s->limit_series);
	for (int i = 0; i < CGROUP_VALUES && !rc; i++)
		if (cgroup_usage_has(&s->usage, (enum cgroup_value)i))
			rc = series_make(s->w, s->entity, &value_metrics[i], 1, source,
					 &s->series[i]);
	return rc;
}

/* The job is in another cgroup than before (or in its first). */
static int enter(struct state *s, uint64_t t_ns)
{
	const struct cgroup_place *place = main_place(&s->where);
	cgroup_usage_open(&s->usage, &s->where, &s->limits);
	if (!place)
		return 0;
	int rc = rec_entity(s->w, ENTITY_CGROUP, s->host, place->path, 0, t_ns, &s->entity);
	if (!rc)
		rc = make_series(s, place->version == 2 ? "cgroup v2" : "cgroup v1");
	if (!rc)
		set_attrs(s, place);
	return rc;
}

static bool same_limits(const struct cgroup_limits *a, const struct cgroup_limits *b)
{
	return a->quota_cores == b->quota_cores && a->memory_bytes == b->memory_bytes &&
	       a->cores_cpuset == b->cores_cpuset && !strcmp(a->quota_dir, b->quota_dir) &&
	       !strcmp(a->memory_dir, b->memory_dir);
}

static void look_again(struct state *s, uint64_t t_ns)
{
	bool changed;
	struct cgroup_limits limits;
	if (cgroup_where_read(&s->where, s->proc_root, s->sys_root, s->pid, &changed))
		return; /* the job is gone; what its cgroup used until now can still be read */
	cgroup_limits_read(&limits, &s->where, s->proc_root, s->sys_root, s->pid);
	bool same = same_limits(&limits, &s->limits);
	s->limits = limits;
	if (changed) {
		leave(s, t_ns);
		enter(s, t_ns);
	} else if (!same) {
		cgroup_usage_follow(&s->usage, &s->where, &s->limits);
		if (s->entity)
			set_attrs(s, main_place(&s->where));
	}
}

static void put_allowed(struct state *s, uint32_t series, int cores)
{
	double quota = s->limits.quota_cores;
	if (series == SERIES_NONE)
		return;
	if (!cores && quota <= 0)
		rec_gap(s->w, series, "the kernel gave no value");
	else if (!cores || (quota > 0 && quota < cores))
		rec_put_f64(s->w, series, quota);
	else
		rec_put_f64(s->w, series, cores);
}

static void put_limit(struct state *s, uint32_t series, int64_t bytes)
{
	if (series == SERIES_NONE)
		return;
	if (bytes == INT64_MAX)
		rec_gap(s->w, series, "no limit");
	else
		rec_put_i64(s->w, series, bytes);
}

static void put_limits(struct state *s)
{
	const struct cgroup_limits *l = &s->limits;
	int64_t total = s->memory_total ? s->memory_total : INT64_MAX;
	put_allowed(s, s->limit_series[ALLOWED], l->cores_cpuset);
	put_allowed(s, s->job_series[ALLOWED],
		    l->cores_affinity ? l->cores_affinity : l->cores_cpuset);
	put_limit(s, s->limit_series[LIMIT], l->memory_bytes);
	put_limit(s, s->job_series[LIMIT], l->memory_bytes < total ? l->memory_bytes : total);
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	struct cgroup_values values;
	if (t_ns >= s->next_limits_ns) {
		s->next_limits_ns = t_ns + LIMITS_EVERY_NS - LIMITS_EVERY_NS / 8;
		look_again(s, t_ns);
	}
	put_limits(s);
	if (!s->entity)
		return;
	cgroup_usage_read(&s->usage, &values);
	for (int i = 0; i < CGROUP_VALUES; i++) {
		if (s->series[i] == SERIES_NONE)
			continue;
		if (values.have[i])
			rec_put_i64(s->w, s->series[i], values.v[i]);
		else
			rec_gap(s->w, s->series[i], "the kernel gave no value");
	}
}

static void close_source(void *state)
{
	struct state *s = state;
	cgroup_usage_close(&s->usage);
	cgroup_where_free(&s->where);
	free(s);
}

static pid_t watched(const struct source_env *env)
{
	return env->job_pid ? env->job_pid : env->recorder_pid ? env->recorder_pid : getpid();
}

static int64_t physical_memory(const char *proc_root)
{
	struct kfile f = KFILE_INIT;
	struct host_key key = { .key = "MemTotal" };
	if (!kfile_open(&f, proc_root, "/meminfo") && kfile_read(&f) > 0)
		host_parse_keys(f.text, &key, 1);
	kfile_close(&f);
	return key.have ? host_scale(key.value, 1024) : 0;
}

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	struct state *s = calloc(1, sizeof(*s));
	bool changed;
	int rc = 0;
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	s->proc_root = env->proc_root;
	s->sys_root = env->sys_root;
	s->host = env->host;
	s->job = env->job;
	s->pid = watched(env);
	s->memory_total = physical_memory(env->proc_root);
	series_none(s->series, CGROUP_VALUES);
	series_none(s->limit_series, LIMITS);
	series_none(s->job_series, LIMITS);
	/* Without cgroups the affinity and the physical memory are still limits worth having. */
	cgroup_where_read(&s->where, s->proc_root, s->sys_root, s->pid, &changed);
	cgroup_limits_read(&s->limits, &s->where, s->proc_root, s->sys_root, s->pid);
	if (s->job)
		rc = series_make(s->w, s->job, limit_metrics, LIMITS, "cgroup, affinity",
				 s->job_series);
	if (!rc)
		rc = enter(s, clock_mono_ns());
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s", strerror(-rc));
	}
	s->next_limits_ns = clock_mono_ns() + LIMITS_EVERY_NS;
	*ret_state = s;
	return 0;
}

static void describe(const struct cgroup_where *where, const struct cgroup_limits *l,
		     struct buf *why)
{
	const struct cgroup_place *place = main_place(where);
	if (place)
		buf_addf(why, "in cgroup %s (v%d); ", place->path, place->version);
	else
		buf_adds(why, "in no cgroup but the root; ");
	if (l->quota_cores > 0)
		buf_addf(why, "CPU quota %.3g cores, ", l->quota_cores);
	else
		buf_adds(why, "no CPU quota, ");
	if (l->cores_affinity)
		buf_addf(why, "affinity %d cores, ", l->cores_affinity);
	if (l->memory_bytes != INT64_MAX)
		buf_addf(why, "memory limit %.3g GB", (double)l->memory_bytes / 1e9);
	else
		buf_adds(why, "no memory limit");
}

static int probe(const struct source_env *env, struct buf *why)
{
	struct cgroup_where *where = calloc(1, sizeof(*where));
	struct cgroup_limits *limits = calloc(1, sizeof(*limits));
	bool changed;
	int rc = where && limits ? 0 : -ENOMEM;
	if (!rc) {
		rc = cgroup_where_read(where, env->proc_root, env->sys_root, watched(env),
				       &changed);
		cgroup_limits_read(limits, where, env->proc_root, env->sys_root, watched(env));
		if (rc)
			buf_addf(why, "no cgroups (%s/%d/cgroup: %s); affinity is still read",
				 env->proc_root, (int)watched(env), strerror(-rc));
		else
			describe(where, limits, why);
		cgroup_where_free(where);
	}
	free(where);
	free(limits);
	return rc;
}

const struct source source_cgroup = {
	.name = "cgroup",
	.help = "what the job's control group may use and has used, versions 1 and 2",
	.needs = "/proc/PID/cgroup, /sys/fs/cgroup",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
