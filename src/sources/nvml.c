/*
 * Source nvml: NVIDIA GPUs, the coarse view. Utilization, memory, power, temperature, processes, and how many of
 * these are the job's. Where no GPU can be shown, the run's fact gpu.reason says why.
 *
 * Opening never waits for the driver: GPUs appear as entities at the first tick after it answered. A driver
 * that does not answer costs gaps that say so, never a tick.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources/attrs.h"
#include "sources/gpu_reason.h"
#include "sources/host_parse.h"
#include "sources/jobset.h"
#include "sources/nvml_thread.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

#define START_LIMIT_NS  (10 * NS_PER_S) /* a driver without persistence mode may need some seconds */
#define ANSWER_LIMIT_NS (2 * NS_PER_S)  /* beyond the interval */
#define STOP_LIMIT_NS   (200 * NS_PER_MS)

enum {
	UTILIZATION,
	MEMORY_TOTAL,
	MEMORY_USED,
	POWER,
	TEMPERATURE,
	PROCESSES,
	JOB_PROCESSES,
	SERIES
};

static const struct {
	enum metric_id metric;
	enum nvml_value value; /* whose code says if it is there */
} rows[SERIES] = {
	[UTILIZATION] = { METRIC_GPU_UTILIZATION, NVML_V_UTILIZATION },
	[MEMORY_TOTAL] = { METRIC_MEMORY_TOTAL, NVML_V_MEMORY },
	[MEMORY_USED] = { METRIC_MEMORY_USED, NVML_V_MEMORY },
	[POWER] = { METRIC_POWER, NVML_V_POWER },
	[TEMPERATURE] = { METRIC_TEMPERATURE, NVML_V_TEMPERATURE },
	[PROCESSES] = { METRIC_GPU_PROCESSES, NVML_V_PROCESSES },
	[JOB_PROCESSES] = { METRIC_GPU_JOB_PROCESSES, NVML_V_PROCESSES },
};

struct state {
	struct rec_writer *w;
	const char *proc_root, *sys_root;
	uint32_t host;
	uint64_t interval_ns, opened_ns;
	const struct jobset *jobset;
	struct nvml_thread *thread;
	bool settled; /* GPUs made, or gpu.reason said for good */
	bool said_slow;
	unsigned ngpus;
	uint32_t series[NVML_GPUS_MAX][SERIES];
	uint64_t seq; /* of the values put last */
	uint64_t answered_ns;
};

static void set_reason(struct rec_writer *w, const char *proc_root, const char *sys_root,
		       const char *failure, struct buf *out)
{
	struct gpu_facts facts;
	gpu_facts_read(&facts, proc_root, sys_root);
	gpu_reason(out, &facts, failure);
	if (w && !out->failed)
		rec_set(w, "gpu.reason", out->data);
}

static void make_gpu(struct state *s, const struct nvml_view *view, unsigned i, uint64_t t_ns)
{
	const struct nvml_gpu *gpu = &view->gpus[i];
	struct buf attrs = BUF_INIT;
	uint32_t entity;
	series_none(s->series[i], SERIES);
	if (rec_entity(s->w, ENTITY_GPU, s->host, *gpu->name ? gpu->name : "NVIDIA GPU", gpu->index,
		       t_ns, &entity))
		return;
	for (int k = 0; k < SERIES; k++)
		if (rec_series(s->w, entity, rows[k].metric, "nvml", &s->series[i][k]))
			return;
	attrs_i64(&attrs, "index", gpu->index);
	if (*gpu->uuid)
		attrs_text(&attrs, "uuid", gpu->uuid);
	if (*gpu->bus_id)
		attrs_text(&attrs, "pci", gpu->bus_id);
	if (gpu->memory_bytes)
		attrs_i64(&attrs, "memory_bytes", host_scale(gpu->memory_bytes, 1));
	if (*view->driver)
		attrs_text(&attrs, "driver", view->driver);
	attrs_store(&attrs, s->w, entity);
}

/* The driver answered, for better or worse. */
static void settle(struct state *s, const struct nvml_view *view, uint64_t t_ns)
{
	struct buf why = BUF_INIT;
	s->settled = true;
	s->answered_ns = t_ns;
	if (view->state == NVML_FAILED) {
		set_reason(s->w, s->proc_root, s->sys_root, nvml_reason(view->failure), &why);
	} else if (!view->ngpus) {
		rec_set(s->w, "gpu.reason",
			"the NVIDIA driver shows no GPU (in a container: start it with --gpus all "
			"or "
			"NVIDIA_VISIBLE_DEVICES=all)");
	} else {
		for (unsigned i = 0; i < view->ngpus; i++)
			make_gpu(s, view, i, t_ns);
		s->ngpus = view->ngpus;
	}
	buf_free(&why);
}

/*
 * How many of the GPU's processes are the job's. The driver gives pids of the host: in a container with pids of
 * its own none of them may exist here, and then this is not known (false).
 */
static bool count_job(const struct state *s, const struct nvml_values *v, int64_t *ret)
{
	int64_t n = 0;
	bool any_exists = false;
	if (!s->jobset || v->npids < v->processes)
		return false;
	for (unsigned i = 0; i < v->npids; i++) {
		bool ours = jobset_has(s->jobset, v->pids[i]);
		n += ours;
		any_exists |= ours;
	}
	for (unsigned i = 0; i < v->npids && !any_exists; i++) {
		char path[PATH_MAX];
		int len = snprintf(path, sizeof(path), "%s/%d", s->proc_root, (int)v->pids[i]);
		any_exists = len > 0 && (size_t)len < sizeof(path) && !access(path, F_OK);
	}
	if (v->npids && !any_exists)
		return false;
	*ret = n;
	return true;
}

static void put_gpu(struct state *s, const uint32_t *series, const struct nvml_values *v)
{
	int64_t job_processes;
	for (int k = 0; k < SERIES; k++)
		if (v->code[rows[k].value] != NVML_OK)
			rec_gap(s->w, series[k], nvml_reason(v->code[rows[k].value]));
	if (v->code[NVML_V_UTILIZATION] == NVML_OK)
		rec_put_f64(s->w, series[UTILIZATION], v->utilization_percent / 100.0);
	if (v->code[NVML_V_MEMORY] == NVML_OK) {
		rec_put_i64(s->w, series[MEMORY_TOTAL], host_scale(v->memory_total, 1));
		rec_put_i64(s->w, series[MEMORY_USED], host_scale(v->memory_used, 1));
	}
	if (v->code[NVML_V_POWER] == NVML_OK)
		rec_put_f64(s->w, series[POWER], v->power_mw / 1000.0);
	if (v->code[NVML_V_TEMPERATURE] == NVML_OK)
		rec_put_f64(s->w, series[TEMPERATURE], v->temperature_c);
	if (v->code[NVML_V_PROCESSES] != NVML_OK)
		return;
	rec_put_i64(s->w, series[PROCESSES], v->processes);
	if (count_job(s, v, &job_processes))
		rec_put_i64(s->w, series[JOB_PROCESSES], job_processes);
	else
		rec_gap(s->w, series[JOB_PROCESSES], "the driver's pids are not those seen here");
}

static void gap_all(struct state *s, const char *reason)
{
	for (unsigned i = 0; i < s->ngpus; i++)
		series_gap(s->w, s->series[i], SERIES, reason);
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	const struct nvml_view *view = nvml_thread_look(s->thread, t_ns);
	if (!s->settled && view->state != NVML_STARTING)
		settle(s, view, t_ns);
	uint64_t limit_ns = s->interval_ns + ANSWER_LIMIT_NS;
	if (s->ngpus && view->seq != s->seq && t_ns < view->read_ns + limit_ns) {
		s->answered_ns = t_ns;
		for (unsigned i = 0; i < s->ngpus; i++)
			put_gpu(s, s->series[i], &view->values[i]);
	} else if (t_ns > s->answered_ns + limit_ns) {
		gap_all(s, "the driver did not answer"); /* or so late that the answer is old */
	}
	s->seq = view->seq;
	nvml_thread_unlook(s->thread);
	if (!s->settled && !s->said_slow && t_ns > s->opened_ns + START_LIMIT_NS) {
		rec_set(s->w, "gpu.reason", "the NVIDIA driver did not answer within 10 s");
		s->said_slow = true;
	}
}

static void close_source(void *state)
{
	struct state *s = state;
	nvml_thread_stop(s->thread, STOP_LIMIT_NS);
	free(s);
}

/* Load the library; if that fails, say why in out and, with a writer, in the recording. */
static int load(const struct source_env *env, struct rec_writer *w, struct nvml_lib *lib,
		struct buf *out)
{
	struct err e = { .text = "" };
	int rc = nvml_lib_open(lib, &e);
	if (!rc)
		return 0;
	bool not_found = strstr(e.text, "No such file") != NULL;
	set_reason(w, env->proc_root, env->sys_root, not_found ? NULL : e.text, out);
	return rc;
}

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	struct nvml_lib lib;
	struct buf why = BUF_INIT;
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	int rc = load(env, env->w, &lib, &why);
	if (rc)
		err_set(e, -rc, "%s", why.data);
	else if ((rc = nvml_thread_start(&lib, env->interval_ns, &s->thread)))
		err_set(e, -rc, "no thread for the NVIDIA driver: %s", strerror(-rc));
	buf_free(&why);
	if (rc) {
		free(s);
		return rc;
	}
	s->w = env->w;
	s->proc_root = env->proc_root;
	s->sys_root = env->sys_root;
	s->host = env->host;
	s->interval_ns = env->interval_ns;
	s->jobset = env->jobset;
	s->opened_ns = clock_mono_ns();
	*ret_state = s;
	return 0;
}

/* What the thread found out, within a time a person will wait. */
static int describe(struct nvml_thread *thread, const struct source_env *env, struct buf *why)
{
	uint64_t until = clock_mono_ns() + ANSWER_LIMIT_NS;
	int rc = -ETIMEDOUT;
	while (rc == -ETIMEDOUT && clock_mono_ns() < until) {
		const struct nvml_view *view = nvml_thread_look(thread, clock_mono_ns());
		if (view->state == NVML_FAILED) {
			set_reason(NULL, env->proc_root, env->sys_root, nvml_reason(view->failure),
				   why);
			rc = -ENODEV;
		} else if (view->state == NVML_RUNNING) {
			buf_addf(why, "driver %s, %u GPU%s", *view->driver ? view->driver : "?",
				 view->ngpus, view->ngpus == 1 ? "" : "s");
			if (view->ngpus)
				buf_addf(why, ", the first is %s", view->gpus[0].name);
			rc = view->ngpus ? 0 : -ENODEV;
		}
		nvml_thread_unlook(thread);
		usleep(rc == -ETIMEDOUT ? 2000 : 0);
	}
	if (rc == -ETIMEDOUT)
		buf_adds(why, "the NVIDIA driver did not answer within 2 s");
	return rc;
}

static int probe(const struct source_env *env, struct buf *why)
{
	struct nvml_lib lib;
	struct nvml_thread *thread;
	int rc = load(env, NULL, &lib, why);
	if (rc)
		return rc;
	rc = nvml_thread_start(&lib, NS_PER_S, &thread);
	if (rc) {
		buf_addf(why, "no thread for the NVIDIA driver: %s", strerror(-rc));
		return rc;
	}
	rc = describe(thread, env, why);
	nvml_thread_stop(thread, STOP_LIMIT_NS);
	return rc;
}

const struct source source_nvml = {
	.name = "nvml",
	.help = "NVIDIA GPUs: utilization, memory, power, temperature, processes",
	.needs = "libnvidia-ml.so.1 (part of the NVIDIA driver)",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
