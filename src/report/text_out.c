/* See text_out.h. */
#include "report/text_out.h"

#include <string.h>

static const struct {
	const char *utf8, *ascii;
} plain[] = {
	{ "▸", ">" },
	{ "·", "-" },
	{ "…", "..." },
	{ "—", "-" },
};

/* Bytes of the character at s; 1 for what is no UTF-8. */
static size_t char_bytes(const char *s)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;
	for (size_t i = 1; i < n; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 1;
	return n;
}

/* What stands for the character at s (n bytes) on this paper; columns through *ret. */
static const char *shown_as(const struct pen *p, const char *s, size_t n, size_t *ret_bytes,
			    int *ret_columns)
{
	unsigned char c = (unsigned char)*s;
	*ret_bytes = n;
	*ret_columns = 1;
	bool control = c < 0x20 || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0);
	bool broken = n == 1 && c >= 0x80;
	if (n > 1 && p->ascii) {
		for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
			if (strncmp(plain[i].utf8, s, n))
				continue;
			*ret_bytes = strlen(plain[i].ascii);
			*ret_columns = (int)*ret_bytes;
			return plain[i].ascii;
		}
	}
	if (control || broken || (n > 1 && p->ascii)) {
		*ret_bytes = 1;
		return "?";
	}
	return s;
}

int pen_columns(const struct pen *p, const char *s)
{
	int columns = 0, one;
	size_t n, bytes;
	for (; *s; s += n) {
		n = char_bytes(s);
		shown_as(p, s, n, &bytes, &one);
		columns += one;
	}
	return columns;
}

static void put_n(struct pen *p, const char *s, size_t len)
{
	const char *end = s + len;
	while (s < end) {
		size_t n = char_bytes(s), bytes;
		int columns;
		const char *as = shown_as(p, s, n, &bytes, &columns);
		buf_add(p->out, as, bytes);
		p->col += columns;
		s += n;
	}
}

void pen_put(struct pen *p, const char *s)
{
	put_n(p, s, strlen(s));
}

static void tone_on(struct pen *p, enum doc_tone tone)
{
	static const char *const codes[] = {
		[DOC_PLAIN] = "",         [DOC_GOOD] = "\033[32m",  [DOC_NOTE] = "\033[36m",
		[DOC_WARN] = "\033[33m",  [DOC_BAD] = "\033[1;31m", [DOC_FAINT] = "\033[2m",
		[DOC_STRONG] = "\033[1m",
	};
	if (p->color)
		buf_adds(p->out, codes[tone]);
}

static void tone_off(struct pen *p, enum doc_tone tone)
{
	if (p->color && tone != DOC_PLAIN)
		buf_adds(p->out, "\033[0m");
}

void pen_tone(struct pen *p, enum doc_tone tone, const char *s)
{
	tone_on(p, tone);
	pen_put(p, s);
	tone_off(p, tone);
}

void pen_pad(struct pen *p, int col)
{
	if (col <= p->col)
		return;
	buf_addn(p->out, ' ', (size_t)(col - p->col));
	p->col = col;
}

void pen_end(struct pen *p)
{
	while (p->out->len && p->out->data[p->out->len - 1] == ' ')
		p->out->data[--p->out->len] = 0;
	buf_addc(p->out, '\n');
	p->col = 0;
}

static int columns_n(const struct pen *p, const char *s, size_t len)
{
	int columns = 0, one;
	size_t bytes;
	for (const char *end = s + len; s < end;) {
		size_t n = char_bytes(s);
		shown_as(p, s, n, &bytes, &one);
		columns += one;
		s += n;
	}
	return columns;
}

void pen_flow(struct pen *p, enum doc_tone tone, const char *s, int indent)
{
	bool fresh = true; /* nothing of s on this line yet */
	tone_on(p, tone);
	while (*s) {
		s += strspn(s, " ");
		size_t len = strcspn(s, " ");
		if (!len)
			break;
		/* A number stays with its short unit: "41 %", "83 ms". */
		if (strchr("0123456789", s[len - 1]) && s[len] == ' ') {
			size_t unit = strcspn(s + len + 1, " ");
			if (unit && unit <= 4)
				len += 1 + unit;
		}
		int columns = columns_n(p, s, len);
		if (!fresh && p->col + 1 + columns > p->width) {
			tone_off(p, tone);
			pen_end(p);
			pen_pad(p, indent);
			tone_on(p, tone);
			fresh = true;
		}
		if (!fresh) {
			buf_addc(p->out, ' ');
			p->col++;
		}
		put_n(p, s, len);
		fresh = false;
		s += len;
	}
	tone_off(p, tone);
}

void pen_clip(struct pen *p, enum doc_tone tone, const char *s, int columns)
{
	if (pen_columns(p, s) <= columns) {
		pen_tone(p, tone, s);
		return;
	}
	const char *dots = "…";
	int room = columns - pen_columns(p, dots);
	size_t len = 0;
	while (s[len] && columns_n(p, s, len + char_bytes(s + len)) <= room)
		len += char_bytes(s + len);
	tone_on(p, tone);
	put_n(p, s, len);
	pen_put(p, dots);
	tone_off(p, tone);
}
