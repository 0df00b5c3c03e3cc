/*
 * The column codec: n values of int64_t or double to bytes and back, without loss. Pure functions
 * over memory; knows nothing of SQLite, series or time. doc/recording.md gives the format to the
 * byte.
 *
 * The decoder is total: whatever bytes it is given, it fills exactly n values or returns -EBADMSG,
 * reads nothing outside, and allocates no more than n (at most CODEC_MAX) asks for.
 */
#ifndef SPOTTER_RECORDING_CODEC_H
#define SPOTTER_RECORDING_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define CODEC_MAX 65536 /* values in one column */

/* Working memory, reused from column to column; one per thread. */
struct codec {
	struct ZSTD_CCtx_s *compress;
	struct ZSTD_DCtx_s *decompress;
	uint64_t *residual; /* cap values */
	int64_t *integer;   /* cap values */
	size_t cap;
	uint8_t *bytes; /* bytes_cap */
	size_t bytes_cap;
	uint32_t crc[8][256];
};

int codec_init(struct codec *c); /* 0 or -ENOMEM; c may be freed either way */
void codec_free(struct codec *c);

/* Append the column to out. n is 1..CODEC_MAX. 0 or -ENOMEM (out is then as before). */
int codec_encode_i64(struct codec *c, const int64_t *v, size_t n, struct buf *out);
/* Doubles, given as their bits: NaNs, infinities and negative zeros come back as they were. */
int codec_encode_f64(struct codec *c, const int64_t *bits, size_t n, struct buf *out);

/* Fill v with the n values in exactly these len bytes. 0, -EBADMSG or -ENOMEM. */
int codec_decode_i64(struct codec *c, const uint8_t *data, size_t len, int64_t *v, size_t n);
int codec_decode_f64(struct codec *c, const uint8_t *data, size_t len, int64_t *bits, size_t n);

/*
 * zstd over any bytes, for callers with larger blocks. Sizes, or -ENOSPC (larger than cap),
 * -ENOMEM.
 */
int64_t codec_squeeze(struct codec *c, void *dst, size_t cap, const void *src, size_t len);
/* 0 if exactly len bytes came out, else -EBADMSG or -ENOMEM. */
int codec_unsqueeze(struct codec *c, void *dst, size_t len, const void *src, size_t src_len);

/* CRC-32 (the one of zlib and Ethernet). */
uint32_t codec_crc(const struct codec *c, const void *data, size_t len);
/* Append the checksum of out[from..len) to out, 4 bytes, least significant first. */
int codec_seal(const struct codec *c, struct buf *out, size_t from);
/* Is the checksum behind data right? *len becomes the length without it. */
bool codec_unseal(const struct codec *c, const void *data, size_t *len);

#endif
