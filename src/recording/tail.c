/*
 * The tail on disk: some ticks in one blob. doc/recording.md gives the format to the byte; see
 * ticks.h for the two calls. Written once per flush and read by whoever looks at a recording while
 * it grows.
 */
#include "recording/ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/varint.h"

enum {
	TAIL_RESET = 1, /* nothing from the rows before is needed */
	TAIL_ZSTD = 2,  /* varint of the length, then zstd of the rest */
};

#define SQUEEZE_FROM 2048        /* bytes from which on the blob is compressed */
#define RAW_MAX      (64u << 20) /* bytes in one blob */
#define TICKS_MAX    (4u * CODEC_MAX)

void tail_state_free(struct tail_state *s)
{
	free(s->value);
	free(s->ids);
	*s = (struct tail_state){ 0 };
}

void tail_state_reset(struct tail_state *s)
{
	if (s->nvalues)
		memset(s->value, 0, s->nvalues * sizeof(*s->value));
	s->nids = 0;
	s->t_ns = 0;
	s->fresh = true;
}

static int know_series(struct tail_state *s, size_t n)
{
	if (n <= s->nvalues)
		return 0;
	size_t cap = s->nvalues * 2 > n ? s->nvalues * 2 : n;
	int64_t *value = realloc(s->value, cap * sizeof(*value));
	if (!value)
		return -ENOMEM;
	memset(value + s->nvalues, 0, (cap - s->nvalues) * sizeof(*value));
	s->value = value;
	s->nvalues = cap;
	return 0;
}

static int know_ids(struct tail_state *s, size_t n)
{
	if (n <= s->ids_cap)
		return 0;
	uint32_t *ids = realloc(s->ids, n * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	s->ids = ids;
	s->ids_cap = n;
	return 0;
}

/* ------------------------------------------------------------------------------------- encoding */

static uint8_t *put_ids(const struct tail_state *s, const uint32_t *ids, size_t n, uint8_t *p)
{
	if (n == s->nids && !s->fresh && (!n || !memcmp(ids, s->ids, n * sizeof(*ids)))) {
		*p++ = 0;
		return p;
	}
	p = varint_put(p, n + 1);
	int64_t before = -1;
	for (size_t i = 0; i < n; i++) {
		p = varint_put(p, zigzag((int64_t)ids[i] - before - 1));
		before = ids[i];
	}
	return p;
}

static int encode_tick(struct tail_state *s, const struct ticks *l, const struct tick *t,
		       struct buf *out)
{
	if (buf_reserve(out, (t->n * 2 + 2) * VARINT_MAX))
		return -ENOMEM;
	const uint32_t *ids = l->ids + t->ids;
	const int64_t *vals = l->vals + t->vals;
	uint8_t *p = (uint8_t *)out->data + out->len;
	p = varint_put(p, t->t_ns - s->t_ns);
	p = put_ids(s, ids, t->n, p);
	for (size_t i = 0; i < t->n; i++) {
		if (know_series(s, (size_t)ids[i] + 1))
			return -ENOMEM;
		p = varint_put(p, zigzag(wrap_sub(vals[i], s->value[ids[i]])));
		s->value[ids[i]] = vals[i];
	}
	out->len = (size_t)((char *)p - out->data);
	if (know_ids(s, t->n))
		return -ENOMEM;
	if (t->n)
		memcpy(s->ids, ids, t->n * sizeof(*ids));
	s->nids = t->n;
	s->t_ns = t->t_ns;
	s->fresh = false;
	return 0;
}

/* Replace out[from..) by its compressed form where that is shorter. */
static int squeeze(struct codec *c, struct buf *out, size_t from)
{
	size_t raw = out->len - from - 1;
	if (raw < SQUEEZE_FROM)
		return 0;
	uint8_t *z = malloc(raw);
	if (!z)
		return -ENOMEM;
	int64_t n = codec_squeeze(c, z, raw - VARINT_MAX, out->data + from + 1, raw);
	if (n > 0) {
		out->data[from] |= TAIL_ZSTD;
		uint8_t *p = varint_put((uint8_t *)out->data + from + 1, raw);
		memcpy(p, z, (size_t)n);
		out->len = (size_t)((char *)p + n - out->data);
	}
	free(z);
	return 0;
}

int tail_encode(struct tail_state *s, struct codec *c, const struct ticks *l, size_t from,
		struct buf *out)
{
	size_t start = out->len;
	if (buf_reserve(out, 1 + VARINT_MAX))
		return -ENOMEM;
	uint8_t *p = (uint8_t *)out->data + out->len;
	*p++ = s->fresh ? TAIL_RESET : 0;
	p = varint_put(p, l->n - from);
	out->len = (size_t)((char *)p - out->data);
	int rc = 0;
	for (size_t i = from; !rc && i < l->n; i++)
		rc = encode_tick(s, l, &l->tick[i], out);
	if (!rc)
		rc = squeeze(c, out, start);
	if (!rc)
		rc = codec_seal(c, out, start);
	return rc;
}

/* ------------------------------------------------------------------------------------- decoding */

static int get_ids(struct tail_state *s, const uint8_t **p, const uint8_t *end)
{
	uint64_t n, u;
	*p = varint_get(*p, end, &n);
	if (!*p || (!n && s->fresh))
		return -EBADMSG;
	if (!n)
		return 0;
	/* Each takes at least two bytes more, one for the id and one for the value. */
	if (--n > (size_t)(end - *p) / 2)
		return -EBADMSG;
	if (know_ids(s, n))
		return -ENOMEM;
	int64_t id = -1;
	for (size_t i = 0; i < n; i++) {
		*p = varint_get(*p, end, &u);
		if (!*p)
			return -EBADMSG;
		id = wrap_add(id, wrap_add(unzigzag(u), 1));
		if (id < 0 || id > UINT32_MAX)
			return -EBADMSG;
		s->ids[i] = (uint32_t)id;
	}
	s->nids = n;
	return 0;
}

static int get_values(struct tail_state *s, const uint8_t **p, const uint8_t *end, uint32_t nseries,
		      struct ticks *l, uint64_t *skipped)
{
	for (size_t i = 0; i < s->nids; i++) {
		uint64_t u;
		uint32_t id = s->ids[i];
		*p = varint_get(*p, end, &u);
		if (!*p)
			return -EBADMSG;
		if (id >= nseries) {
			++*skipped;
			continue;
		}
		s->value[id] = wrap_add(s->value[id], unzigzag(u));
		if (ticks_add(l, id, s->value[id]))
			return -ENOMEM;
	}
	return 0;
}

static int decode_tick(struct tail_state *s, const uint8_t **p, const uint8_t *end,
		       uint32_t nseries, struct ticks *l, uint64_t *skipped)
{
	uint64_t dt;
	*p = varint_get(*p, end, &dt);
	if (!*p || (!dt && !s->fresh) || dt > INT64_MAX - s->t_ns)
		return -EBADMSG;
	int rc = get_ids(s, p, end);
	if (!rc)
		rc = ticks_begin(l);
	if (!rc)
		rc = get_values(s, p, end, nseries, l, skipped);
	if (rc)
		return rc;
	s->t_ns += dt;
	s->fresh = false;
	return ticks_end(l, s->t_ns);
}

static int decode_plain(struct tail_state *s, const uint8_t *p, const uint8_t *end,
			uint32_t nseries, struct ticks *l, uint64_t *skipped)
{
	uint64_t n;
	int rc = 0;
	p = varint_get(p, end, &n);
	if (!p || n > TICKS_MAX)
		return -EBADMSG;
	for (; !rc && n; n--)
		rc = decode_tick(s, &p, end, nseries, l, skipped);
	if (rc)
		ticks_drop(l);
	return rc ? rc : p == end ? 0 : -EBADMSG;
}

static int decode_row(struct tail_state *s, struct codec *c, const uint8_t *data, size_t len,
		      uint32_t nseries, struct ticks *l, uint64_t *skipped)
{
	if (!codec_unseal(c, data, &len) || !len || *data & ~(TAIL_RESET | TAIL_ZSTD))
		return -EBADMSG;
	if (know_series(s, nseries))
		return -ENOMEM;
	if (*data & TAIL_RESET)
		tail_state_reset(s);
	else if (s->fresh) /* what it builds on is lost */
		return -EBADMSG;
	const uint8_t *p = data + 1, *end = data + len;
	if (!(*data & TAIL_ZSTD))
		return decode_plain(s, p, end, nseries, l, skipped);
	uint64_t raw;
	p = varint_get(p, end, &raw);
	if (!p || raw > RAW_MAX)
		return -EBADMSG;
	uint8_t *plain = malloc(raw ? raw : 1);
	if (!plain)
		return -ENOMEM;
	int rc = codec_unsqueeze(c, plain, raw, p, (size_t)(end - p));
	if (!rc)
		rc = decode_plain(s, plain, plain + raw, nseries, l, skipped);
	free(plain);
	return rc;
}

int tail_decode(struct tail_state *s, struct codec *c, const uint8_t *data, size_t len,
		uint32_t nseries, struct ticks *l, uint64_t *skipped)
{
	int rc = decode_row(s, c, data, len, nseries, l, skipped);
	if (rc)
		tail_state_reset(s);
	return rc;
}
