/*
 * Rice codes: small numbers in few bits. Values stand in blocks of 64, each block with the
 * parameter k that fits it best: 6 bits of k, then for each value u the quotient u >> k as that
 * many zero bits and a one, then the low k bits of u. A quotient of BITS_ESCAPE stands for "the
 * whole value follows in 64 bits". k = 63 says that the whole block is zeros. Bits fill bytes from
 * the least significant one.
 */
#ifndef SPOTTER_RECORDING_BITS_H
#define SPOTTER_RECORDING_BITS_H

#include <stddef.h>
#include <stdint.h>

#define BITS_PAD \
	16 /* zero bytes that must stand behind what is read, and room behind what is written */

size_t bits_rice_cost(const uint64_t *v, size_t n);              /* in bits */
uint8_t *bits_rice_put(const uint64_t *v, size_t n, uint8_t *p); /* returns the end */

/* Fill v from exactly len bytes (with BITS_PAD zero bytes behind them). 0 or -EBADMSG. */
int bits_rice_get(const uint8_t *p, size_t len, uint64_t *v, size_t n);

#endif
