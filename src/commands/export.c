/* spotter export: a recording as CSV or JSON lines. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fmt.h"
#include "base/log.h"
#include "commands/command.h"
#include "export/export.h"

#define DEFAULT_RUN "run.spot"

struct options {
	const char *to, *output, *metric, *entity, *events, *from, *until;
	bool wide, json;
};

static const struct opt options[] = {
	OPT(options, to, "to", 't', OPT_STRING, "FORMAT",
	    "csv or jsonl (default: by the end of the file's name, else csv)"),
	OPT(options, output, "output", 'o', OPT_STRING, "FILE",
	    "write here (default: -, standard output)"),
	OPT(options, metric, "metric", 'm', OPT_STRING, "NAME,...",
	    "only these metrics; * matches any characters (\"cpu.*\")"),
	OPT(options, entity, "entity", 'e', OPT_STRING, "KIND,...",
	    "only these kinds of entity, or one of a kind: \"job,process:4711,cpu:0\""),
	OPT(options, events, "events", 0, OPT_STRING, "TRACK,...",
	    "events of these kinds (step, epoch, checkpoint, ...) instead of samples"),
	OPT(options, from, "from", 0, OPT_STRING, "TIME",
	    "begin here: \"90s\" after the beginning, \"-30s\" before the end, or a date and time"),
	OPT(options, until, "until", 0, OPT_STRING, "TIME", "end before here"),
	OPT(options, wide, "wide", 'w', OPT_FLAG, NULL,
	    "CSV with a row per moment and a column per series"),
	OPT(options, json, "json", 0, OPT_FLAG, NULL, "the same as --to jsonl"),
	OPT_END,
};

/* --------------------------------------------------------------------------------------- progress */

/* One line on a terminal that is rewritten, from when it takes longer than a second. */
struct progress {
	uint64_t begin_ns, shown_ns;
	uint64_t t0, t1;
	bool terminal, shown;
};

static void progress_show(void *ctx, uint64_t t_ns, uint64_t records)
{
	struct progress *p = ctx;
	uint64_t now = clock_mono_ns();
	if (!p->terminal || now - p->begin_ns < NS_PER_S || now - p->shown_ns < NS_PER_S / 5)
		return;
	struct buf count = BUF_INIT;
	fmt_count(&count, (double)records);
	double share = p->t1 > p->t0 ? (double)(t_ns - p->t0) / (double)(p->t1 - p->t0) : 0;
	fprintf(stderr, "\rspotter: %s samples and events, %3.0f %% of the time ", count.data,
		share * 100);
	buf_free(&count);
	p->shown_ns = now;
	p->shown = true;
}

static void progress_end(const struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r%60s\r", "");
}

/* ----------------------------------------------------------------------------------------- output */

static bool is_stdout(const struct options *o)
{
	return !o->output || !strcmp(o->output, "-");
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n > m && !strcmp(name + n - m, end);
}

static const char *format_of(const struct options *o)
{
	if (o->to)
		return o->to;
	bool by_name = o->output && (ends_in(o->output, ".jsonl") || ends_in(o->output, ".json"));
	return o->json || by_name ? "jsonl" : "csv";
}

/* Open the output; never the recording itself. -1 after saying why. */
static int open_output(const struct options *o, const char *run)
{
	struct stat in, out;
	if (is_stdout(o))
		return STDOUT_FILENO;
	if (!stat(run, &in) && !stat(o->output, &out) && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino) {
		log_error("%s is the recording itself; give another name to -o", o->output);
		return -1;
	}
	int fd = open(o->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		log_error("%s: %s; nothing was exported", o->output, strerror(errno));
	return fd;
}

/* -------------------------------------------------------------------------------------------- run */

/* 0, or -errno with words. */
static int make_query(const struct rec_reader *r, const struct options *o, struct export_query *q,
		      struct err *e)
{
	*q = (struct export_query){ .metrics = o->metric,
				    .entities = o->entity,
				    .events = o->events,
				    .t1 = UINT64_MAX,
				    .wide = o->wide };
	int rc = o->from ? export_parse_time(r, o->from, &q->t0, e) : 0;
	if (rc)
		return err_prefix(e, rc, "--from");
	rc = o->until ? export_parse_time(r, o->until, &q->t1, e) : 0;
	return rc ? err_prefix(e, rc, "--until") : 0;
}

static int export(struct rec_reader *r, const struct exporter *x, const struct options *o,
		  const char *run, struct err *e)
{
	struct export_query q;
	int rc = make_query(r, o, &q, e);
	if (rc)
		return rc;
	struct export_job job = { .r = r, .query = &q };
	rc = export_select(&job, e);
	if (rc)
		return rc;
	int fd = open_output(o, run);
	if (fd < 0) {
		export_release(&job);
		return -EIO;
	}
	struct progress progress = { .begin_ns = clock_mono_ns(),
				     .t0 = rec_t0(r),
				     .t1 = rec_t1(r),
				     .terminal = isatty(STDERR_FILENO) };
	struct out out;
	out_init(&out, fd);
	job.out = &out;
	job.progress = progress_show;
	job.ctx = &progress;
	rc = export_run(x, &job, e);
	progress_end(&progress);
	if (fd != STDOUT_FILENO && close(fd) && !rc)
		rc = err_set(e, errno, "%s", strerror(errno));
	if (rc && rc != -EPIPE && !is_stdout(o))
		err_prefix(e, rc, o->output);
	out_release(&out);
	export_release(&job);
	return rc;
}

/* What the table of exporters says about the options, before anything is opened. */
static const struct exporter *check_options(const struct options *o, int n)
{
	const struct exporter *x = exporter_find(format_of(o));
	if (n > 1)
		log_error("export takes one recording; see 'spotter export --help'");
	else if (!x)
		log_error("there is no format '%s'; --to takes csv or jsonl", format_of(o));
	else if (o->json && strcmp(x->name, "jsonl") != 0)
		log_error("--json and --to %s contradict each other", x->name);
	else if (o->wide && !x->can_wide)
		log_error("--wide is a shape of CSV; leave it out or give --to csv");
	else if (o->wide && o->events)
		log_error("--wide is for samples, and --events asks for events; give one of them");
	else
		return x;
	return NULL;
}

static int run_export(const void *opts, int n, char **argv)
{
	const struct options *o = opts;
	const char *run = n ? argv[0] : DEFAULT_RUN;
	const struct exporter *x = check_options(o, n);
	if (!x)
		return EXIT_USAGE;
	signal(SIGPIPE, SIG_IGN); /* a reader that leaves is no failure: write says EPIPE */
	struct rec_reader *r;
	struct err e = { 0 };
	if (rec_open(run, &r, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	int rc = export(r, x, o, run, &e);
	if (rc && rc != -EPIPE && e.text[0])
		log_error("%s", e.text);
	if (!rc && rec_damaged(r))
		log_error("%s: %" PRIu64 " damaged parts were left out", run, rec_damaged(r));
	rec_reader_free(r);
	return rc && rc != -EPIPE;
}

extern const struct command command_export;
const struct command command_export = {
	.name = "export",
	.summary = "write a recording as CSV or JSON lines",
	.usage = "[options] [RUN]",
	.text = "Writes what a recording (default: run.spot) holds in a form that other programs "
		"read, at full precision and in the order of time. It works on a recording that "
		"still grows as well: what is there now is written.\n"
		"\n"
		"CSV has a row per sample: t_ns (CLOCK_MONOTONIC), time (UTC), entity, "
		"entity_kind, entity_id, entity_key (pid, number of the CPU), metric, value, unit, "
		"source. With --wide it has a row per moment and a column per series instead, and "
		"with --events a row per event. JSON lines hold everything: run, entities, series, "
		"samples, events, gaps and notices, told apart by \"type\". What is absent is an "
		"empty cell, or left out.\n"
		"\n"
		"Counters (CPU time, bytes) are written as they were read, ever growing; subtract "
		"neighbours to get a rate. For questions rather than files, the recording answers "
		"SQL: see doc/sql.md.\n",
	.examples = "spotter export run.spot -o run.csv\n"
		    "    all samples of a run\n"
		    "spotter export --metric 'cpu.*,memory.rss' --entity job --wide -o job.csv\n"
		    "    a table of the job's CPU time and memory, ready to plot\n"
		    "spotter export --events step --from -1m\n"
		    "    the steps of the last minute\n"
		    "spotter export --to jsonl | jq 'select(.type == \"notice\")'\n"
		    "    what happened apart from the ordinary\n",
	.options = options,
	.options_size = sizeof(struct options),
	.files = "*.spot",
	.run = run_export,
};
