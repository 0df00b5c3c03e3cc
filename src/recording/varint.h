/*
 * Variable-length integers, the bricks of every blob in a recording: 7 bits to a byte, least
 * significant first, the top bit set on all but the last byte (LEB128, at most 10 bytes). Signed
 * values are zigzag coded before: 0, -1, 1, -2 become 0, 1, 2, 3.
 */
#ifndef SPOTTER_RECORDING_VARINT_H
#define SPOTTER_RECORDING_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t u)
{
	return (int64_t)((u >> 1) ^ (0 - (u & 1)));
}

/* Differences and sums that wrap instead of overflowing. */
static inline int64_t wrap_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Write v at p, which has room for VARINT_MAX bytes; returns the end. */
static inline uint8_t *varint_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/*
 * Read from p, not beyond end; returns behind it, or NULL where the bytes end early or are too
 * many.
 */
static inline const uint8_t *varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
		uint8_t b = *p++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*ret = v;
			return p;
		}
	}
	return NULL;
}

#endif
