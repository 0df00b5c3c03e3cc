/*
 * spotter doctor: what works on this machine, what does not, why, and what would make it work. Every source
 * says that about itself; this file adds what is not a source.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "commands/command.h"
#include "record/rundir.h"
#include "recording/recording.h"
#include "sources/source.h"

struct doctor_options {
	bool json;
};

static const struct opt opts[] = {
	OPT(doctor_options, json, "json", 0, OPT_FLAG, NULL, "as JSON"),
	OPT_END,
};

/* ------------------------------------------------------------------------- checks beside the sources */

/* Make a recording in the current directory, as run would, and read it back. */
static int check_recording(struct buf *why)
{
	char path[64];
	struct err e = { 0 };
	struct rec_writer *w = NULL;
	struct rec_reader *r = NULL;
	struct rec_options o = { .size = sizeof(o) };
	snprintf(path, sizeof(path), ".spotter-doctor-%d.spot", (int)getpid());
	int rc = rec_create(path, &o, &w, &e);
	if (!rc)
		rc = rec_close(w, &e);
	if (!rc)
		rc = rec_open(path, &r, &e);
	if (rc)
		buf_adds(why, e.text);
	else
		buf_adds(why, "a recording can be written in this directory and read back");
	rec_reader_free(r);
	unlink(path);
	return rc;
}

static int check_rundir(struct buf *why)
{
	char dir[RUNDIR_MAX] = "";
	struct err e = { 0 };
	int rc = rundir_create(dir, &e);
	if (rc)
		buf_adds(why, e.text);
	else
		buf_addf(why, "%.*s is shared with the job", (int)(strrchr(dir, '/') - dir), dir);
	rundir_remove(dir);
	return rc;
}

/* Does the python3 of this PATH have torch, and does it start our hook? Asks it, in a child of its own. */
static int check_python(struct buf *why)
{
	static const char script[] =
		"python3 -c \"import importlib.util as u, importlib.metadata as m, sys; "
		"t = u.find_spec('torch'); "
		"print('python3 is %d.%d' % sys.version_info[:2], "
		"'with torch ' + m.version('torch') if t else 'without torch', sep=', ')\" 2>&1";
	char line[256] = "";
	FILE *f = popen(script, "re");
	if (!f)
		return -errno;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	int status = pclose(f);
	line[strcspn(line, "\n")] = 0;
	if (status || !strstr(line, "with torch ")) {
		buf_addf(why,
			 "%s; the steps of a PyTorch job are seen in the interpreter that has "
			 "torch; "
			 "other jobs: --steps-from, or spotter/mark.h",
			 status ? "python3 does not run here" : line);
		return -ENOENT;
	}
	buf_addf(why, "%s: its steps are seen without a change to the script", line);
	return 0;
}

static const struct check {
	const char *name;
	int (*probe)(struct buf *why);
} checks[] = {
	{ "recording", check_recording },
	{ "run-directory", check_rundir },
	{ "step-hook", check_python },
};

/* ---------------------------------------------------------------------------------------- output */

struct doctor {
	json_t *list; /* NULL: text */
	bool color;
	int working, missing;
};

static void tell(struct doctor *d, const char *name, int rc, const char *why, const char *needs)
{
	if (rc)
		d->missing++;
	else
		d->working++;
	if (d->list) {
		json_t *item = json_pack("{s:s, s:b, s:s, s:s?}", "name", name, "works", rc == 0,
					 "why", why, "needs", needs);
		json_array_append_new(d->list, item);
		return;
	}
	const char *mark = rc ? " -- " : " ok ";
	const char *on = !d->color ? "" : rc ? "\033[33m" : "\033[32m";
	printf("%s%s%s %-14s %s\n", on, mark, d->color ? "\033[0m" : "", name, why);
}

static void tell_sources(struct doctor *d)
{
	struct source_env env = {
		.proc_root = "/proc",
		.sys_root = "/sys",
		.interval_ns = NS_PER_S,
		.recorder_pid = getpid(),
		.task_reader = "auto",
	};
	for (const struct source *const *s = sources; *s; s++) {
		struct buf why = BUF_INIT;
		int rc = (*s)->probe(&env, &why);
		tell(d, (*s)->name, rc, why.data, (*s)->needs);
		buf_free(&why);
	}
}

static int doctor_run(const void *options, int n, char **argv)
{
	const struct doctor_options *o = options;
	struct doctor d = { .list = o->json ? json_array() : NULL,
			    .color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR") };
	(void)argv;
	if (n) {
		fputs("spotter: doctor takes no arguments\n", stderr);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		struct buf why = BUF_INIT;
		int rc = checks[i].probe(&why);
		tell(&d, checks[i].name, rc, why.data, NULL);
		buf_free(&why);
	}
	tell_sources(&d);
	if (d.list) {
		json_dumpf(d.list, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(d.list);
	} else {
		printf("\n%d of %d work here. What does not is a gap in recordings, with its "
		       "reason.\n",
		       d.working, d.working + d.missing);
	}
	return 0;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "say what works on this machine, what does not, and why",
	.usage = "[options]",
	.text = "Tries everything 'spotter run' would use here: a recording in this directory, the "
		"directory shared\n"
		"with the job, Python and its torch, and each source of samples. A line that "
		"begins with '--'\n"
		"does not work, and says what would make it work. Nothing is changed and nothing "
		"is left behind.\n",
	.examples = "  spotter doctor\n"
		    "      before the first run on a new machine\n",
	.options = opts,
	.options_size = sizeof(struct doctor_options),
	.run = doctor_run,
};
