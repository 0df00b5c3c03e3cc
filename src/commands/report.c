/* spotter report: read the verdict of a recording, now or years later. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "commands/command.h"
#include "report/report.h"

struct report_command {
	const char *step;
	uint64_t width;
	bool json, all, color, no_color, ascii;
};

static const struct opt opts[] = {
	OPT(report_command, json, "json", 0, OPT_FLAG, NULL, "as JSON (doc/report-json.md)"),
	OPT(report_command, all, "all", 'a', OPT_FLAG, NULL,
	    "every process, and all evidence of every finding"),
	OPT(report_command, step, "step", 0, OPT_STRING, "N",
	    "only training step N: how slow it was, and what happened during it"),
	OPT(report_command, width, "width", 'w', OPT_U64, "COLUMNS",
	    "width of the text (default: of the terminal, else 100)"),
	OPT(report_command, color, "color", 0, OPT_FLAG, NULL, "colours, also into a file"),
	OPT(report_command, no_color, "no-color", 0, OPT_FLAG, NULL,
	    "no colours (the environment variable NO_COLOR does the same)"),
	OPT(report_command, ascii, "ascii", 0, OPT_FLAG, NULL,
	    "no characters beyond ASCII (default where the locale is not UTF-8)"),
	OPT_END,
};

static int parse_step(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno || end == text || *end || v < 0)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int report_run(const void *options, int n, char **argv)
{
	const struct report_command *c = options;
	struct err e = { 0 };
	struct report_options o = {
		.json = c->json,
		.all = c->all,
		.one_step = c->step != NULL,
		.width = (int)(c->width < 1000 ? c->width : 1000),
		.color = c->no_color ? REPORT_COLOR_NEVER
			 : c->color  ? REPORT_COLOR_ALWAYS
				     : REPORT_COLOR_AUTO,
		.charset = c->ascii ? REPORT_CHARSET_ASCII : REPORT_CHARSET_AUTO,
	};
	if (n > 1) {
		log_error("report reads one recording, not %d", n);
		return EXIT_USAGE;
	}
	if (c->step && parse_step(c->step, &o.step)) {
		log_error("--step is the number of a step, not '%s'", c->step);
		return EXIT_USAGE;
	}
	const char *path = n ? argv[0] : "run.spot";
	int rc = report_print(stdout, path, &o, &e);
	if (rc) {
		bool absent = access(path, F_OK) != 0;
		log_error("%s%s", e.text, absent ? "; spotter run makes a recording" : "");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

const struct command command_report = {
	.name = "report",
	.summary = "what happened in a run, what limited it, and what to do",
	.usage = "[options] [RUN]",
	.text = "Reads a recording (default: run.spot) and says what limited the run, with the "
		"numbers that speak for it and where they come from, then what was seen of "
		"steps, CPU, memory, I/O and GPUs, what was not seen and why, and what spotter "
		"itself cost. The spark lines span the whole run.\n"
		"\n"
		"It also reads a recording that still grows, one whose recorder was killed, and "
		"what can be saved of a damaged one; it then says so.\n"
		"\n"
		"Percentiles are values that were measured (nearest rank), over all training steps "
		"but the first ones: at most ten, at most a tenth.\n",
	.examples = "spotter report\n"
		    "    the verdict of run.spot\n"
		    "spotter report night.spot --step 4711\n"
		    "    why was this step slow?\n"
		    "spotter report --json | jq '.findings[0].id'\n"
		    "    for programs\n",
	.options = opts,
	.options_size = sizeof(struct report_command),
	.files = "*.spot",
	.run = report_run,
};
