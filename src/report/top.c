/* The live view as a document; see top.h. */
#include "report/top.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/top_parts.h"

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static const char *state_of(struct rec_reader *r, char *text, size_t cap)
{
	const char *code = rec_get(r, "exit_code"), *signal = rec_get(r, "signal");
	if (rec_is_live(r))
		return "running";
	if (signal && strcmp(signal, "0") != 0)
		snprintf(text, cap, "ended by signal %s", signal);
	else if (code)
		snprintf(text, cap, "exit %s", code);
	else
		snprintf(text, cap, "recorder gone");
	return text;
}

void top_add_head(struct top *top)
{
	struct rec_reader *r = top->t.r;
	char state[64];
	const char *command = rec_get(r, "command_line"), *start = rec_get(r, "start_mono_ns");
	uint64_t begin = start ? strtoull(start, NULL, 10) : rec_t0(r);
	struct doc_node *n = doc_section(doc_object(top->root, "run"), "spotter ▸", DOC_HEAD);
	doc_show(doc_string(n, "command", command ? command : "(unknown command)"), NULL, NULL);
	doc_bool(n, "live", rec_is_live(r));
	doc_show(doc_string(n, "state", state_of(r, state, sizeof(state))), NULL, NULL);
	const char *end_text = rec_get(r, "end_mono_ns");
	uint64_t end = end_text ? strtoull(end_text, NULL, 10) : top->t.now;
	double elapsed = begin && end >= begin ? seconds(end - begin) : NAN;
	doc_show(doc_number(n, "elapsed_s", elapsed, "s"), NULL, NULL);
	doc_show(doc_string(n, "recording", top->path), NULL, NULL);
	doc_show(doc_number(n, "recorded_per_s", round(top->t.samples_per_s), "count"), NULL,
		 "samples/s");
	doc_int(n, "damaged_parts", (int64_t)rec_damaged(r), "count");
}

static int build(struct top *top)
{
	const struct rec_entity_info *host = rec_entity_first(top->t.r, ENTITY_HOST);
	const struct rec_entity_info *job = rec_entity_first(top->t.r, ENTITY_JOB);
	top->host = host ? host->id : 0;
	top->job = job ? job->id : 0;
	top_add_head(top);
	top_add_steps(top);
	top_add_host(top);
	top_add_job(top);
	top_add_gpus(top);
	int rc = top_add_processes(top);
	return rc ? rc : top->t.rc;
}

int top_build(struct rec_reader *r, const char *path, const struct top_options *o, struct doc **ret,
	      struct err *e)
{
	struct top top = { .o = o, .path = path };
	struct doc *doc = doc_new();
	int rc = doc ? top_reader_init(&top.t, r) : -ENOMEM;
	if (!rc) {
		top.root = doc_root(doc);
		rc = build(&top);
		top_reader_release(&top.t);
	}
	if (!rc && doc_failed(doc))
		rc = -ENOMEM;
	if (rc) {
		doc_free(doc);
		return err_set(e, -rc, "%s", strerror(-rc));
	}
	*ret = doc;
	return 0;
}
