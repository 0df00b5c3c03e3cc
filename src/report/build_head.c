/* The head of a report: what ran, where, how it ended, and the state of its recording; and its foot. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "report/build.h"

static const char *signal_name(int sig, char *into, size_t cap)
{
	const char *name = sigabbrev_np(sig);
	snprintf(into, cap, name ? "SIG%s" : "signal %s%d", name ? name : "", sig);
	return into;
}

static void add_exit(struct doc_node *run, const struct run_facts *f)
{
	char name[32];
	const struct facts_run *r = &f->run;
	struct doc_node *how;
	if (r->has_exit && !r->signal) {
		how = doc_int(run, "exit_code", r->exit_code, NULL);
		doc_tone(doc_show(how, "exit", NULL), r->exit_code ? DOC_BAD : DOC_PLAIN);
	} else {
		doc_null(run, "exit_code");
	}
	if (!r->signal) {
		doc_null(run, "signal");
	} else {
		how = doc_int(run, "signal", r->signal, NULL);
		signal_name(r->signal, name, sizeof(name));
		doc_tone(doc_show(doc_string(run, "signal_name", name), "killed by", NULL),
			 DOC_BAD);
	}
	doc_bool(run, "out_of_memory", r->out_of_memory);
	if (r->out_of_memory)
		doc_tone(doc_show(doc_string(run, NULL, "out of memory"), NULL, NULL), DOC_BAD);
	const char *state = r->live ? "running" : r->cut ? "cut" : "finished";
	doc_string(run, "state", state);
	if (r->live)
		doc_tone(doc_show(doc_string(run, NULL, "still running"), NULL, NULL), DOC_NOTE);
	if (r->cut)
		doc_tone(doc_show(doc_string(run, NULL, "recording was cut off"), NULL, NULL),
			 DOC_WARN);
}

/* "2026-11-20T12:04:11Z", or null. */
static void add_time(struct doc_node *n, const char *key, uint64_t real_ns)
{
	char text[40];
	struct tm tm;
	time_t t = (time_t)(real_ns / NS_PER_S);
	if (!real_ns || !gmtime_r(&t, &tm) || !strftime(text, sizeof(text), "%FT%TZ", &tm))
		doc_null(n, key);
	else
		doc_string(n, key, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

void build_head(struct build *b)
{
	const struct run_facts *f = b->f;
	struct rec_reader *r = f->r;
	struct doc_node *run = doc_section(doc_object(b->root, "run"), "spotter ▸", DOC_HEAD);
	doc_tone(doc_show(doc_string(run, "command", f->run.command_line), NULL, NULL), DOC_STRONG);
	add_exit(run, f);
	doc_show(doc_number(run, "wall_s", f->run.wall_s, "s"), NULL, NULL);
	add_time(run, "started", (uint64_t)fmax(0, facts_number(r, "start_real_ns")));
	doc_string(run, "host", rec_get(r, "host"));
	doc_string(run, "user", rec_get(r, "user"));
	doc_string(run, "cwd", rec_get(r, "cwd"));
	doc_string(run, "kernel", rec_get(r, "kernel"));
	doc_string(run, "cpu_model", rec_get(r, "cpu_model"));
	doc_string(run, "torch", rec_get(r, "fact.torch"));
	doc_string(run, "python", rec_get(r, "fact.python"));
	if (b->path)
		doc_show(doc_string(run, NULL, base_name(b->path)), NULL, NULL);
}

static double file_bytes(const char *path)
{
	static const char *const parts[] = { "", "-wal" };
	double bytes = NAN;
	for (size_t i = 0; path && i < sizeof(parts) / sizeof(*parts); i++) {
		char name[4096];
		struct stat st;
		if (snprintf(name, sizeof(name), "%s%s", path, parts[i]) < (int)sizeof(name) &&
		    !stat(name, &st))
			bytes = (isnan(bytes) ? 0 : bytes) + (double)st.st_size;
	}
	return bytes;
}

void build_self(struct build *b)
{
	const struct run_facts *f = b->f;
	struct doc_node *self = doc_section(doc_object(b->root, "self"), "spotter", DOC_LINE);
	double cpu_s = facts_number(f->r, "self.cpu_ns") / NS_PER_S;
	double job_s = facts_number(f->r, "self.job_cost_ns") / NS_PER_S;
	double lost = f->run.lost_records;
	doc_show(doc_number(self, "cpu_s", cpu_s, "s"), NULL, "of CPU");
	doc_glue(doc_number(self, "cpu_share", cpu_s / f->run.wall_s, "ratio"), "(", "of a core)");
	doc_show(doc_number(self, "peak_rss_bytes", facts_number(f->r, "self.peak_rss_bytes"),
			    "bytes"),
		 NULL, NULL);
	doc_show(doc_number(self, "recording_bytes", file_bytes(b->path), "bytes"), NULL,
		 "recorded");
	doc_number(self, "job_overhead_s", job_s, "s");
	struct doc_node *share =
		doc_number(self, "job_overhead_share", job_s / f->run.wall_s, "ratio");
	if (job_s > 0)
		doc_show(share, "hooks took", "of the job's time");
	doc_number(self, "lost_records", lost, "count");
	if (lost > 0)
		doc_tone(doc_show(doc_number(self, NULL, lost, "count"), NULL, "records lost"),
			 DOC_WARN);
	else if (lost == 0)
		doc_show(doc_string(self, NULL, "nothing lost"), NULL, NULL);
	doc_int(self, "damaged_chunks", (int64_t)f->run.damaged, "count");
	if (f->run.damaged)
		doc_tone(doc_show(doc_int(self, NULL, (int64_t)f->run.damaged, "count"), NULL,
				  "damaged parts skipped"),
			 DOC_WARN);
	doc_number(self, "interval_s", f->run.interval_s, "s");
	doc_string(self, "task_reader", rec_get(f->r, "task_reader"));
	doc_string(self, "version", rec_get(f->r, "spotter_version"));
}
