/* Rice codes; see bits.h. */
#include "recording/bits.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { BLOCK = 64, K_BITS = 6, K_MAX = 56, K_ZEROS = 63, BITS_ESCAPE = 24 };

static unsigned bit_length(uint64_t u)
{
	return u ? 64 - (unsigned)__builtin_clzll(u) : 0;
}

static size_t block_cost(const uint64_t *v, size_t n, unsigned k)
{
	size_t bits = n * (k + 1);
	for (size_t i = 0; i < n; i++) {
		uint64_t q = v[i] >> k;
		bits += q < BITS_ESCAPE ? (size_t)q : BITS_ESCAPE + 64 - k;
	}
	return bits;
}

/* The best k of one block and its cost in bits without the header. */
static unsigned block_k(const uint64_t *v, size_t n, size_t *ret_cost)
{
	double sum = 0;
	uint64_t all = 0;
	for (size_t i = 0; i < n; i++) {
		sum += (double)v[i];
		all |= v[i];
	}
	*ret_cost = 0;
	if (!all)
		return K_ZEROS;
	double mean = sum / (double)n;
	unsigned k = mean < 2 ? 0 : mean >= 0x1p56 ? K_MAX : bit_length((uint64_t)mean) - 1;
	/* Outliers pull the mean up: go down as long as that pays. */
	size_t cost = block_cost(v, n, k);
	while (k > 0) {
		size_t less = block_cost(v, n, k - 1);
		if (less >= cost)
			break;
		cost = less;
		k--;
	}
	*ret_cost = cost;
	return k;
}

size_t bits_rice_cost(const uint64_t *v, size_t n)
{
	size_t bits = 0;
	for (size_t i = 0; i < n; i += BLOCK) {
		size_t cost;
		block_k(v + i, n - i < BLOCK ? n - i : BLOCK, &cost);
		bits += K_BITS + cost;
	}
	return bits;
}

struct bits_out {
	uint8_t *p;
	uint64_t held;
	unsigned n; /* bits held, under 8 between calls */
};

/* The low n bits of v, n <= 56. */
static inline void put(struct bits_out *o, uint64_t v, unsigned n)
{
	o->held |= v << o->n;
	o->n += n;
	while (o->n >= 8) {
		*o->p++ = (uint8_t)o->held;
		o->held >>= 8;
		o->n -= 8;
	}
}

uint8_t *bits_rice_put(const uint64_t *v, size_t n, uint8_t *p)
{
	struct bits_out o = { .p = p };
	for (size_t from = 0; from < n; from += BLOCK) {
		size_t to = n - from < BLOCK ? n : from + BLOCK, cost;
		unsigned k = block_k(v + from, to - from, &cost);
		put(&o, k, K_BITS);
		for (size_t i = from; k != K_ZEROS && i < to; i++) {
			uint64_t q = v[i] >> k;
			if (q >= BITS_ESCAPE) {
				put(&o, 1ull << BITS_ESCAPE, BITS_ESCAPE + 1);
				put(&o, v[i] & 0xffffffff, 32);
				put(&o, v[i] >> 32, 32);
				continue;
			}
			put(&o, 1ull << q, (unsigned)q + 1);
			put(&o, v[i] & ((1ull << k) - 1), k);
		}
	}
	if (o.n)
		*o.p++ = (uint8_t)o.held;
	return o.p;
}

/* At least 57 bits from bit position at, which is not beyond the end. */
static inline uint64_t peek(const uint8_t *p, size_t at)
{
	uint64_t x;
	memcpy(&x, p + at / 8, sizeof(x));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	return x >> (at % 8);
}

int bits_rice_get(const uint8_t *p, size_t len, uint64_t *v, size_t n)
{
	size_t at = 0, end = len * 8;
	unsigned k = 0;
	for (size_t i = 0; i < n; i++) {
		if (i % BLOCK == 0) {
			k = (unsigned)(peek(p, at) & 0x3f);
			at += K_BITS;
			if (at > end || (k > K_MAX && k != K_ZEROS))
				return -EBADMSG;
		}
		if (k == K_ZEROS) {
			v[i] = 0;
			continue;
		}
		uint64_t x = peek(p, at);
		unsigned q = x ? (unsigned)__builtin_ctzll(x) : 64;
		if (q > BITS_ESCAPE)
			return -EBADMSG;
		at += q + 1;
		if (at > end)
			return -EBADMSG;
		if (q == BITS_ESCAPE) {
			v[i] = peek(p, at) & 0xffffffff;
			if (at + 64 > end)
				return -EBADMSG;
			v[i] |= (peek(p, at + 32) & 0xffffffff) << 32;
			at += 64;
			continue;
		}
		v[i] = (uint64_t)q << k | (peek(p, at) & ((1ull << k) - 1));
		at += k;
		if (at > end)
			return -EBADMSG;
	}
	return (at + 7) / 8 == len ? 0 : -EBADMSG;
}
