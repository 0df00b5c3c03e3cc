/* spotter info: what a recording holds. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "commands/command.h"
#include "export/inventory.h"

#define DEFAULT_RUN "run.spot"

struct options {
	bool json;
};

static const struct opt options[] = {
	OPT(options, json, "json", 0, OPT_FLAG, NULL, "as one JSON object"),
	OPT_END,
};

static int print(const json_t *inventory, bool json)
{
	struct buf b = BUF_INIT;
	if (json) {
		char *text = json_dumps(inventory, JSON_INDENT(2));
		if (text)
			buf_addf(&b, "%s\n", text);
		free(text);
	} else {
		inventory_text(inventory, &b);
	}
	bool ok = !b.failed && b.len && fputs(b.data, stdout) >= 0 && !fflush(stdout);
	buf_free(&b);
	return ok ? 0 : 1;
}

static int run_info(const void *opts, int n, char **argv)
{
	const struct options *o = opts;
	const char *run = n ? argv[0] : DEFAULT_RUN;
	struct err e = { 0 };
	struct rec_reader *r;
	json_t *inventory;
	if (n > 1) {
		log_error("info takes one recording; see 'spotter info --help'");
		return EXIT_USAGE;
	}
	if (rec_open(run, &r, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	int status = 1;
	if (inventory_make(r, run, &inventory, &e)) {
		log_error("%s: %s", run, e.text);
	} else {
		status = print(inventory, o->json);
		json_decref(inventory);
	}
	rec_reader_free(r);
	return status;
}

extern const struct command command_info;
const struct command command_info = {
	.name = "info",
	.summary = "say what a recording holds",
	.usage = "[options] [RUN]",
	.text = "Lists what is in a recording (default: run.spot): facts about the run, entities "
		"by "
		"kind, metrics with their number of samples and what a sample takes in the file, "
		"kinds of events, what could not be read and why, and notices. It explains "
		"nothing: that is what 'spotter report' does.\n"
		"\n"
		"Bytes per sample count the compressed chunks of a metric; \"-\" where all its "
		"samples are still in the tail of a recording that grows.\n",
	.examples = "spotter info\n"
		    "    what run.spot holds\n"
		    "spotter info old.spot --json | jq .facts.exit_code\n"
		    "    one fact of another run\n",
	.options = options,
	.options_size = sizeof(struct options),
	.files = "*.spot",
	.run = run_info,
};
