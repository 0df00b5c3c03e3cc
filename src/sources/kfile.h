/*
 * A file of /proc or /sys that is read again and again: the descriptor and the memory for its text are kept.
 * Knows nothing of what the text means.
 */
#ifndef SPOTTER_SOURCES_KFILE_H
#define SPOTTER_SOURCES_KFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define KFILE_MAX_BYTES (8u << 20) /* a text that is longer is refused: -EFBIG */

struct kfile {
	int fd;     /* -1: not open */
	char *text; /* NUL-terminated after kfile_read; NULL before */
	size_t cap;
};

#define KFILE_INIT       \
	{                \
		.fd = -1 \
	}

/* Open root + path ("/proc", "/stat"). 0 or -errno; f is then as KFILE_INIT. */
int kfile_open(struct kfile *f, const char *root, const char *path);

/* Read it all from the start into f->text; its length or -errno (-EBADF if it is not open). */
ssize_t kfile_read(struct kfile *f);

/* For files with one number: 0, -EINVAL if there is none, or what reading said. */
int kfile_read_u64(struct kfile *f, uint64_t *ret);

void kfile_close(struct kfile *f); /* releases all; f is then as KFILE_INIT */

/* Put root + path together; false if it does not fit. */
bool kfile_path(char *buf, size_t cap, const char *root, const char *path);

#endif
