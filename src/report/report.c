/* Making a report: facts, findings, one document, one of two renderers. See report.h. */
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/build.h"

#define WIDTH_DEFAULT 100

/* The verdict's heading: what the gravest finding is about. */
static const char *heading(const struct findings *all)
{
	bool warning = all->n && all->v[0].severity == SEVERITY_WARNING;
	return warning ? "WHAT TO LOOK AT" : "WHAT LIMITS THIS RUN";
}

static void add_look(struct doc_node *verdict, const struct build *b)
{
	const struct facts_steps *s = &b->f->steps;
	const char *path = b->path ? b->path : "run.spot";
	bool outlier = s->n && s->max_s > 2 * s->p50_s && s->v[s->max_at].index != REC_NONE;
	char text[512];
	int n = snprintf(text, sizeof(text), "spotter report %s --all", path);
	if (outlier && n > 0 && n < (int)sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, "    --step %lld (the slowest)",
			 (long long)s->v[s->max_at].index);
	doc_show(doc_string(verdict, NULL, text), "look", NULL);
}

/* Small costs that are seen and fine: one line each. */
static void add_fine(struct doc_node *also, const struct build *b)
{
	const struct {
		const char *id, *what;
		const struct facts_pauses *p;
	} pauses[] = {
		{ "checkpoint-stalls", "checkpoints", &b->f->checkpoints },
		{ "gc-pauses", "collections of garbage", &b->f->gc },
	};
	for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		const struct facts_pauses *p = pauses[i].p;
		/* A thousandth of the time is not worth a line. */
		if (p->n <= 0 || !(p->total_s >= 1e-3 * b->f->run.wall_s) ||
		    findings_get(b->findings, pauses[i].id))
			continue;
		doc_stringf(also, NULL, "%s take %s in all (%s of the time), nothing to do",
			    pauses[i].what, say(p->total_s, "s").s,
			    say(p->total_s / b->f->run.wall_s, "ratio").s);
	}
}

/* Sections in the order in which they are read; findings stand once, and are shown in two places. */
static int build_all(struct build *b)
{
	build_head(b);
	const struct doc_node *findings = build_findings(b);
	struct doc_node *verdict = doc_view(b->root, heading(b->findings),
					    b->o->all ? DOC_VERDICT_FULL : DOC_VERDICT, findings);
	if (!b->o->all)
		add_look(verdict, b);
	build_steps(b);
	build_machine(b);
	doc_view(b->root, NULL, DOC_RULE, NULL);
	struct doc_node *also =
		doc_view(b->root, "ALSO SEEN", b->o->all ? DOC_FULL : DOC_REMARKS, findings);
	add_fine(also, b);
	const struct doc_node *missing = build_missing(b);
	doc_view(b->root, "NOT SEEN", DOC_REASONS, missing);
	int rc = b->o->all ? build_processes(b) : 0;
	doc_view(b->root, NULL, DOC_RULE, NULL);
	build_self(b);
	return rc;
}

static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *v = getenv(names[i]);
		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

static int terminal_width(FILE *out)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	int n = columns ? atoi(columns) : 0;
	return n > 0 ? n : WIDTH_DEFAULT;
}

struct doc_text_options report_layout(FILE *out, const struct report_options *o)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	bool terminal =
		isatty(fileno(out)) && (!no_color || !*no_color) && (!term || strcmp(term, "dumb"));
	return (struct doc_text_options){
		.width = o->width ? o->width : terminal_width(out),
		.color = o->color == REPORT_COLOR_ALWAYS ||
			 (o->color == REPORT_COLOR_AUTO && terminal),
		.ascii = o->charset == REPORT_CHARSET_ASCII ||
			 (o->charset == REPORT_CHARSET_AUTO && !locale_is_utf8()),
	};
}

static int render(FILE *out, const struct doc *d, const struct report_options *o)
{
	struct buf text = BUF_INIT;
	struct doc_text_options options = report_layout(out, o);
	int rc = 0;
	if (o->json)
		rc = doc_json(d, &text);
	else
		doc_text(d, &options, &text);
	if (text.failed || doc_failed(d))
		rc = -ENOMEM;
	if (!rc && (fwrite(text.data, 1, text.len, out) != text.len || fflush(out)))
		rc = -EIO;
	buf_free(&text);
	return rc;
}

static int make(FILE *out, struct build *b, struct err *e)
{
	struct doc *d = doc_new();
	if (!d)
		return err_set(e, ENOMEM, "out of memory");
	b->root = doc_root(d);
	int rc = b->o->one_step ? build_step(b, e) : build_all(b);
	if (!rc) {
		rc = render(out, d, b->o);
		if (rc)
			err_set(e, -rc, "could not write the report: %s", strerror(-rc));
	}
	doc_free(d);
	return rc;
}

int report_print_reader(FILE *out, struct rec_reader *r, const char *path,
			const struct report_options *o, struct err *e)
{
	struct run_facts f;
	struct findings *findings = calloc(1, sizeof(*findings));
	if (!findings)
		return err_set(e, ENOMEM, "out of memory");
	int rc = facts_load(r, &f, e);
	if (!rc) {
		struct build b = { .f = &f, .findings = findings, .o = o, .path = path };
		analyze_run(&f, findings);
		rc = make(out, &b, e);
	}
	facts_release(&f);
	free(findings);
	return rc;
}

int report_print(FILE *out, const char *path, const struct report_options *o, struct err *e)
{
	struct rec_reader *r;
	int rc = rec_open(path, &r, e);
	if (rc)
		return rc;
	rc = report_print_reader(out, r, path, o, e);
	rec_reader_free(r);
	return rc;
}
