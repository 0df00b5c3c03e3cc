/* Findings as text: the verdict at length, the others as remarks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/text_layout.h"

#define EVIDENCE_SHOWN 4 /* of the verdict; all with DOC_FULL */
#define HEAD_COLUMNS   24
#define BODY_INDENT    3
#define BODY_COLUMNS   14

static void labelled(struct pen *p, const char *label, const char *text)
{
	if (!*text)
		return;
	pen_pad(p, BODY_INDENT);
	pen_tone(p, DOC_FAINT, label);
	pen_pad(p, BODY_COLUMNS);
	pen_flow(p, DOC_PLAIN, text, BODY_COLUMNS);
	pen_end(p);
}

/* "input wait p50 33.8 ms, p95 41.2 ms (step hook) - cores idle 12 (/proc/stat)" */
static void evidence(struct pen *p, const struct doc_node *list, size_t most)
{
	struct buf b = BUF_INIT;
	size_t i = 0;
	for (const struct doc_node *c = list ? list->first : NULL; c && i < most;
	     c = c->next, i++) {
		char value[64];
		const struct doc_node *next = i + 1 < most ? c->next : NULL;
		const char *source = doc_get_string(c, "source");
		const struct doc_node *number = doc_get(c, "value");
		if (!number)
			continue;
		text_value(number, value, sizeof(value));
		buf_addf(&b, "%s%s %s", i ? " · " : "", doc_get_string(c, "what"), value);
		if (*source && !(next && !strcmp(doc_get_string(next, "source"), source)))
			buf_addf(&b, " (%s)", source);
	}
	if (!b.failed)
		labelled(p, "evidence", b.data);
	buf_free(&b);
}

static void body(struct pen *p, const struct doc_node *f, size_t most)
{
	pen_pad(p, BODY_INDENT);
	pen_flow(p, DOC_PLAIN, doc_get_string(f, "text"), BODY_INDENT);
	pen_end(p);
	evidence(p, doc_get(f, "evidence"), most);
	labelled(p, "try", doc_get_string(f, "advice"));
}

/* Title at left, how sure at the right edge of the same line, or of the next where it is narrow. */
static void headline(struct pen *p, const char *label, const struct doc_node *f)
{
	const char *title = doc_get_string(f, "title"), *sure = doc_get_string(f, "confidence");
	int room = p->width - pen_columns(p, sure) - 2;
	pen_put(p, " ");
	pen_tone(p, DOC_STRONG, label);
	pen_pad(p, HEAD_COLUMNS);
	if (p->col + pen_columns(p, title) > room) {
		pen_end(p);
		pen_pad(p, BODY_INDENT);
	}
	pen_flow(p, f->tone, title, BODY_INDENT);
	if (p->col + 2 + pen_columns(p, sure) <= p->width) {
		pen_pad(p, p->width - pen_columns(p, sure));
		pen_tone(p, DOC_FAINT, sure);
	}
	pen_end(p);
}

static void verdict(struct pen *p, const struct doc_node *section, size_t most)
{
	const struct doc_node *f = section->of ? section->of->first : NULL;
	if (!f)
		return;
	headline(p, section->label, f);
	body(p, f, most);
	for (const struct doc_node *c = section->first; c; c = c->next)
		if (c->string)
			labelled(p, c->before ? c->before : "", c->string);
	pen_end(p);
}

void text_verdict(struct pen *p, const struct doc_node *section)
{
	verdict(p, section, EVIDENCE_SHOWN);
}

void text_verdict_full(struct pen *p, const struct doc_node *section)
{
	verdict(p, section, SIZE_MAX);
}

static void remark(struct pen *p, const char *label, const char *mark, enum doc_tone tone,
		   const char *text)
{
	pen_put(p, " ");
	pen_tone(p, DOC_STRONG, label);
	pen_pad(p, 12);
	pen_tone(p, tone, mark);
	pen_pad(p, 15);
	pen_flow(p, DOC_PLAIN, text, 15);
	pen_end(p);
}

static bool is_grave(const struct doc_node *f)
{
	const char *severity = doc_get_string(f, "severity");
	return !strcmp(severity, "limit") || !strcmp(severity, "warning");
}

static void own_remarks(struct pen *p, const struct doc_node *section, const char *label)
{
	for (const struct doc_node *c = section->first; c; c = c->next) {
		if (!c->string)
			continue;
		remark(p, label, "·", DOC_NOTE, c->string);
		label = "";
	}
}

/* All findings but the first, then the section's own lines. */
void text_remarks(struct pen *p, const struct doc_node *section)
{
	const char *label = section->label;
	const struct doc_node *f =
		section->of && section->of->first ? section->of->first->next : NULL;
	for (; f; f = f->next) {
		const char *advice = doc_get_string(f, "advice");
		remark(p, label, is_grave(f) ? "!" : "·", f->tone, doc_get_string(f, "text"));
		label = "";
		if (!*advice)
			continue;
		pen_pad(p, 15);
		pen_flow(p, DOC_FAINT, advice, 15);
		pen_end(p);
	}
	own_remarks(p, section, label);
}

/* The others at length, each with all its evidence; then the section's own lines. */
void text_full(struct pen *p, const struct doc_node *section)
{
	const struct doc_node *f =
		section->of && section->of->first ? section->of->first->next : NULL;
	for (; f; f = f->next) {
		headline(p, doc_get_string(f, "id"), f);
		body(p, f, SIZE_MAX);
		pen_end(p);
	}
	own_remarks(p, section, section->label);
}
