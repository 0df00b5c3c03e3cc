/* A document as JSON: every node with a key, absent values as null. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/doc.h"

/* Text from outside (names of processes) may be no UTF-8: what is not becomes '?'. */
static json_t *text_json(const char *s)
{
	json_t *j = json_string(s);
	if (j)
		return j;
	char *clean = strdup(s);
	if (!clean)
		return NULL;
	for (char *p = clean; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	j = json_string(clean);
	free(clean);
	return j;
}

static json_t *number_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *series_json(const struct doc_node *n)
{
	json_t *o = json_object(), *values = json_array();
	for (size_t i = 0; i < n->n_series; i++)
		json_array_append_new(values, number_json(n->series[i]));
	json_object_set_new(o, "unit", json_string(n->unit));
	json_object_set_new(o, "seconds_per_value", number_json(n->series_seconds));
	json_object_set_new(o, "values", values);
	return o;
}

static json_t *node_json(const struct doc_node *n);

static json_t *object_json(const struct doc_node *n)
{
	json_t *o = json_object();
	for (const struct doc_node *c = n->first; c; c = c->next)
		if (c->key && json_object_set_new(o, c->key, node_json(c))) {
			json_decref(o);
			return NULL;
		}
	return o;
}

static json_t *array_json(const struct doc_node *n)
{
	json_t *a = json_array();
	for (const struct doc_node *c = n->first; c; c = c->next)
		if (json_array_append_new(a, node_json(c))) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static json_t *node_json(const struct doc_node *n)
{
	switch (n->kind) {
	case DOC_BOOL:
		return json_boolean(n->boolean);
	case DOC_INT:
		return json_integer(n->integer);
	case DOC_NUMBER:
		return number_json(n->number);
	case DOC_STRING:
		return n->string ? text_json(n->string) : json_null();
	case DOC_OBJECT:
		return object_json(n);
	case DOC_ARRAY:
		return array_json(n);
	case DOC_SERIES:
		return series_json(n);
	case DOC_NULL:
		break;
	}
	return json_null();
}

int doc_json(const struct doc *d, struct buf *out)
{
	json_t *j = node_json(doc_top(d));
	char *text = j ? json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(j);
	if (!text)
		return -ENOMEM;
	buf_adds(out, text);
	buf_addc(out, '\n');
	free(text);
	return out->failed ? -ENOMEM : 0;
}
