/* The recorder; see recorder.h. */
#include "record/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "record/facts.h"
#include "record/launch.h"
#include "record/outfile.h"
#include "record/rundir.h"
#include "record/signals.h"
#include "record/tee.h"
#include "sources/source.h"
#include "tracers/tracer.h"

#define MAX_PARTS 32 /* sources, and tracers; the tables are shorter */

struct recorder {
	struct recorder_options options;
	char path[OUTFILE_MAX];
	struct rec_writer *w; /* NULL: nothing is recorded */
	struct signals signals;
	struct jobset jobset;
	struct source_env env;
	char dir[RUNDIR_MAX]; /* empty: there is none */
	int timer;
	struct tee *tee;

	const struct source *source[MAX_PARTS];
	void *source_state[MAX_PARTS];
	int nsources;
	const struct tracer *tracer[MAX_PARTS];
	void *tracer_state[MAX_PARTS];
	int ntracers;

	pid_t job_pid;     /* 0 once it was reaped */
	int status;        /* of the command, once it ended */
	bool ended;        /* the command ended */
	bool orphans_left; /* wait_all: there may be more of the job */
	uint64_t start_ns, late_ticks;
	bool failing;     /* nothing could be written since `flushes` */
	uint64_t flushes; /* how many had succeeded when it began to fail */
	char trouble[sizeof(((struct err *)0)->text) + 64];
};

/* Keep the first trouble for the end, and say it now. */
static void trouble(struct recorder *r, const char *what)
{
	if (!r->trouble[0])
		snprintf(r->trouble, sizeof(r->trouble), "%s", what);
	log_error("%s", what);
}

static void notice(struct recorder *r, const char *kind, const char *text)
{
	if (r->w)
		rec_notice(r->w, clock_mono_ns(), 0, kind, text, NULL);
}

/* ------------------------------------------------------------------------------------------ start */

static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (!strncmp(p, name, n) && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

static void open_sources(struct recorder *r)
{
	for (const struct source *const *s = sources; *s && r->nsources < MAX_PARTS; s++) {
		struct err e = { 0 };
		void *state = NULL;
		if (listed(r->options.without, (*s)->name))
			continue;
		if ((*s)->open(&r->env, &state, &e)) {
			char text[sizeof(e.text) + 64];
			snprintf(text, sizeof(text), "%s: %s", (*s)->name, e.text);
			notice(r, "source-missing", text);
			continue;
		}
		r->source[r->nsources] = *s;
		r->source_state[r->nsources++] = state;
	}
}

static void open_tracers(struct recorder *r)
{
	struct tracer_env env = {
		.w = r->w, .dir = r->dir, .job = r->env.job, .jobset = &r->jobset
	};
	for (const struct tracer *const *t = tracers; *t && r->ntracers < MAX_PARTS; t++) {
		struct err e = { 0 };
		void *state = NULL;
		if ((*t)->open(&env, &state, &e)) {
			notice(r, "tracer-missing", e.text);
			continue;
		}
		r->tracer[r->ntracers] = *t;
		r->tracer_state[r->ntracers++] = state;
	}
}

static int open_recording(struct recorder *r, char **argv, uint64_t real_ns, struct err *e)
{
	struct rec_options o = { .size = sizeof(o), .journal = r->options.journal };
	char host[256] = "localhost";
	outfile_choose(r->options.path, r->path);
	int rc = rec_create(r->path, &o, &r->w, e);
	if (rc)
		return rc;
	gethostname(host, sizeof(host) - 1);
	facts_write(r->w, argv, r->start_ns, real_ns, r->options.interval_ns);
	if (r->options.steps_from)
		rec_setf(r->w, "steps_source", "regex '%s'", r->options.steps_from);
	r->env = (struct source_env){
		.w = r->w,
		.proc_root = "/proc",
		.sys_root = "/sys",
		.interval_ns = r->options.interval_ns,
		.job_pid = r->job_pid,
		.recorder_pid = getpid(),
		.jobset = &r->jobset,
		.all_processes = r->options.all_processes,
		.threads = r->options.threads,
		.task_reader = r->options.task_reader,
	};
	rec_entity(r->w, ENTITY_HOST, 0, host, 0, r->start_ns, &r->env.host);
	return rec_entity(r->w, ENTITY_JOB, r->env.host, argv[0], r->job_pid, r->start_ns,
			  &r->env.job);
}

static int start_timer(struct recorder *r)
{
	uint64_t first = r->start_ns + r->options.interval_ns;
	struct itimerspec when = {
		.it_interval = { (time_t)(r->options.interval_ns / NS_PER_S),
				 (long)(r->options.interval_ns % NS_PER_S) },
		.it_value = { (time_t)(first / NS_PER_S), (long)(first % NS_PER_S) },
	};
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->timer < 0 || timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &when, NULL))
		return -errno;
	return 0;
}

static int start_job(struct recorder *r, char **argv, struct err *e)
{
	char pythonpath[RUNDIR_MAX + 16] = "";
	if (*r->dir && !r->options.no_hook)
		snprintf(pythonpath, sizeof(pythonpath), "%s/python", r->dir);
	struct launch l = {
		.argv = argv,
		.dir = r->options.no_hook ? "" : r->dir,
		.pythonpath = pythonpath,
		.out = r->tee ? tee_stdout(r->tee) : -1,
		.err = r->tee ? tee_stderr(r->tee) : -1,
		.mask = &r->signals.original,
	};
	int rc = launch_job(&l, &r->job_pid, e);
	if (r->tee)
		tee_parent_after_fork(r->tee);
	return rc;
}

static void destroy(struct recorder *r)
{
	if (r->tee)
		tee_finish(r->tee);
	if (r->timer >= 0)
		close(r->timer);
	signals_close(&r->signals);
	map_free(&r->jobset.pids);
	rundir_remove(r->dir);
	free(r);
}

static void tick(struct recorder *r);

int recorder_start(const struct recorder_options *o, char **argv, struct recorder **ret,
		   struct err *e)
{
	struct err why = { 0 };
	struct recorder *r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, ENOMEM, "out of memory");
	r->options = *o;
	r->timer = r->signals.fd = -1;
	map_init(&r->jobset.pids);
	int rc = signals_open(&r->signals);
	if (rc) {
		err_set(e, -rc, "cannot watch signals: %s", strerror(-rc));
		destroy(r);
		return rc;
	}
	if (rundir_create(r->dir, &why))
		trouble(r, why.text);
	if (o->steps_from) {
		rc = tee_prepare(o->steps_from, r->dir, &r->tee, e);
		if (rc) {
			destroy(r);
			return rc;
		}
	}
	/* Orphans of the job come to us. Not before here: the helpers of the output must not. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r->start_ns = clock_mono_ns();
	uint64_t real_ns = clock_real_ns();
	rc = start_job(r, argv, e);
	if (rc) {
		destroy(r);
		return rc;
	}
	/* The job runs: from here on nothing may stop it, and nothing is fatal. */
	signals_guard(r->job_pid);
	if (open_recording(r, argv, real_ns, &why)) {
		char text[sizeof(why.text) + 64];
		snprintf(text, sizeof(text), "%s; the job goes on, unrecorded", why.text);
		trouble(r, text);
		rec_close(r->w, NULL);
		r->w = NULL;
	} else {
		open_sources(r);
		open_tracers(r);
		if (start_timer(r))
			trouble(r, "no timer; only the end of the job is recorded");
		tick(r);
		/* So that a live view has something to show before the second tick. */
		rec_flush(r->w, NULL);
	}
	*ret = r;
	return 0;
}

/* ------------------------------------------------------------------------------------------ watch */

/*
 * Say once that writing fails; what was lost until it works again is counted in the recording. Only a
 * flush writes, so that a tick passed does not mean that it was kept.
 */
static void watch_disk(struct recorder *r, int rc, const struct err *e)
{
	struct rec_writer_stats stats;
	rec_writer_stats(r->w, &stats);
	if (rc < 0 && !r->failing) {
		char text[sizeof(e->text) + 64];
		snprintf(text, sizeof(text), "%s; the job goes on, samples are being lost",
			 e->text);
		if (!r->trouble[0])
			trouble(r, text);
		r->failing = true;
		r->flushes = stats.flushes;
	} else if (rc == 0 && r->failing && stats.flushes > r->flushes) {
		r->failing = false;
	}
}

static void tick(struct recorder *r)
{
	struct err e = { 0 };
	uint64_t now = clock_mono_ns();
	rec_tick_begin(r->w, now);
	for (int i = 0; i < r->nsources; i++)
		r->source[i]->sample(r->source_state[i], now);
	for (int i = 0; i < r->ntracers; i++)
		r->tracer[i]->drain(r->tracer_state[i]);
	watch_disk(r, rec_tick_end(r->w, &e), &e);
}

static void on_timer(struct recorder *r)
{
	uint64_t expirations = 0;
	if (read(r->timer, &expirations, sizeof(expirations)) != (ssize_t)sizeof(expirations))
		return;
	r->late_ticks += expirations - 1;
	tick(r);
}

/* One dead child: the sources look at the zombie, then it is reaped, then they get its account. */
static void reap(struct recorder *r, pid_t pid)
{
	struct rusage ru = { 0 };
	int status = 0;
	for (int i = 0; i < r->nsources; i++)
		if (r->source[i]->before_reap)
			r->source[i]->before_reap(r->source_state[i], pid);
	if (wait4(pid, &status, 0, &ru) != pid)
		return;
	for (int i = 0; i < r->nsources; i++)
		if (r->source[i]->after_reap)
			r->source[i]->after_reap(r->source_state[i], pid, &ru);
	if (pid == r->job_pid) {
		r->status = status;
		r->ended = true;
		r->job_pid = 0;
	}
}

/* Look at all children that changed; stop with the job if it stopped. */
static void on_children(struct recorder *r)
{
	for (;;) {
		siginfo_t si = { 0 };
		int rc = waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT);
		if (rc || !si.si_pid) {
			r->orphans_left = !rc;
			break;
		}
		reap(r, si.si_pid);
	}
	siginfo_t si = { 0 };
	if (r->job_pid > 0 && !waitid(P_PID, (id_t)r->job_pid, &si, WSTOPPED | WNOHANG) &&
	    si.si_pid && si.si_code == CLD_STOPPED)
		signals_stop_self(si.si_status);
}

/* -------------------------------------------------------------------------------------------- end */

static void close_parts(struct recorder *r)
{
	for (int i = 0; i < r->nsources; i++)
		r->source[i]->close(r->source_state[i]);
	r->nsources = 0;
	for (int i = 0; i < r->ntracers; i++)
		r->tracer[i]->close(r->tracer_state[i]);
	r->ntracers = 0;
}

static void settle_tracers(struct recorder *r)
{
	struct tracer_totals t = { 0 };
	for (int i = 0; i < r->ntracers; i++)
		r->tracer[i]->totals(r->tracer_state[i], &t);
	rec_setf(r->w, "self.job_cost_ns", "%llu", (unsigned long long)t.job_cost_ns);
	rec_setf(r->w, "self.lost_records", "%llu", (unsigned long long)t.lost);
}

/* What spotter itself used until now; the most memory it ever held. */
static void settle_self(struct recorder *r)
{
	char status[4096];
	uint64_t kb = 0;
	if (io_read_text(-1, "/proc/self/status", status, sizeof(status)) > 0 &&
	    io_find_u64(status, "VmHWM:", &kb))
		rec_setf(r->w, "self.peak_rss_bytes", "%llu", (unsigned long long)kb * 1024);
	rec_setf(r->w, "self.cpu_ns", "%llu", (unsigned long long)clock_self_cpu_ns());
	rec_setf(r->w, "self.late_ticks", "%llu", (unsigned long long)r->late_ticks);
}

/* The last tick, and all that is known only at the end. The sources are closed: they settle totals. */
static void settle(struct recorder *r)
{
	struct err e = { 0 };
	uint64_t end = clock_mono_ns();
	tick(r);
	rec_setf(r->w, "end_mono_ns", "%llu", (unsigned long long)end);
	if (WIFSIGNALED(r->status))
		rec_setf(r->w, "signal", "%d", WTERMSIG(r->status));
	else
		rec_setf(r->w, "exit_code", "%d", WEXITSTATUS(r->status));
	rec_entity_end(r->w, r->env.job, end);
	settle_tracers(r);
	close_parts(r);
	settle_self(r);
	rec_set(r->w, "state", "finished");
	watch_disk(r, rec_flush(r->w, &e), &e);
}

int recorder_watch(struct recorder *r)
{
	struct pollfd fds[] = {
		{ .fd = r->signals.fd, .events = POLLIN },
		{ .fd = r->timer, .events = POLLIN },
	};
	on_children(r);
	while (!r->ended || (r->options.wait_all && r->orphans_left)) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents && signals_handle(&r->signals, r->job_pid, &r->jobset))
			on_children(r);
		if (fds[1].revents)
			on_timer(r);
	}
	if (r->tee) {
		tee_finish(r->tee);
		r->tee = NULL;
	}
	if (r->w)
		settle(r);
	return r->status;
}

struct rec_writer *recorder_writer(struct recorder *r)
{
	return r->w;
}

const char *recorder_path(const struct recorder *r)
{
	return r->path;
}

const char *recorder_trouble(const struct recorder *r)
{
	return r->trouble;
}

int recorder_close(struct recorder *r, struct err *e)
{
	if (!r)
		return 0;
	int rc = 0;
	if (r->w) {
		settle_self(r);
		rc = rec_close(r->w, e);
	}
	destroy(r);
	return rc;
}

void recorder_die_like(int sig)
{
	signals_die(sig);
}
