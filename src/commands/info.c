/* spotter info: what a recording holds. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "commands/command.h"
#include "report/inventory.h"
#include "report/report.h"

struct options {
	uint64_t width;
	bool json;
};

static const struct opt options[] = {
	OPT(options, json, "json", 0, OPT_FLAG, NULL, "as one JSON object"),
	OPT(options, width, "width", 'w', OPT_U64, "COLUMNS",
	    "width of the text (default: of the terminal, else 100)"),
	OPT_END,
};

static int print(const struct doc *doc, const struct options *o)
{
	struct report_options look = { .width = (int)(o->width < 1000 ? o->width : 1000) };
	struct doc_text_options layout = report_layout(stdout, &look);
	struct buf b = BUF_INIT;
	int rc = 0;
	if (o->json)
		rc = doc_json(doc, &b);
	else
		doc_text(doc, &layout, &b);
	if (!rc && b.failed)
		rc = -ENOMEM;
	if (!rc && (fputs(b.data, stdout) < 0 || fflush(stdout)))
		rc = -errno;
	buf_free(&b);
	return rc;
}

static int run_info(const void *opts, int n, char **argv)
{
	const char *run = n ? argv[0] : "run.spot";
	struct err e = { 0 };
	struct rec_reader *r;
	struct doc *doc;
	if (n > 1) {
		log_error("info takes one recording, not %d", n);
		return EXIT_USAGE;
	}
	if (rec_open(run, &r, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	int rc = inventory_build(r, run, &doc, &e);
	if (!rc) {
		rc = print(doc, opts);
		if (rc)
			err_set(&e, -rc, "could not write: %s", strerror(-rc));
		doc_free(doc);
	}
	if (rc)
		log_error("%s: %s", run, e.text);
	rec_reader_free(r);
	return rc ? 1 : 0;
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
