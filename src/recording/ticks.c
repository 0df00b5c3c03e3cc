/* Ticks held in memory; see ticks.h. */
#include "recording/ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The tick that is being filled begins behind the last one. */
static void open_tick(const struct ticks *l, size_t *ids, size_t *vals)
{
	const struct tick *last = l->n ? &l->tick[l->n - 1] : NULL;
	*vals = last ? last->vals + last->n : 0;
	*ids = 0;
	if (last) /* ids may be shared with a tick further back, but never lie behind it */
		*ids = last->ids + last->n;
}

int ticks_begin(struct ticks *l)
{
	ticks_drop(l);
	if (l->n < l->cap)
		return 0;
	size_t cap = l->cap ? l->cap * 2 : 64;
	struct tick *t = realloc(l->tick, cap * sizeof(*t));
	if (!t)
		return -ENOMEM;
	l->tick = t;
	l->cap = cap;
	return 0;
}

int ticks_grow(struct ticks *l)
{
	if (l->nids == l->ids_cap) {
		size_t cap = l->ids_cap ? l->ids_cap * 2 : 256;
		uint32_t *ids = realloc(l->ids, cap * sizeof(*ids));
		if (!ids)
			return -ENOMEM;
		l->ids = ids;
		l->ids_cap = cap;
	}
	if (l->nvals == l->vals_cap) {
		size_t cap = l->vals_cap ? l->vals_cap * 2 : 1024;
		int64_t *vals = realloc(l->vals, cap * sizeof(*vals));
		if (!vals)
			return -ENOMEM;
		l->vals = vals;
		l->vals_cap = cap;
	}
	return 0;
}

int ticks_end(struct ticks *l, uint64_t t_ns)
{
	if (l->n == l->cap)
		return -EINVAL;
	struct tick *t = &l->tick[l->n];
	*t = (struct tick){ .t_ns = t_ns };
	open_tick(l, &t->ids, &t->vals);
	t->n = l->nvals - t->vals;
	if (l->n) {
		const struct tick *last = t - 1;
		if (last->n == t->n && (!t->n || !memcmp(l->ids + last->ids, l->ids + t->ids,
							 t->n * sizeof(*l->ids)))) {
			l->nids = t->ids;
			t->ids = last->ids;
		}
	}
	l->n++;
	return 0;
}

void ticks_drop(struct ticks *l)
{
	open_tick(l, &l->nids, &l->nvals);
}

void ticks_clear(struct ticks *l)
{
	l->n = l->nids = l->nvals = 0;
}

void ticks_free(struct ticks *l)
{
	free(l->tick);
	free(l->ids);
	free(l->vals);
	*l = (struct ticks){ 0 };
}
