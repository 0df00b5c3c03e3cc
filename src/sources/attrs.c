/* Attributes of entities as JSON; see attrs.h. */
#include "sources/attrs.h"

#include <string.h>

static void begin(struct buf *b, const char *key)
{
	buf_addf(b, "%c\"%s\":", b->len ? ',' : '{', key);
}

/* Length of the UTF-8 sequence at p, 0 if it is none. Overlong forms and surrogates count as none. */
static size_t utf8_len(const unsigned char *p)
{
	static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *p < 0x80         ? 1
		   : (*p >> 5) == 6  ? 2
		   : (*p >> 4) == 14 ? 3
		   : (*p >> 3) == 30 ? 4
				     : 0;
	if (n < 2)
		return n;
	unsigned code = *p & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	bool sane = code >= least[n] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
	return sane ? n : 0;
}

void attrs_text(struct buf *b, const char *key, const char *text)
{
	begin(b, key);
	buf_addc(b, '"');
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		size_t n = utf8_len(p);
		if (n == 0)
			buf_addc(b, '?');
		else if (*p < 0x20)
			buf_addf(b, "\\u%04x", *p);
		else if (*p == '"' || *p == '\\')
			buf_addf(b, "\\%c", *p);
		else
			buf_add(b, p, n);
		p += n ? n : 1;
	}
	buf_addc(b, '"');
}

void attrs_i64(struct buf *b, const char *key, int64_t value)
{
	begin(b, key);
	buf_addf(b, "%lld", (long long)value);
}

void attrs_f64(struct buf *b, const char *key, double value)
{
	begin(b, key);
	buf_addf(b, "%.6g", value);
}

void attrs_bool(struct buf *b, const char *key, bool value)
{
	begin(b, key);
	buf_adds(b, value ? "true" : "false");
}

void attrs_store(struct buf *b, struct rec_writer *w, uint32_t entity)
{
	buf_adds(b, b->len ? "}" : "{}");
	if (!b->failed)
		rec_entity_attrs(w, entity, b->data);
	buf_free(b);
}
