/*
 * The column codec; see codec.h. A column becomes its first value and n - 1 residuals: differences
 * from the first value, from the value before, or from the difference before, divided by what
 * divides them all (a memory gauge moves in pages, a CPU counter in clock ticks). The residuals are
 * stored in the shorter of two ways: Rice codes in blocks of 64, or byte planes under zstd.
 */
#include "recording/codec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "recording/bits.h"
#include "recording/varint.h"

/* The first byte of a column. */
enum {
	FORM_MASK = 0x03,
	FORM_CONSTANT = 0, /* all values are the first */
	FORM_OFFSET = 1,   /* residual: value - first */
	FORM_DELTA = 2,    /* value - value before */
	FORM_DELTA2 = 3,   /* difference - difference before */
	PACK_MASK = 0x0c,
	PACK_RICE = 0x00,
	PACK_PLANES = 0x04,
	PACK_ZSTD = 0x08, /* planes, compressed */
	SCALED = 0x10,    /* residuals were divided; the divisor follows */
	KNOWN = 0x1f,
};

#define DECIMALS_MAX 9
#define DECIMALS_RAW 0xff /* the column holds the bits of the doubles, ordered */
#define ZSTD_LEVEL   1
#define SMALL        24 /* bytes that zstd is not tried on */

static void crc_tables(uint32_t crc[8][256])
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t x = i;
		for (int bit = 0; bit < 8; bit++)
			x = x >> 1 ^ (x & 1 ? 0xedb88320u : 0);
		crc[0][i] = x;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			crc[k][i] = crc[k - 1][i] >> 8 ^ crc[0][crc[k - 1][i] & 0xff];
}

int codec_init(struct codec *c)
{
	*c = (struct codec){ 0 };
	crc_tables(c->crc);
	return 0;
}

void codec_free(struct codec *c)
{
	ZSTD_freeCCtx(c->compress);
	ZSTD_freeDCtx(c->decompress);
	free(c->residual);
	free(c->integer);
	free(c->bytes);
	*c = (struct codec){ 0 };
}

/* Room for n values in the working arrays, which come and go together. */
static int reserve(struct codec *c, size_t n)
{
	if (n <= c->cap)
		return 0;
	size_t cap = n < 1024 ? 1024 : n;
	uint64_t *residual = malloc(cap * sizeof(*residual));
	int64_t *integer = malloc(cap * sizeof(*integer));
	uint8_t *bytes = malloc(cap * 8 + BITS_PAD);
	if (!residual || !integer || !bytes) {
		free(residual);
		free(integer);
		free(bytes);
		return -ENOMEM;
	}
	free(c->residual);
	free(c->integer);
	free(c->bytes);
	c->residual = residual;
	c->integer = integer;
	c->bytes = bytes;
	c->bytes_cap = cap * 8;
	c->cap = cap;
	return 0;
}

int64_t codec_squeeze(struct codec *c, void *dst, size_t cap, const void *src, size_t len)
{
	if (!c->compress)
		c->compress = ZSTD_createCCtx();
	if (!c->compress)
		return -ENOMEM;
	size_t n = ZSTD_compressCCtx(c->compress, dst, cap, src, len, ZSTD_LEVEL);
	return ZSTD_isError(n) ? -ENOSPC : (int64_t)n;
}

int codec_unsqueeze(struct codec *c, void *dst, size_t len, const void *src, size_t src_len)
{
	if (!c->decompress)
		c->decompress = ZSTD_createDCtx();
	if (!c->decompress)
		return -ENOMEM;
	size_t n = ZSTD_decompressDCtx(c->decompress, dst, len, src, src_len);
	return ZSTD_isError(n) || n != len ? -EBADMSG : 0;
}

/* ------------------------------------------------------------------------------------- encoding */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

/* What divides all differences; 0 if all values are equal. */
static uint64_t common_divisor(const int64_t *v, size_t n)
{
	uint64_t g = 0;
	for (size_t i = 1; i < n && g != 1; i++) {
		uint64_t d = magnitude(wrap_sub(v[i], v[i - 1]));
		if (d && (!g || d % g))
			g = gcd(d, g);
	}
	return g;
}

static unsigned bit_length(uint64_t u)
{
	return u ? 64 - (unsigned)__builtin_clzll(u) : 0;
}

/* The form with the fewest bits, given the n - 1 differences, already divided. */
static uint8_t best_form(const int64_t *delta, size_t n)
{
	uint64_t offset_bits = 0, delta_bits = 0, delta2_bits = 0;
	int64_t offset = 0, before = 0;
	for (size_t i = 0; i < n; i++) {
		offset = wrap_add(offset, delta[i]);
		offset_bits += bit_length(zigzag(offset));
		delta_bits += bit_length(zigzag(delta[i]));
		delta2_bits += bit_length(zigzag(wrap_sub(delta[i], before)));
		before = delta[i];
	}
	if (delta_bits <= offset_bits && delta_bits <= delta2_bits)
		return FORM_DELTA;
	return offset_bits <= delta2_bits ? FORM_OFFSET : FORM_DELTA2;
}

static void make_residuals(uint8_t form, const int64_t *delta, size_t n, uint64_t *r)
{
	int64_t before = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t x = delta[i];
		if (form == FORM_OFFSET)
			x = before = wrap_add(before, x);
		else if (form == FORM_DELTA2) {
			x = wrap_sub(delta[i], before);
			before = delta[i];
		}
		r[i] = zigzag(x);
	}
}

static unsigned plane_count(const uint64_t *r, size_t n)
{
	uint64_t all = 0;
	for (size_t i = 0; i < n; i++)
		all |= r[i];
	return all ? (bit_length(all) + 7) / 8 : 1;
}

static void split_planes(const uint64_t *r, size_t n, unsigned planes, uint8_t *out)
{
	for (unsigned k = 0; k < planes; k++)
		for (size_t i = 0; i < n; i++)
			*out++ = (uint8_t)(r[i] >> (8 * k));
}

/*
 * The residuals, in the shortest packing; returns the end. p has room for n * 8 + BITS_PAD bytes.
 */
static uint8_t *pack(struct codec *c, size_t n, uint8_t *head, uint8_t *p)
{
	unsigned planes = plane_count(c->residual, n);
	size_t plane_bytes = planes * n;
	size_t rice_bytes = (bits_rice_cost(c->residual, n) + 7) / 8;
	size_t best = rice_bytes <= plane_bytes ? rice_bytes : plane_bytes;
	split_planes(c->residual, n, planes, c->bytes);
	if (best > SMALL) {
		int64_t z = codec_squeeze(c, p + 1, best - 1, c->bytes, plane_bytes);
		if (z > 0) {
			*head |= PACK_ZSTD;
			*p = (uint8_t)planes;
			return p + 1 + z;
		}
	}
	if (rice_bytes <= plane_bytes)
		return bits_rice_put(c->residual, n, p);
	*head |= PACK_PLANES;
	*p++ = (uint8_t)planes;
	memcpy(p, c->bytes, plane_bytes);
	return p + plane_bytes;
}

int codec_encode_i64(struct codec *c, const int64_t *v, size_t n, struct buf *out)
{
	if (reserve(c, n) || buf_reserve(out, n * 8 + 64))
		return -ENOMEM;
	uint8_t *head = (uint8_t *)out->data + out->len;
	uint8_t *p = varint_put(head + 1, zigzag(v[0]));
	uint64_t g = common_divisor(v, n);
	*head = FORM_CONSTANT;
	if (g) {
		int64_t *delta = c->integer;
		for (size_t i = 1; i < n; i++) {
			int64_t d = wrap_sub(v[i], v[i - 1]);
			uint64_t q = g == 1 ? magnitude(d) : magnitude(d) / g;
			delta[i - 1] = (int64_t)(d < 0 ? 0 - q : q);
		}
		*head = best_form(delta, n - 1);
		if (g > 1) {
			*head |= SCALED;
			p = varint_put(p, g);
		}
		make_residuals(*head & FORM_MASK, delta, n - 1, c->residual);
		p = pack(c, n - 1, head, p);
	}
	out->len = (size_t)((char *)p - out->data);
	*p = 0;
	return 0;
}

static double as_double(int64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

static int64_t as_bits(double d)
{
	int64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static const double powers[DECIMALS_MAX + 1] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9 };

/* Is the value exactly an integer over 10^k? */
static bool decimal(int64_t bits, int k, int64_t *ret)
{
	double x = as_double(bits) * powers[k];
	if (!(fabs(x) < 9007199254740992.0))
		return false;
	int64_t i = (int64_t)llrint(x);
	if (as_bits((double)i / powers[k]) != bits)
		return false;
	*ret = i;
	return true;
}

/* Put all values as integers over one power of ten into out; the power, or -1. */
static int decimals(const int64_t *bits, size_t n, int64_t *out)
{
	int k = 0;
	for (size_t i = 0; i < n; i++) {
		if (decimal(bits[i], k, &out[i]))
			continue;
		do {
			if (++k > DECIMALS_MAX)
				return -1;
		} while (!decimal(bits[i], k, &out[i]));
		i = (size_t)-1; /* again from the start with the finer power */
	}
	return k;
}

/*
 * Bits of a double as an integer of the same order, so that near values are near. Its own inverse.
 */
static int64_t ordered(int64_t bits)
{
	return bits < 0 ? bits ^ INT64_MAX : bits;
}

int codec_encode_f64(struct codec *c, const int64_t *bits, size_t n, struct buf *out)
{
	int64_t *v = malloc(n * sizeof(*v));
	if (!v || buf_reserve(out, 1)) {
		free(v);
		return -ENOMEM;
	}
	int k = decimals(bits, n, v);
	for (size_t i = 0; k < 0 && i < n; i++)
		v[i] = ordered(bits[i]);
	size_t len = out->len;
	buf_addc(out, (char)(k < 0 ? DECIMALS_RAW : k));
	int rc = codec_encode_i64(c, v, n, out);
	if (rc)
		out->len = len;
	free(v);
	return rc;
}

/* ------------------------------------------------------------------------------------- decoding */

static int join_planes(const uint8_t *p, size_t n, unsigned planes, uint64_t *r)
{
	memset(r, 0, n * sizeof(*r));
	for (unsigned k = 0; k < planes; k++)
		for (size_t i = 0; i < n; i++)
			r[i] |= (uint64_t)*p++ << (8 * k);
	return 0;
}

static int unpack(struct codec *c, uint8_t pack, const uint8_t *p, size_t len, size_t n)
{
	if (pack == PACK_RICE) {
		/* The bit reader looks ahead: give it its own memory with room behind. */
		if (len > n * 8)
			return -EBADMSG;
		memcpy(c->bytes, p, len);
		memset(c->bytes + len, 0, BITS_PAD);
		return bits_rice_get(c->bytes, len, c->residual, n);
	}
	if (!len || *p < 1 || *p > 8)
		return -EBADMSG;
	unsigned planes = *p++;
	len--;
	if (pack == PACK_PLANES)
		return len == planes * n ? join_planes(p, n, planes, c->residual) : -EBADMSG;
	int rc = codec_unsqueeze(c, c->bytes, planes * n, p, len);
	return rc ? rc : join_planes(c->bytes, n, planes, c->residual);
}

static void rebuild(uint8_t form, const uint64_t *r, uint64_t divisor, int64_t *v, size_t n)
{
	uint64_t value = (uint64_t)v[0], delta = 0;
	for (size_t i = 1; i < n; i++) {
		uint64_t x = (uint64_t)unzigzag(r[i - 1]) * divisor;
		if (form == FORM_OFFSET) {
			v[i] = (int64_t)((uint64_t)v[0] + x);
			continue;
		}
		delta = form == FORM_DELTA ? x : delta + x;
		value += delta;
		v[i] = (int64_t)value;
	}
}

int codec_decode_i64(struct codec *c, const uint8_t *data, size_t len, int64_t *v, size_t n)
{
	if (!n || n > CODEC_MAX || !len || data[0] & ~KNOWN || (data[0] & PACK_MASK) == PACK_MASK)
		return -EBADMSG;
	const uint8_t *end = data + len;
	uint8_t form = data[0] & FORM_MASK;
	uint64_t first, divisor = 1;
	const uint8_t *p = varint_get(data + 1, end, &first);
	if (p && data[0] & SCALED)
		p = varint_get(p, end, &divisor);
	if (!p)
		return -EBADMSG;
	if (form == FORM_CONSTANT) {
		if (p != end || data[0] != FORM_CONSTANT)
			return -EBADMSG;
		for (size_t i = 0; i < n; i++)
			v[i] = unzigzag(first);
		return 0;
	}
	if (n == 1)
		return -EBADMSG;
	int rc = reserve(c, n);
	if (!rc)
		rc = unpack(c, data[0] & PACK_MASK, p, (size_t)(end - p), n - 1);
	if (rc)
		return rc;
	v[0] = unzigzag(first);
	rebuild(form, c->residual, divisor, v, n);
	return 0;
}

int codec_decode_f64(struct codec *c, const uint8_t *data, size_t len, int64_t *bits, size_t n)
{
	if (!len || (data[0] > DECIMALS_MAX && data[0] != DECIMALS_RAW))
		return -EBADMSG;
	int rc = codec_decode_i64(c, data + 1, len - 1, bits, n);
	for (size_t i = 0; !rc && i < n; i++)
		bits[i] = data[0] == DECIMALS_RAW ? ordered(bits[i])
						  : as_bits((double)bits[i] / powers[data[0]]);
	return rc;
}

/* ------------------------------------------------------------------------------------ checksums */

uint32_t codec_crc(const struct codec *c, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t x = UINT32_MAX;
	for (; len >= 8; len -= 8, p += 8) {
		x ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		     (uint32_t)p[3] << 24;
		x = c->crc[7][x & 0xff] ^ c->crc[6][x >> 8 & 0xff] ^ c->crc[5][x >> 16 & 0xff] ^
		    c->crc[4][x >> 24] ^ c->crc[3][p[4]] ^ c->crc[2][p[5]] ^ c->crc[1][p[6]] ^
		    c->crc[0][p[7]];
	}
	while (len--)
		x = x >> 8 ^ c->crc[0][(x ^ *p++) & 0xff];
	return ~x;
}

int codec_seal(const struct codec *c, struct buf *out, size_t from)
{
	uint32_t x = codec_crc(c, out->data + from, out->len - from);
	uint8_t bytes[4] = { (uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16),
			     (uint8_t)(x >> 24) };
	buf_add(out, bytes, sizeof(bytes));
	return out->failed ? -ENOMEM : 0;
}

bool codec_unseal(const struct codec *c, const void *data, size_t *len)
{
	if (*len < 4)
		return false;
	const uint8_t *p = (const uint8_t *)data + *len - 4;
	uint32_t x =
		(uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	if (x != codec_crc(c, data, *len - 4))
		return false;
	*len -= 4;
	return true;
}
