/* A table: an array of objects whose shown values are columns; `before` of a value is its head. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/text_layout.h"

#define COLUMNS_MAX 12
#define GAP         2

struct table {
	int widths[COLUMNS_MAX];
	bool left[COLUMNS_MAX]; /* text; numbers stand at the right */
	const char *heads[COLUMNS_MAX];
	size_t n;
};

static void cell(const struct doc_node *n, char *into, size_t cap)
{
	bool absent = n->kind == DOC_NULL || (n->kind == DOC_NUMBER && isnan(n->number));
	if (absent)
		snprintf(into, cap, "-");
	else
		text_value(n, into, cap);
}

static void measure(const struct pen *p, const struct doc_node *rows, struct table *t)
{
	memset(t, 0, sizeof(*t));
	for (const struct doc_node *row = rows->first; row; row = row->next) {
		size_t i = 0;
		for (const struct doc_node *c = row->first; c; c = c->next) {
			char text[256];
			if (c->show == DOC_NOT_SHOWN || i == COLUMNS_MAX)
				continue;
			cell(c, text, sizeof(text));
			t->heads[i] = c->before ? c->before : "";
			t->left[i] |= c->kind == DOC_STRING;
			int head = pen_columns(p, t->heads[i]), wide = pen_columns(p, text);
			wide = wide > head ? wide : head;
			t->widths[i] = wide > t->widths[i] ? wide : t->widths[i];
			i++;
		}
		t->n = i > t->n ? i : t->n;
	}
}

static void put_cell(struct pen *p, const struct table *t, size_t i, enum doc_tone tone,
		     const char *text)
{
	int from = p->col + (i ? GAP : 0), columns = pen_columns(p, text);
	if (from >= p->width)
		return;
	pen_pad(p, t->left[i] ? from : from + t->widths[i] - columns);
	pen_clip(p, tone, text, p->width - p->col);
	if (i + 1 < t->n)
		pen_pad(p, from + t->widths[i]);
}

void text_table(struct pen *p, const struct doc_node *section)
{
	const struct doc_node *rows = section->of ? section->of : section;
	struct table t;
	if (!rows->first)
		return;
	measure(p, rows, &t);
	pen_end(p);
	pen_put(p, " ");
	pen_tone(p, DOC_STRONG, section->label);
	pen_end(p);
	pen_pad(p, 3);
	for (size_t i = 0; i < t.n; i++)
		put_cell(p, &t, i, DOC_FAINT, t.heads[i]);
	pen_end(p);
	for (const struct doc_node *row = rows->first; row; row = row->next) {
		size_t i = 0;
		pen_pad(p, 3);
		for (const struct doc_node *c = row->first; c; c = c->next) {
			char text[256];
			if (c->show == DOC_NOT_SHOWN || i == COLUMNS_MAX)
				continue;
			cell(c, text, sizeof(text));
			put_cell(p, &t, i++, c->tone, text);
		}
		pen_end(p);
	}
}
