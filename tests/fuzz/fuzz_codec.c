/*
 * libFuzzer: the decoders of columns and of tails, and the way there and back. The first byte
 * chooses; the next two are the number of values or of series.
 */
#include <stdlib.h>
#include <string.h>

#include "recording/codec.h"
#include "recording/ticks.h"

typedef int encode_fn(struct codec *c, const int64_t *v, size_t n, struct buf *out);
typedef int decode_fn(struct codec *c, const uint8_t *data, size_t len, int64_t *v, size_t n);

/* What decodes must come back the same when it is encoded again. */
static void fuzz_column(struct codec *c, encode_fn *encode, decode_fn *decode, const uint8_t *data,
			size_t len, size_t n)
{
	int64_t *v = malloc(n * sizeof(*v)), *back = malloc(n * sizeof(*back));
	if (!decode(c, data, len, v, n)) {
		struct buf b = BUF_INIT;
		if (encode(c, v, n, &b) || decode(c, (const uint8_t *)b.data, b.len, back, n) ||
		    memcmp(v, back, n * sizeof(*v)))
			abort();
		buf_free(&b);
	}
	free(v);
	free(back);
}

static void fuzz_values(struct codec *c, encode_fn *encode, decode_fn *decode, const uint8_t *data,
			size_t len)
{
	size_t n = len / 8;
	if (!n || n > CODEC_MAX)
		return;
	int64_t *v = malloc(n * sizeof(*v)), *back = malloc(n * sizeof(*back));
	struct buf b = BUF_INIT;
	memcpy(v, data, n * sizeof(*v));
	if (encode(c, v, n, &b) || decode(c, (const uint8_t *)b.data, b.len, back, n) ||
	    memcmp(v, back, n * sizeof(*v)))
		abort();
	buf_free(&b);
	free(v);
	free(back);
}

static void fuzz_tail(struct codec *c, const uint8_t *data, size_t len, uint32_t nseries)
{
	struct ticks l = { 0 };
	struct tail_state s = { .fresh = true };
	struct buf row = BUF_INIT;
	uint64_t skipped = 0;
	buf_add(&row, data, len);
	codec_seal(c, &row, 0);
	tail_decode(&s, c, (const uint8_t *)row.data, row.len, nseries, &l, &skipped);
	for (size_t i = 0; i < l.n; i++)
		for (size_t k = 0; k < l.tick[i].n; k++)
			if (l.ids[l.tick[i].ids + k] >= nseries ||
			    (i && l.tick[i].t_ns <= l.tick[i - 1].t_ns))
				abort();
	tail_state_free(&s);
	ticks_free(&l);
	buf_free(&row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct codec c;
	if (!c.crc[0][1])
		codec_init(&c);
	if (size < 3)
		return 0;
	size_t n = 1u + data[1] + 256u * data[2];
	switch (data[0] % 5) {
	case 0:
		fuzz_column(&c, codec_encode_i64, codec_decode_i64, data + 3, size - 3, n);
		break;
	case 1:
		fuzz_column(&c, codec_encode_f64, codec_decode_f64, data + 3, size - 3, n);
		break;
	case 2:
		fuzz_tail(&c, data + 3, size - 3, (uint32_t)n);
		break;
	case 3:
		fuzz_values(&c, codec_encode_i64, codec_decode_i64, data + 3, size - 3);
		break;
	default:
		fuzz_values(&c, codec_encode_f64, codec_decode_f64, data + 3, size - 3);
		break;
	}
	return 0;
}
