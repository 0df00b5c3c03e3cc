/* Devices that come and go; see devlist.h. */
#include "sources/devlist.h"

#include <stdlib.h>
#include <string.h>

#include "sources/series.h"

void devlist_free(struct devlist *l)
{
	free(l->items);
	*l = (struct devlist){ 0 };
}

void devlist_begin(struct devlist *l)
{
	l->next = 0;
	for (size_t i = 0; i < l->n; i++)
		l->items[i].seen = false;
}

static bool is_named(const struct device *d, const char *name, size_t len)
{
	return !memcmp(d->name, name, len) && !d->name[len];
}

static struct device *append(struct devlist *l, const char *name, size_t len)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct device *items = realloc(l->items, cap * sizeof(*items));
		if (!items)
			return NULL;
		l->items = items;
		l->cap = cap;
	}
	struct device *d = &l->items[l->n++];
	memset(d, 0, sizeof(*d));
	memcpy(d->name, name, len);
	series_none(d->series, DEVICE_SERIES_MAX);
	return d;
}

struct device *devlist_find(struct devlist *l, const char *name, size_t len, bool *ret_new)
{
	if (len >= DEVICE_NAME_MAX)
		return NULL;
	*ret_new = false;
	for (size_t i = 0; i < l->n; i++) {
		size_t at = (l->next + i) % l->n;
		struct device *d = &l->items[at];
		if (!is_named(d, name, len))
			continue;
		l->next = at + 1;
		d->seen = true;
		return d;
	}
	struct device *d = append(l, name, len);
	if (d) {
		*ret_new = d->seen = true;
		l->next = l->n;
	}
	return d;
}

void devlist_end(struct devlist *l, struct rec_writer *w, uint64_t t_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct device *d = &l->items[i];
		if (!d->seen && d->kept) {
			series_end(w, d->series, DEVICE_SERIES_MAX);
			rec_entity_end(w, d->entity, t_ns);
		}
		if (!d->seen)
			continue;
		if (kept != i)
			l->items[kept] = *d;
		kept++;
	}
	l->n = kept;
}

uint64_t device_unwrap(struct device *d, size_t i, uint64_t now)
{
	if (now > UINT32_MAX) /* this kernel counts further */
		return now;
	d->sum[i] += (uint32_t)((uint32_t)now - d->last32[i]);
	d->last32[i] = (uint32_t)now;
	return d->sum[i];
}
