/*
 * The column codec and the tail: what goes in comes out, to the bit, for all kinds of values; and
 * whatever bytes a decoder is given, it returns. (Run under ASan in CI: reading outside would be
 * seen.)
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording/codec.h"
#include "recording/ticks.h"
#include "recording/varint.h"

static uint64_t random_state = 88172645463325252ULL;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int set_up(void **state)
{
	struct codec *c = calloc(1, sizeof(*c));
	*state = c;
	return codec_init(c);
}

static int tear_down(void **state)
{
	codec_free(*state);
	free(*state);
	return 0;
}

typedef int encode_fn(struct codec *c, const int64_t *v, size_t n, struct buf *out);
typedef int decode_fn(struct codec *c, const uint8_t *data, size_t len, int64_t *v, size_t n);

/* Encode and decode; returns the length. The bytes are copied to memory of exactly their size. */
static size_t round_trip(struct codec *c, encode_fn *encode, decode_fn *decode, const int64_t *v,
			 size_t n)
{
	struct buf b = BUF_INIT;
	buf_adds(&b, "before");
	assert_int_equal(encode(c, v, n, &b), 0);
	assert_memory_equal(b.data, "before", 6);
	size_t len = b.len - 6;
	uint8_t *exact = malloc(len);
	int64_t *back = malloc(n * sizeof(*back));
	memcpy(exact, b.data + 6, len);
	memset(back, 0x55, n * sizeof(*back));
	assert_int_equal(decode(c, exact, len, back, n), 0);
	assert_memory_equal(back, v, n * sizeof(*back));
	free(exact);
	free(back);
	buf_free(&b);
	return len;
}

static size_t round_trip_i64(struct codec *c, const int64_t *v, size_t n)
{
	return round_trip(c, codec_encode_i64, codec_decode_i64, v, n);
}

static size_t round_trip_f64(struct codec *c, const double *d, size_t n)
{
	int64_t *bits = malloc(n * sizeof(*bits));
	memcpy(bits, d, n * sizeof(*bits));
	size_t len = round_trip(c, codec_encode_f64, codec_decode_f64, bits, n);
	free(bits);
	return len;
}

static void test_varint(void **state)
{
	static const uint64_t values[] = { 0,     1,          127,       128,       16383,
					   16384, UINT32_MAX, INT64_MAX, UINT64_MAX };
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		uint8_t b[VARINT_MAX];
		uint64_t back = 0;
		uint8_t *end = varint_put(b, values[i]);
		assert_ptr_equal(varint_get(b, end, &back), end);
		assert_true(back == values[i]);
		assert_null(varint_get(b, end - 1, &back)); /* cut short */
	}
	uint8_t endless[16];
	uint64_t v;
	memset(endless, 0xff, sizeof(endless));
	assert_null(varint_get(endless, endless + sizeof(endless), &v));
	static const int64_t numbers[] = { 0, -1, 1, INT64_MIN, INT64_MAX };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		assert_true(unzigzag(zigzag(numbers[i])) == numbers[i]);
}

static void test_extremes(void **state)
{
	static const int64_t edges[] = { INT64_MIN,     INT64_MAX,    0, -1, 1,
					 INT64_MIN + 1, INT64_MAX - 1 };
	enum { EDGES = sizeof(edges) / sizeof(*edges) };
	int64_t v[3];
	for (size_t i = 0; i < EDGES * EDGES * EDGES; i++) {
		v[0] = edges[i % EDGES];
		v[1] = edges[i / EDGES % EDGES];
		v[2] = edges[i / EDGES / EDGES];
		for (size_t n = 1; n <= 3; n++)
			round_trip_i64(*state, v, n);
		round_trip(*state, codec_encode_f64, codec_decode_f64, v, 3);
	}
}

static void test_constant_is_tiny(void **state)
{
	int64_t *v = calloc(CODEC_MAX, sizeof(*v));
	assert_true(round_trip_i64(*state, v, CODEC_MAX) <= 2);
	for (size_t i = 0; i < CODEC_MAX; i++)
		v[i] = 16777216;
	assert_true(round_trip_i64(*state, v, 600) <= 6);
	for (size_t i = 0; i < CODEC_MAX; i++) /* a clock that ticks evenly */
		v[i] = (int64_t)(1000000000 + i * 100000000);
	assert_true(round_trip_i64(*state, v, CODEC_MAX) <= 40);
	free(v);
}

/* Columns as sources give them, with all lengths around the borders of blocks. */
static int64_t value_of(unsigned kind, size_t i, int64_t before)
{
	uint64_t r = random_u64();
	switch (kind) {
	case 0: /* CPU time in clock ticks */
		return before + (int64_t)(r % 12) * 10000000;
	case 1: /* memory in pages */
		return (int64_t)(1000000 + r % 512) * 4096;
	case 2: /* still, with a rare jump to anywhere */
		return r % 200 ? before : (int64_t)random_u64();
	case 3: /* noise of every size */
		return (int64_t)(r >> (random_u64() % 64));
	case 4: /* going down */
		return -(int64_t)i * 1234567 - (int64_t)(r % 16);
	case 5: /* only two values, far apart */
		return r & 1 ? INT64_MIN : INT64_MAX;
	case 6: /* small and negative */
		return (int64_t)(r % 5) - 2;
	default: /* all bits */
		return (int64_t)r;
	}
}

static void test_columns(void **state)
{
	static const size_t lengths[] = { 1,   2,   3,   63,   64,   65,   66,
					  128, 129, 600, 1023, 1024, 1025, 5000 };
	int64_t *v = malloc(5000 * sizeof(*v));
	for (unsigned kind = 0; kind < 8; kind++) {
		for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
			size_t n = lengths[k];
			for (size_t i = 0; i < n; i++)
				v[i] = value_of(kind, i, i ? v[i - 1] : 0);
			size_t len = round_trip_i64(*state, v, n);
			assert_true(len <= n * 8 + 32); /* never much more than as it was */
			round_trip(*state, codec_encode_f64, codec_decode_f64, v, n);
		}
	}
	free(v);
}

static void test_typical_sizes(void **state)
{
	int64_t v[600];
	for (size_t i = 0; i < 600; i++)
		v[i] = value_of(0, i, i ? v[i - 1] : 0);
	assert_true(round_trip_i64(*state, v, 600) < 600 * 0.6);
	for (size_t i = 0; i < 600; i++)
		v[i] = value_of(1, i, 0);
	assert_true(round_trip_i64(*state, v, 600) < 600 * 1.4);
}

static void test_doubles(void **state)
{
	static const double odd[] = {
		0.0, -0.0, INFINITY,           -INFINITY, 5e-324, -5e-324, 1.7976931348623157e308,
		0.1, 1e-9, 9007199254740993.0, -2.5
	};
	enum { ODD = sizeof(odd) / sizeof(*odd) };
	double d[600];
	for (size_t i = 0; i < ODD; i++) {
		round_trip_f64(*state, &odd[i], 1);
		for (size_t k = 0; k < 600; k++)
			d[k] = k % 50 ? 1.5 : odd[i];
		round_trip_f64(*state, d, 600);
	}
	round_trip_f64(*state, odd, ODD);
	for (unsigned decimals = 0; decimals < 12; decimals++) {
		for (size_t k = 0; k < 600; k++)
			d[k] = (double)(int64_t)(random_u64() % 20000 - 10000) / pow(10, decimals);
		size_t len = round_trip_f64(*state, d, 600);
		if (decimals <= 9)
			assert_true(len < 600 * 2.2);
	}
	for (size_t k = 0; k < 600; k++) {
		uint64_t nan = 0x7ff0000000000000ULL | (random_u64() >> 12) | 1;
		memcpy(&d[k], &nan, sizeof(nan));
	}
	round_trip_f64(*state, d, 600);
}

/*
 * Any bytes: an error or n values, nothing else. Mutations of real columns reach further than
 * noise.
 */
static void test_decoder_is_total(void **state)
{
	struct codec *c = *state;
	int64_t v[600], back[600];
	for (unsigned round = 0; round < 20000; round++) {
		struct buf b = BUF_INIT;
		size_t n = 1 + random_u64() % 600;
		for (size_t i = 0; i < n; i++)
			v[i] = value_of(round % 8, i, i ? v[i - 1] : 0);
		encode_fn *encode = round & 8 ? codec_encode_f64 : codec_encode_i64;
		decode_fn *decode = round & 8 ? codec_decode_f64 : codec_decode_i64;
		assert_int_equal(encode(c, v, n, &b), 0);
		size_t len = round % 5 ? b.len : random_u64() % (b.len + 1);
		uint8_t *exact = malloc(len ? len : 1);
		memcpy(exact, b.data, len);
		for (uint64_t flips = random_u64() % 4; len && flips; flips--)
			exact[random_u64() % len] ^= (uint8_t)(1u << random_u64() % 8);
		if (round % 7 == 0)
			for (size_t i = 0; i < len; i++)
				exact[i] = (uint8_t)random_u64();
		size_t as = round % 3 ? n : 1 + random_u64() % 600;
		int rc = decode(c, exact, len, back, as);
		assert_true(rc == 0 || rc == -EBADMSG);
		free(exact);
		buf_free(&b);
	}
	assert_int_equal(codec_decode_i64(c, (const uint8_t *)"", 0, back, 1), -EBADMSG);
	assert_int_equal(codec_decode_i64(c, (const uint8_t *)"\0\0", 2, back, 0), -EBADMSG);
	assert_int_equal(codec_decode_i64(c, (const uint8_t *)"\0\0", 2, back, CODEC_MAX + 1),
			 -EBADMSG);
}

static void test_checksum(void **state)
{
	struct codec *c = *state;
	struct buf b = BUF_INIT;
	assert_int_equal(codec_crc(c, "123456789", 9), 0xcbf43926);
	buf_adds(&b, "xxa column of some length");
	assert_int_equal(codec_seal(c, &b, 2), 0);
	size_t len = b.len - 2;
	assert_true(codec_unseal(c, b.data + 2, &len));
	assert_int_equal(len, strlen("a column of some length"));
	for (size_t bit = 16; bit < b.len * 8; bit++) {
		b.data[bit / 8] ^= (char)(1 << bit % 8);
		len = b.len - 2;
		assert_false(codec_unseal(c, b.data + 2, &len));
		b.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	buf_free(&b);
}

/* ----------------------------------------------------------------------------------------- tail */

/* Ticks with series that come and go, and a second value at one tick. */
static void fill_ticks(struct ticks *l, unsigned n, unsigned series)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(ticks_begin(l), 0);
		for (unsigned s = 0; s < series; s++)
			if (i % 10 < 7 || s % 3)
				ticks_add(l, s, (int64_t)(random_u64() % 1000) * 4096 + s);
		if (series && i % 11 == 5)
			ticks_add(l, 0, INT64_MIN);
		assert_int_equal(ticks_end(l, 1000 + i * 7), 0);
	}
}

static void assert_same_ticks(const struct ticks *a, const struct ticks *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		const struct tick *x = &a->tick[i], *y = &b->tick[i];
		assert_int_equal(x->t_ns, y->t_ns);
		assert_int_equal(x->n, y->n);
		assert_memory_equal(a->ids + x->ids, b->ids + y->ids, x->n * sizeof(*a->ids));
		assert_memory_equal(a->vals + x->vals, b->vals + y->vals, x->n * sizeof(*a->vals));
	}
}

/* Written in rows of `step` ticks, decoded row by row. */
static void tail_round_trip(struct codec *c, unsigned n, unsigned series, unsigned step)
{
	struct ticks in = { 0 }, all = { 0 }, out = { 0 };
	struct tail_state from = { 0 }, to = { 0 };
	struct buf row = BUF_INIT;
	uint64_t skipped = 0;
	tail_state_reset(&from);
	tail_state_reset(&to);
	fill_ticks(&all, n, series);
	for (size_t done = 0; done < all.n; done = in.n) {
		in = all;
		in.n = done + step < all.n ? done + step : all.n;
		buf_clear(&row);
		assert_int_equal(tail_encode(&from, c, &in, done, &row), 0);
		assert_int_equal(tail_decode(&to, c, (const uint8_t *)row.data, row.len, series,
					     &out, &skipped),
				 0);
	}
	assert_same_ticks(&all, &out);
	assert_int_equal(skipped, 0);
	tail_state_free(&from);
	tail_state_free(&to);
	ticks_free(&all);
	ticks_free(&out);
	buf_free(&row);
}

static void test_tail(void **state)
{
	tail_round_trip(*state, 100, 0, 3);
	tail_round_trip(*state, 100, 1, 1);
	tail_round_trip(*state, 100, 160, 1);
	tail_round_trip(*state, 100, 160, 7);
	tail_round_trip(*state, 600, 300, 600); /* large enough to be compressed */
}

static void test_tail_that_lost_a_row(void **state)
{
	struct ticks in = { 0 }, out = { 0 };
	struct tail_state from = { 0 }, to = { 0 };
	struct buf row = BUF_INIT;
	uint64_t skipped = 0;
	tail_state_reset(&from);
	tail_state_reset(&to);
	fill_ticks(&in, 1, 10);
	tail_encode(&from, *state, &in, 0, &row);
	fill_ticks(&in, 1, 10);
	in.tick[1].t_ns += 100;
	buf_clear(&row);
	tail_encode(&from, *state, &in, 1, &row);
	/* This row builds on one that never came. */
	assert_int_equal(
		tail_decode(&to, *state, (const uint8_t *)row.data, row.len, 10, &out, &skipped),
		-EBADMSG);
	assert_int_equal(out.n, 0);
	tail_state_reset(&from);
	buf_clear(&row);
	tail_encode(&from, *state, &in, 0, &row);
	/* Series of which nothing is known are left out and counted. */
	assert_int_equal(
		tail_decode(&to, *state, (const uint8_t *)row.data, row.len, 4, &out, &skipped), 0);
	assert_int_equal(skipped, 12);
	assert_int_equal(out.tick[0].n, 4);
	tail_state_free(&from);
	tail_state_free(&to);
	ticks_free(&in);
	ticks_free(&out);
	buf_free(&row);
}

/* As damage would be if its checksum were right. */
static void test_tail_decoder_is_total(void **state)
{
	struct ticks in = { 0 };
	struct tail_state s = { 0 };
	struct buf good = BUF_INIT, bad = BUF_INIT;
	tail_state_reset(&s);
	fill_ticks(&in, 40, 30);
	assert_int_equal(tail_encode(&s, *state, &in, 0, &good), 0);
	for (unsigned round = 0; round < 20000; round++) {
		struct ticks out = { 0 };
		struct tail_state to = { .fresh = true };
		uint64_t skipped = 0;
		size_t len = round % 4 ? good.len - 4 : random_u64() % good.len;
		buf_clear(&bad);
		buf_add(&bad, good.data, len);
		for (uint64_t flips = 1 + random_u64() % 3; len && flips; flips--)
			bad.data[random_u64() % (round % 2 && len > 8 ? 8 : len)] ^=
				(char)(1 << random_u64() % 8);
		codec_seal(*state, &bad, 0);
		int rc = tail_decode(&to, *state, (const uint8_t *)bad.data, bad.len, 30, &out,
				     &skipped);
		assert_true(rc == 0 || rc == -EBADMSG || rc == -ENOMEM);
		for (size_t i = 0; i < out.n; i++)
			for (size_t k = 0; k < out.tick[i].n; k++)
				assert_true(out.ids[out.tick[i].ids + k] < 30);
		ticks_free(&out);
		tail_state_free(&to);
	}
	tail_state_free(&s);
	ticks_free(&in);
	buf_free(&good);
	buf_free(&bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_varint),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_constant_is_tiny),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_typical_sizes),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_decoder_is_total),
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_tail_that_lost_a_row),
		cmocka_unit_test(test_tail_decoder_is_total),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
