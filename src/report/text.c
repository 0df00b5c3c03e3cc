/*
 * A document as text: walks the sections of the tree and lays each out by its style. Narrow and wide
 * terminals, with and without colour and Unicode. Adds no content of its own.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h" /* say() */
#include "base/fmt.h"
#include "report/doc.h"
#include "report/text_layout.h"
#include "report/text_out.h"

#define PIECES_MAX 64

struct piece {
	char text[512];
	enum doc_tone tone;
	bool new_line;
};

static bool is_absent(const struct doc_node *n)
{
	return n->kind == DOC_NULL || (n->kind == DOC_NUMBER && isnan(n->number));
}

void text_value(const struct doc_node *n, char *into, size_t cap)
{
	const char *unit = n->unit ? n->unit : "count";
	if (n->kind == DOC_INT && !strcmp(unit, "id")) {
		snprintf(into, cap, "%lld", (long long)n->integer);
		return;
	}
	switch (n->kind) {
	case DOC_INT:
		snprintf(into, cap, "%s", say((double)n->integer, unit).s);
		break;
	case DOC_NUMBER:
		snprintf(into, cap, "%s", say(n->number, unit).s);
		break;
	case DOC_STRING:
		snprintf(into, cap, "%s", n->string ? n->string : "");
		break;
	case DOC_BOOL:
		snprintf(into, cap, "%s", n->boolean ? "yes" : "no");
		break;
	default:
		if (cap)
			into[0] = 0;
	}
}

/* A blank between words and value, but none inside brackets. */
static void with_words(const struct doc_node *n, char *into, size_t cap)
{
	char value[400];
	const char *before = n->before ? n->before : "", *after = n->after ? n->after : "";
	size_t len = strlen(before);
	text_value(n, value, sizeof(value));
	snprintf(into, cap, "%s%s%s%s%s", before, len && before[len - 1] != '(' ? " " : "", value,
		 *after && *after != ')' ? " " : "", after);
}

/* The shown values of a section, glued ones joined to the one before. */
static size_t collect(const struct doc_node *section, struct piece *pieces)
{
	size_t n = 0;
	bool kept = false; /* the last piece stands, and can be glued to */
	for (const struct doc_node *c = section->first; c; c = c->next) {
		char text[480];
		if (c->kind == DOC_SERIES || c->show == DOC_NOT_SHOWN)
			continue;
		if (c->show != DOC_GLUED)
			kept = !is_absent(c);
		if (is_absent(c) || !kept)
			continue;
		with_words(c, text, sizeof(text));
		if (c->show == DOC_GLUED && n) {
			struct piece *last = &pieces[n - 1];
			size_t len = strlen(last->text);
			snprintf(last->text + len, sizeof(last->text) - len, " %s", text);
			continue;
		}
		if (n == PIECES_MAX)
			break;
		pieces[n].tone = c->tone;
		pieces[n].new_line = c->show == DOC_NEW_LINE;
		snprintf(pieces[n++].text, sizeof(pieces->text), "%s", text);
	}
	return n;
}

static const struct doc_node *spark_of(const struct doc_node *section)
{
	for (const struct doc_node *c = section->first; c; c = c->next)
		if (c->kind == DOC_SERIES && c->show != DOC_NOT_SHOWN)
			return c;
	return NULL;
}

static bool has_values(const struct doc_node *series)
{
	for (size_t i = 0; i < series->n_series; i++)
		if (!isnan(series->series[i]))
			return true;
	return false;
}

/* The largest of the values that fall into each column: peaks must not vanish in a narrow line. */
static void put_spark(struct pen *p, const struct doc_node *s, int columns)
{
	double v[64];
	if (columns > (int)(sizeof(v) / sizeof(*v)))
		columns = (int)(sizeof(v) / sizeof(*v));
	for (int i = 0; i < columns; i++) {
		size_t from = s->n_series * (size_t)i / (size_t)columns;
		size_t to = s->n_series * ((size_t)i + 1) / (size_t)columns;
		v[i] = NAN;
		for (size_t k = from; k < to || k == from; k++)
			if (k < s->n_series && !(s->series[k] <= v[i]) && !isnan(s->series[k]))
				v[i] = s->series[k];
	}
	fmt_spark(p->out, v, columns, s->series_max, p->ascii);
	p->col += columns;
}

#define LABEL_COLUMNS 11
#define GAP           3

static int spark_columns(const struct pen *p)
{
	return p->width >= 100 ? 20 : p->width >= 76 ? 16 : p->width >= 60 ? 10 : 0;
}

static void render_line(struct pen *p, const struct doc_node *section)
{
	struct piece pieces[PIECES_MAX];
	size_t n = collect(section, pieces);
	const struct doc_node *spark = spark_of(section);
	int wide = spark && has_values(spark) ? spark_columns(p) : 0;
	int first_width = p->width - (wide ? wide + 2 : 0), indent = LABEL_COLUMNS;
	bool first = true, fresh = true;
	if (!n)
		return;
	pen_put(p, " ");
	pen_tone(p, DOC_STRONG, section->label);
	pen_pad(p, indent);
	for (size_t i = 0; i < n; i++) {
		int columns = pen_columns(p, pieces[i].text);
		int width = first ? first_width : p->width;
		if (!fresh && (pieces[i].new_line || p->col + GAP + columns > width)) {
			if (first && wide) {
				pen_pad(p, p->width - wide);
				put_spark(p, spark, wide);
				wide = 0;
			}
			pen_end(p);
			pen_pad(p, indent);
			first = false;
			fresh = true;
		}
		if (!fresh)
			pen_pad(p, p->col + GAP);
		/* A piece that no line holds is wrapped by words. */
		pen_flow(p, pieces[i].tone, pieces[i].text, indent + 2);
		fresh = false;
	}
	if (first && wide && p->col + 2 <= p->width - wide) {
		pen_pad(p, p->width - wide);
		put_spark(p, spark, wide);
	}
	pen_end(p);
}

/* "spotter > COMMAND   exit 0   12 s   run.spot": the command gives way to the others. */
static void render_head(struct pen *p, const struct doc_node *section)
{
	struct piece pieces[PIECES_MAX];
	size_t n = collect(section, pieces);
	int others = 0, label = pen_columns(p, section->label) + 1;
	for (size_t i = 1; i < n; i++)
		others += GAP + pen_columns(p, pieces[i].text);
	if (!n)
		return;
	int room = p->width - label - others;
	pen_tone(p, DOC_FAINT, section->label);
	pen_put(p, " ");
	if (room < 16)
		room = p->width - label < 16 ? 16 : p->width - label;
	pen_clip(p, pieces[0].tone, pieces[0].text, room);
	for (size_t i = 1; i < n; i++) {
		if (p->col + GAP + pen_columns(p, pieces[i].text) > p->width) {
			pen_end(p);
			pen_pad(p, label);
		} else {
			pen_pad(p, p->col + GAP);
		}
		pen_clip(p, pieces[i].tone, pieces[i].text, p->width - p->col);
	}
	pen_end(p);
	pen_end(p);
}

static void render_reasons(struct pen *p, const struct doc_node *section)
{
	bool first = true;
	const struct doc_node *list = section->of ? section->of : section;
	for (const struct doc_node *c = list->first; c; c = c->next) {
		char text[640];
		snprintf(text, sizeof(text), "%s: %s", doc_get_string(c, "what"),
			 doc_get_string(c, "why"));
		pen_put(p, " ");
		if (first)
			pen_tone(p, DOC_STRONG, section->label);
		pen_pad(p, LABEL_COLUMNS + 1);
		pen_flow(p, DOC_PLAIN, text, LABEL_COLUMNS + 3);
		pen_end(p);
		first = false;
	}
}

static void render_lines(struct pen *p, const struct doc_node *section)
{
	for (const struct doc_node *c = section->first; c; c = c->next)
		if (c->style == DOC_LINE)
			render_line(p, c);
}

static void render_rule(struct pen *p, const struct doc_node *section)
{
	const struct buf *out = p->out;
	(void)section;
	if (out->len < 2 || strcmp(out->data + out->len - 2, "\n\n"))
		pen_end(p);
}

static const struct {
	void (*render)(struct pen *p, const struct doc_node *section);
} styles[] = {
	[DOC_HIDDEN] = { NULL },
	[DOC_HEAD] = { render_head },
	[DOC_LINE] = { render_line },
	[DOC_VERDICT] = { text_verdict },
	[DOC_VERDICT_FULL] = { text_verdict_full },
	[DOC_REMARKS] = { text_remarks },
	[DOC_FULL] = { text_full },
	[DOC_REASONS] = { render_reasons },
	[DOC_LINES] = { render_lines },
	[DOC_RULE] = { render_rule },
	[DOC_TABLE] = { text_table },
};

void doc_text(const struct doc *d, const struct doc_text_options *o, struct buf *out)
{
	struct pen p = {
		.out = out,
		.width = o->width < 40    ? 40
			 : o->width > 200 ? 200
					  : o->width,
		.color = o->color,
		.ascii = o->ascii,
	};
	for (const struct doc_node *c = doc_top(d)->first; c; c = c->next)
		if (styles[c->style].render)
			styles[c->style].render(&p, c);
}
