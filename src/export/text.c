/* Values as machines read them; see text.h. */
#include "export/text.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

void text_csv(struct buf *b, const char *s)
{
	if (!s)
		return;
	if (!strpbrk(s, ",\"\r\n")) {
		buf_adds(b, s);
		return;
	}
	buf_addc(b, '"');
	for (; *s; s++) {
		if (*s == '"')
			buf_addc(b, '"');
		buf_addc(b, *s);
	}
	buf_addc(b, '"');
}

/* The length of the well-formed UTF-8 sequence at s, or 0. Stops at the NUL, since that continues nothing. */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char first, last, low, high; /* first byte's range, second byte's range */
		size_t len;
	} forms[] = {
		{ 0x20, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (s[0] < forms[i].first || s[0] > forms[i].last)
			continue;
		if (forms[i].len > 1 && (s[1] < forms[i].low || s[1] > forms[i].high))
			return 0;
		for (size_t k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

void text_json(struct buf *b, const char *s)
{
	if (!s) {
		buf_adds(b, "null");
		return;
	}
	buf_addc(b, '"');
	while (*s) {
		unsigned char c = (unsigned char)*s;
		size_t n = utf8_len((const unsigned char *)s);
		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (n)
			buf_add(b, s, n);
		else if (c == '\n')
			buf_adds(b, "\\n");
		else if (c == '\t')
			buf_adds(b, "\\t");
		else if (c < 0x20)
			buf_addf(b, "\\u%04x", c);
		else
			buf_adds(b, "\xef\xbf\xbd");
		s += n ? n : 1;
	}
	buf_addc(b, '"');
}

void text_i64(struct buf *b, int64_t value)
{
	char text[24];
	char *p = text + sizeof(text);
	uint64_t u = value < 0 ? -(uint64_t)value : (uint64_t)value;
	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (value < 0)
		*--p = '-';
	buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

void text_f64(struct buf *b, double value)
{
	if (isnan(value))
		return;
	if (isinf(value)) {
		buf_adds(b, value < 0 ? "-1e999" : "1e999");
		return;
	}
	if (fabs(value) < 1e15 && value == (double)(int64_t)value) {
		text_i64(b, (int64_t)value);
		return;
	}
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_adds(b, text);
}

void text_time(struct buf *b, const struct rec_reader *r, uint64_t t_ns)
{
	uint64_t real_ns = rec_realtime_ns(r, t_ns);
	time_t s = (time_t)(real_ns / NS_PER_S);
	struct tm tm = { 0 };
	if (!real_ns || !gmtime_r(&s, &tm))
		return;
	buf_addf(b, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(real_ns % NS_PER_S));
}

void text_entity(struct buf *b, const struct rec_entity_info *e)
{
	switch (e->kind) {
	case ENTITY_HOST:
	case ENTITY_JOB:
		buf_adds(b, entity_kind_name(e->kind));
		break;
	case ENTITY_GPU:
		buf_addf(b, "gpu%" PRId64, e->key);
		break;
	case ENTITY_PROCESS:
	case ENTITY_THREAD:
		buf_addf(b, "%s[%" PRId64 "]", e->name ? e->name : "", e->key);
		break;
	default:
		buf_adds(b, e->name ? e->name : "");
	}
}

bool text_in_list(const char *list, const char *name)
{
	char pattern[128];
	while (*list) {
		size_t n = strcspn(list, ",");
		if (n && n < sizeof(pattern)) {
			memcpy(pattern, list, n);
			pattern[n] = 0;
			if (!fnmatch(pattern, name, 0))
				return true;
		}
		list += n + (list[n] == ',');
	}
	return false;
}
