/* A growable buffer; see buf.h. */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char buf_empty[1];

void buf_init(struct buf *b)
{
	*b = (struct buf)BUF_INIT;
}

void buf_free(struct buf *b)
{
	if (!b)
		return;
	if (b->cap)
		free(b->data);
	buf_init(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->cap)
		b->data[0] = 0;
}

int buf_reserve(struct buf *b, size_t more)
{
	if (b->failed)
		return -ENOMEM;
	if (b->cap > b->len && b->cap - b->len > more)
		return 0;
	size_t cap = b->cap ? b->cap : 64;
	while (cap - b->len <= more) {
		if (cap > SIZE_MAX / 2) {
			b->failed = true;
			return -ENOMEM;
		}
		cap *= 2;
	}
	char *p = realloc(b->cap ? b->data : NULL, cap);
	if (!p) {
		b->failed = true;
		return -ENOMEM;
	}
	b->data = p;
	b->cap = cap;
	b->data[b->len] = 0;
	return 0;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
	if (buf_reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = 0;
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addn(struct buf *b, char c, size_t n)
{
	if (buf_reserve(b, n))
		return;
	memset(b->data + b->len, c, n);
	b->len += n;
	b->data[b->len] = 0;
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
	va_list copy;
	va_copy(copy, ap);
	int n = vsnprintf(NULL, 0, fmt, copy);
	va_end(copy);
	if (n < 0 || buf_reserve(b, (size_t)n))
		return;
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(b, fmt, ap);
	va_end(ap);
}

char *buf_detach(struct buf *b)
{
	if (buf_reserve(b, 0)) {
		buf_free(b);
		return NULL;
	}
	char *s = b->data;
	buf_init(b);
	return s;
}
