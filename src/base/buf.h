/*
 * A growable buffer of bytes that is always NUL-terminated, so it serves for text and for blobs.
 *
 * Invariants: data is never NULL after buf_init (it points at a static empty string until the first
 * byte is added); data[len] == 0; cap == 0 means data is not ours to free.
 * A failed allocation sets `failed`; every later call is a no-op, so a writer may add a hundred pieces
 * and check once at the end.
 */
#ifndef SPOTTER_BASE_BUF_H
#define SPOTTER_BASE_BUF_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len;
	size_t cap;
	bool failed; /* an allocation failed: content is incomplete */
};

extern char buf_empty[1];
#define BUF_INIT                  \
	{                         \
		.data = buf_empty \
	}

void buf_init(struct buf *b);
void buf_free(struct buf *b);  /* releases memory; b is then as after buf_init; NULL is fine */
void buf_clear(struct buf *b); /* empty again, keeps the memory and clears `failed` */

/* Make room for `more` bytes behind len; 0 or -ENOMEM. Does not change len. */
int buf_reserve(struct buf *b, size_t more);

void buf_add(struct buf *b, const void *data, size_t n);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap);
void buf_addn(struct buf *b, char c, size_t n); /* c, n times */

/* Hand the content over as a malloc'ed string (caller frees); NULL if anything failed. b is empty after. */
char *buf_detach(struct buf *b);

#endif
