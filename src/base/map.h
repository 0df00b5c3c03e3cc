/*
 * A hash map from uint64_t keys to uint64_t values (or pointers cast to uintptr_t): open addressing,
 * linear probing, power-of-two capacity, at most 3/4 full. Any key and any value is allowed.
 */
#ifndef SPOTTER_BASE_MAP_H
#define SPOTTER_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	uint64_t value;
	uint8_t used;
};

struct map {
	struct map_slot *slots; /* NULL while empty */
	size_t cap;             /* 0 or a power of two */
	size_t count;
};

void map_init(struct map *m);
void map_free(struct map *m); /* NULL is fine; m is then empty and usable */

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value); /* ret untouched if absent */
int map_put(struct map *m, uint64_t key, uint64_t value);             /* 0 or -ENOMEM; replaces */
bool map_del(struct map *m, uint64_t key);                            /* was it there? */

/* Iterate: `for (size_t i = 0; (s = map_next(m, &i));)`; do not change the map meanwhile. */
struct map_slot *map_next(const struct map *m, size_t *i);

#endif
