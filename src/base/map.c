/* A hash map of 64-bit keys; see map.h. */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

static size_t hash(uint64_t k)
{
	k ^= k >> 33;
	k *= 0xff51afd7ed558ccdULL;
	k ^= k >> 33;
	k *= 0xc4ceb9fe1a85ec53ULL;
	return (size_t)(k ^ (k >> 33));
}

void map_init(struct map *m)
{
	*m = (struct map){ 0 };
}

void map_free(struct map *m)
{
	if (!m)
		return;
	free(m->slots);
	map_init(m);
}

/* The slot that holds key, or the free one where it would go. Needs cap > count. */
static struct map_slot *find(const struct map *m, uint64_t key)
{
	size_t mask = m->cap - 1;
	size_t i = hash(key) & mask;
	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & mask;
	return &m->slots[i];
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value)
{
	if (!m->count)
		return false;
	const struct map_slot *s = find(m, key);
	if (s->used)
		*ret_value = s->value;
	return s->used;
}

static int grow(struct map *m)
{
	struct map bigger = { .cap = m->cap ? m->cap * 2 : 16, .count = m->count };
	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			*find(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	if ((m->count + 1) * 4 > m->cap * 3) {
		int rc = grow(m);
		if (rc)
			return rc;
	}
	struct map_slot *s = find(m, key);
	m->count += !s->used;
	*s = (struct map_slot){ .key = key, .value = value, .used = 1 };
	return 0;
}

bool map_del(struct map *m, uint64_t key)
{
	if (!m->count)
		return false;
	struct map_slot *s = find(m, key);
	if (!s->used)
		return false;
	/* Close the hole: move back every follower that probed across it. */
	size_t mask = m->cap - 1;
	size_t hole = (size_t)(s - m->slots);
	for (size_t i = (hole + 1) & mask; m->slots[i].used; i = (i + 1) & mask) {
		size_t home = hash(m->slots[i].key) & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].used = 0;
	m->count--;
	return true;
}

struct map_slot *map_next(const struct map *m, size_t *i)
{
	while (*i < m->cap) {
		struct map_slot *s = &m->slots[(*i)++];
		if (s->used)
			return s;
	}
	return NULL;
}
