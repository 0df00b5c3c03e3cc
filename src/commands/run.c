/*
 * spotter run: the job under watch, from its first process to the report. This file chooses where the
 * recording goes and what is printed; the recorder does the rest.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "commands/command.h"
#include "record/recorder.h"
#include "report/report.h"

#define EXIT_NOT_FOUND      127
#define EXIT_NOT_EXECUTABLE 126

struct run_options {
	const char *output;
	uint64_t interval_ns;
	const char *steps_from, *task_reader, *journal, *without, *report_file;
	bool no_hook, threads, all_processes, wait_all, json, quiet;
};

static const struct run_options defaults = {
	.interval_ns = NS_PER_S,
	.task_reader = "auto",
	.journal = "auto",
};

static const struct opt opts[] = {
	OPT(run_options, output, "output", 'o', OPT_STRING, "FILE",
	    "the recording (default: run.spot; what was there is kept as run.spot.old)"),
	OPT(run_options, interval_ns, "interval", 'i', OPT_DURATION, "TIME",
	    "time between samples, from 1ms (default: 1s)"),
	OPT(run_options, steps_from, "steps-from", 's', OPT_STRING, "REGEX",
	    "count a step at each line of output that matches; a group that captures a number is "
	    "the step's "
	    "index. For jobs that are not PyTorch"),
	OPT(run_options, no_hook, "no-hook", 0, OPT_FLAG, NULL,
	    "put nothing on the job's Python path: steps of PyTorch are then not seen"),
	OPT(run_options, threads, "threads", 't', OPT_FLAG, NULL,
	    "also sample the single threads of the job"),
	OPT(run_options, all_processes, "all-processes", 'a', OPT_FLAG, NULL,
	    "also sample the processes that are not the job's"),
	OPT(run_options, wait_all, "wait-all", 'w', OPT_FLAG, NULL,
	    "go on until the last process the command left behind has ended"),
	OPT(run_options, task_reader, "task-reader", 0, OPT_STRING, "HOW",
	    "how processes are read: bpf, proc, or auto (default): what is cheaper here"),
	OPT(run_options, without, "without", 0, OPT_STRING, "SOURCES",
	    "leave these sources out, separated by commas; 'spotter doctor' lists them"),
	OPT(run_options, journal, "journal", 0, OPT_STRING, "MODE",
	    "wal, rollback, or auto (default): rollback on network file systems"),
	OPT(run_options, quiet, "quiet", 'q', OPT_FLAG, NULL, "no report at the end"),
	OPT(run_options, json, "json", 0, OPT_FLAG, NULL, "the report as JSON"),
	OPT(run_options, report_file, "report", 0, OPT_STRING, "FILE",
	    "write the report to FILE instead of standard error"),
	OPT_END,
};

static int journal_mode(const char *name, enum rec_journal *ret)
{
	static const char *const names[] = {
		[REC_JOURNAL_AUTO] = "auto",
		[REC_JOURNAL_WAL] = "wal",
		[REC_JOURNAL_ROLLBACK] = "rollback",
	};
	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++) {
		if (!strcmp(names[i], name)) {
			*ret = (enum rec_journal)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int check(const struct run_options *o, int n, struct recorder_options *ro)
{
	if (!n) {
		log_error("which command? For example: spotter run -- python3 train.py");
		return EXIT_USAGE;
	}
	if (o->interval_ns < NS_PER_MS) {
		log_error("--interval is at least 1ms");
		return EXIT_USAGE;
	}
	if (journal_mode(o->journal, &ro->journal)) {
		log_error("--journal is auto, wal or rollback, not '%s'", o->journal);
		return EXIT_USAGE;
	}
	static const char *const readers[] = { "auto", "bpf", "proc" };
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		if (!strcmp(readers[i], o->task_reader))
			return 0;
	log_error("--task-reader is auto, bpf or proc, not '%s'", o->task_reader);
	return EXIT_USAGE;
}

/* Findings go into the recording while it is still open, so that they travel with it. */
static void report(const struct run_options *o, const char *path)
{
	struct err e = { 0 };
	struct report_options ro = { .json = o->json, .color = REPORT_COLOR_AUTO };
	FILE *f = stderr;
	if (o->report_file) {
		f = fopen(o->report_file, "we");
		if (!f) {
			log_error("%s: %s; the report: spotter report %s", o->report_file,
				  strerror(errno), path);
			return;
		}
	}
	if (report_print(f, path, &ro, &e))
		log_error("no report: %s", e.text);
	if (f != stderr)
		fclose(f);
}

static int run_run(const void *options, int n, char **argv)
{
	const struct run_options *o = options;
	struct recorder_options ro = { 0 };
	struct recorder *r = NULL;
	struct err e = { 0 };
	int status = check(o, n, &ro);
	if (status)
		return status;
	ro.path = o->output;
	ro.interval_ns = o->interval_ns;
	ro.steps_from = o->steps_from;
	ro.task_reader = o->task_reader;
	ro.without = o->without;
	ro.no_hook = o->no_hook;
	ro.threads = o->threads;
	ro.all_processes = o->all_processes;
	ro.wait_all = o->wait_all;

	int rc = recorder_start(&ro, argv, &r, &e);
	if (rc) {
		log_error("%s", e.text);
		if (rc == -EINVAL && o->steps_from)
			return EXIT_USAGE;
		return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	status = recorder_watch(r);
	bool recorded = recorder_writer(r);
	char *path = strdup(recorder_path(r));
	if (recorded)
		report_store_findings(recorder_writer(r), path);
	bool told = *recorder_trouble(r);
	if (recorder_close(r, &e) && !told)
		log_error("%s", e.text);
	if (recorded && !o->quiet)
		report(o, path);
	free(path);
	if (WIFSIGNALED(status)) {
		fflush(NULL);
		recorder_die_like(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

const struct command command_run = {
	.name = "run",
	.summary = "run a command under watch and say what limited it",
	.usage = "[options] [--] COMMAND [ARG]...",
	.text = "Runs COMMAND unmodified, with its terminal, signals and exit status untouched, "
		"and samples it and\n"
		"its host. PyTorch's steps, input waits, epochs, checkpoints and collector pauses "
		"are seen without\n"
		"a change to the script. At the end a report on standard error says what limited "
		"the run, with\n"
		"the evidence and what to do. Everything is in the recording, from which 'spotter "
		"report',\n"
		"'spotter top', 'spotter export' and plain SQL read.\n"
		"\n"
		"The exit status is the command's; 127 if it was not found, 126 if it could not be "
		"run. Whatever\n"
		"happens to spotter, the command goes on.\n",
	.examples = "  spotter run -- python3 train.py --epochs 5\n"
		    "      run it; the recording is run.spot\n"
		    "  spotter run -o big.spot -i 100ms -- torchrun --nproc-per-node 2 train.py\n"
		    "      ten samples a second, into big.spot\n"
		    "  spotter run --steps-from 'step ([0-9]+)' -- ./train\n"
		    "      a step at each line of output such as 'step 17 loss 0.3'\n",
	.options = opts,
	.options_size = sizeof(struct run_options),
	.defaults = &defaults,
	.runs_command = true,
	.run = run_run,
};
