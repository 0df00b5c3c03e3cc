/*
 * A document: the one tree that a report is built as, and that both renderers walk. doc_text() makes text of
 * it, doc_json() makes JSON. Nothing is printed that is not in the tree, so the two cannot differ.
 *
 * The root is an object of sections; a section is an object of values, an array, or a text-only
 * node. A value stands in JSON under its key; in text only if doc_show() or doc_glue() gave it
 * words. NaN is absent: null in JSON, left out of text (say why in `missing`).
 *
 * Every function accepts NULL nodes and does nothing then; after a failed allocation doc_failed() is true.
 */
#ifndef SPOTTER_REPORT_DOC_H
#define SPOTTER_REPORT_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum doc_kind {
	DOC_NULL,
	DOC_BOOL,
	DOC_INT,
	DOC_NUMBER,
	DOC_STRING,
	DOC_OBJECT,
	DOC_ARRAY,
	DOC_SERIES
};

/* How the text renderer lays a section out. */
enum doc_style {
	DOC_HIDDEN,       /* JSON only */
	DOC_HEAD,         /* one line of what ran and how it ended */
	DOC_LINE,         /* label, values with their words, spark line at the right */
	DOC_VERDICT,      /* the first element of an array of findings, at length */
	DOC_VERDICT_FULL, /* the same with all its evidence */
	DOC_REMARKS,      /* the other findings, a line or two each */
	DOC_FULL,         /* the other findings at length */
	DOC_REASONS,      /* an array of {what, why}, a line each */
	DOC_LINES,        /* an array of sections, each laid out by its own style */
	DOC_RULE,         /* an empty line */
	DOC_TABLE,        /* an array of objects with the same keys: a row each */
};

enum doc_tone { DOC_PLAIN, DOC_GOOD, DOC_NOTE, DOC_WARN, DOC_BAD, DOC_FAINT, DOC_STRONG };

enum doc_show { DOC_NOT_SHOWN, DOC_SHOWN, DOC_GLUED, DOC_NEW_LINE };

struct doc_node {
	const char *key; /* static; NULL: text only, or an element of an array */
	enum doc_kind kind;
	bool boolean;
	int64_t integer;
	double number;
	const char *unit; /* of integer and number, see say(); NULL: none */
	char *string;
	double *series; /* n values, NaN where nothing is known */
	size_t n_series;
	double series_max, series_seconds; /* top of the spark line; seconds per value */

	enum doc_show show;
	char *before, *after; /* words around the value in text, or NULL */
	enum doc_tone tone;

	enum doc_style style;      /* of sections */
	const char *label;         /* of sections */
	const struct doc_node *of; /* the array that this text-only section shows */

	struct doc_node *first, *last, *next;
	struct doc *doc;
};

struct doc;

struct doc *doc_new(void);    /* NULL if out of memory */
void doc_free(struct doc *d); /* NULL is fine */
bool doc_failed(const struct doc *d);
struct doc_node *doc_root(struct doc *d);
const struct doc_node *doc_top(const struct doc *d); /* the same, to look at */

struct doc_node *doc_object(struct doc_node *parent, const char *key);
struct doc_node *doc_array(struct doc_node *parent, const char *key);
struct doc_node *doc_null(struct doc_node *parent, const char *key);
struct doc_node *doc_bool(struct doc_node *parent, const char *key, bool v);
struct doc_node *doc_int(struct doc_node *parent, const char *key, int64_t v, const char *unit);
struct doc_node *doc_number(struct doc_node *parent, const char *key, double v, const char *unit);
struct doc_node *doc_string(struct doc_node *parent, const char *key,
			    const char *v); /* NULL: null */
struct doc_node *doc_stringf(struct doc_node *parent, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* values are copied; unit as for numbers. Shown as a spark line at the right of its section. */
struct doc_node *doc_series(struct doc_node *parent, const char *key, const double *values,
			    size_t n, double max, double seconds, const char *unit);

/* Make a section of an object or array (of: NULL), or a text-only section that shows array `of`. */
struct doc_node *doc_section(struct doc_node *n, const char *label, enum doc_style style);
struct doc_node *doc_view(struct doc_node *parent, const char *label, enum doc_style style,
			  const struct doc_node *of);

/* Show a value in text with words around it (NULL: none); glued to the one before it; on a new line. */
struct doc_node *doc_show(struct doc_node *n, const char *before, const char *after);
struct doc_node *doc_glue(struct doc_node *n, const char *before, const char *after);
struct doc_node *doc_below(struct doc_node *n, const char *before, const char *after);
struct doc_node *doc_tone(struct doc_node *n, enum doc_tone tone);

/* The child with this key, or NULL. */
const struct doc_node *doc_get(const struct doc_node *n, const char *key);
const char *doc_get_string(const struct doc_node *n, const char *key); /* "" if absent */

struct doc_text_options {
	int width;  /* columns, at least 40 */
	bool color; /* ANSI colours */
	bool ascii; /* no character beyond ASCII */
};
void doc_text(const struct doc *d, const struct doc_text_options *o, struct buf *out);

/* 0 or -ENOMEM. */
int doc_json(const struct doc *d, struct buf *out);

#endif
