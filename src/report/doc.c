/* Building documents; see doc.h. */
#include "report/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct doc {
	struct doc_node *root;
	bool failed;
};

static struct doc_node *node_new(struct doc *d, enum doc_kind kind)
{
	struct doc_node *n = calloc(1, sizeof(*n));
	if (!n) {
		d->failed = true;
		return NULL;
	}
	n->kind = kind;
	n->doc = d;
	return n;
}

static void node_free(struct doc_node *n)
{
	while (n) {
		struct doc_node *next = n->next;
		node_free(n->first);
		free(n->string);
		free(n->series);
		free(n->before);
		free(n->after);
		free(n);
		n = next;
	}
}

static struct doc_node *add(struct doc_node *parent, const char *key, enum doc_kind kind)
{
	struct doc_node *n = parent ? node_new(parent->doc, kind) : NULL;
	if (!n)
		return NULL;
	n->key = key;
	if (parent->last)
		parent->last->next = n;
	else
		parent->first = n;
	parent->last = n;
	return n;
}

static char *copy(struct doc *d, const char *s)
{
	if (!s)
		return NULL;
	char *c = strdup(s);
	if (!c)
		d->failed = true;
	return c;
}

struct doc *doc_new(void)
{
	struct doc *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->root = node_new(d, DOC_OBJECT);
	if (!d->root) {
		free(d);
		return NULL;
	}
	return d;
}

void doc_free(struct doc *d)
{
	if (!d)
		return;
	node_free(d->root);
	free(d);
}

bool doc_failed(const struct doc *d)
{
	return d->failed;
}

struct doc_node *doc_root(struct doc *d)
{
	return d->root;
}

const struct doc_node *doc_top(const struct doc *d)
{
	return d->root;
}

struct doc_node *doc_object(struct doc_node *parent, const char *key)
{
	return add(parent, key, DOC_OBJECT);
}

struct doc_node *doc_array(struct doc_node *parent, const char *key)
{
	return add(parent, key, DOC_ARRAY);
}

struct doc_node *doc_null(struct doc_node *parent, const char *key)
{
	return add(parent, key, DOC_NULL);
}

struct doc_node *doc_bool(struct doc_node *parent, const char *key, bool v)
{
	struct doc_node *n = add(parent, key, DOC_BOOL);
	if (n)
		n->boolean = v;
	return n;
}

struct doc_node *doc_int(struct doc_node *parent, const char *key, int64_t v, const char *unit)
{
	struct doc_node *n = add(parent, key, DOC_INT);
	if (n) {
		n->integer = v;
		n->unit = unit;
	}
	return n;
}

struct doc_node *doc_number(struct doc_node *parent, const char *key, double v, const char *unit)
{
	struct doc_node *n = add(parent, key, DOC_NUMBER);
	if (n) {
		n->number = v;
		n->unit = unit;
	}
	return n;
}

struct doc_node *doc_string(struct doc_node *parent, const char *key, const char *v)
{
	struct doc_node *n = add(parent, key, v ? DOC_STRING : DOC_NULL);
	if (n)
		n->string = copy(n->doc, v);
	return n;
}

struct doc_node *doc_stringf(struct doc_node *parent, const char *key, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	struct doc_node *n = doc_string(parent, key, text);
	if (n && !text)
		n->doc->failed = true;
	free(text);
	return n;
}

struct doc_node *doc_series(struct doc_node *parent, const char *key, const double *values,
			    size_t n, double max, double seconds, const char *unit)
{
	struct doc_node *node = add(parent, key, DOC_SERIES);
	if (!node)
		return NULL;
	node->series = malloc((n ? n : 1) * sizeof(*values));
	if (!node->series) {
		node->doc->failed = true;
		return node;
	}
	if (n)
		memcpy(node->series, values, n * sizeof(*values));
	node->n_series = n;
	node->series_max = max;
	node->series_seconds = seconds;
	node->unit = unit;
	return node;
}

struct doc_node *doc_section(struct doc_node *n, const char *label, enum doc_style style)
{
	if (n) {
		n->label = label;
		n->style = style;
	}
	return n;
}

struct doc_node *doc_view(struct doc_node *parent, const char *label, enum doc_style style,
			  const struct doc_node *of)
{
	struct doc_node *n = doc_section(add(parent, NULL, DOC_NULL), label, style);
	if (n)
		n->of = of;
	return n;
}

static struct doc_node *show(struct doc_node *n, enum doc_show how, const char *before,
			     const char *after)
{
	if (!n)
		return NULL;
	n->show = how;
	n->before = copy(n->doc, before);
	n->after = copy(n->doc, after);
	return n;
}

struct doc_node *doc_show(struct doc_node *n, const char *before, const char *after)
{
	return show(n, DOC_SHOWN, before, after);
}

struct doc_node *doc_glue(struct doc_node *n, const char *before, const char *after)
{
	return show(n, DOC_GLUED, before, after);
}

struct doc_node *doc_below(struct doc_node *n, const char *before, const char *after)
{
	return show(n, DOC_NEW_LINE, before, after);
}

struct doc_node *doc_tone(struct doc_node *n, enum doc_tone tone)
{
	if (n)
		n->tone = tone;
	return n;
}

const struct doc_node *doc_get(const struct doc_node *n, const char *key)
{
	for (const struct doc_node *c = n ? n->first : NULL; c; c = c->next)
		if (c->key && !strcmp(c->key, key))
			return c;
	return NULL;
}

const char *doc_get_string(const struct doc_node *n, const char *key)
{
	const struct doc_node *c = doc_get(n, key);
	return c && c->string ? c->string : "";
}
