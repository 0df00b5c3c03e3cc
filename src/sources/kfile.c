/* Kernel files that are kept open; see kfile.h. */
#include "sources/kfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"

bool kfile_path(char *buf, size_t cap, const char *root, const char *path)
{
	int n = snprintf(buf, cap, "%s%s", root, path);
	return n >= 0 && (size_t)n < cap;
}

int kfile_open(struct kfile *f, const char *root, const char *path)
{
	char full[PATH_MAX];
	*f = (struct kfile)KFILE_INIT;
	if (!kfile_path(full, sizeof(full), root, path))
		return -ENAMETOOLONG;
	int fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	f->fd = fd;
	return 0;
}

static int grow(struct kfile *f)
{
	size_t cap = f->cap ? f->cap * 2 : 512;
	if (cap > KFILE_MAX_BYTES)
		return -EFBIG;
	char *text = realloc(f->text, cap);
	if (!text)
		return -ENOMEM;
	f->text = text;
	f->cap = cap;
	return 0;
}

/*
 * The kernel hands a long file over in pieces of a page, so one read is not enough; only a read that
 * returns nothing is the end.
 */
ssize_t kfile_read(struct kfile *f)
{
	size_t len = 0;
	if (f->fd < 0)
		return -EBADF;
	for (;;) {
		if (f->cap < len + 2) {
			int rc = grow(f);
			if (rc)
				return rc;
		}
		ssize_t n = pread(f->fd, f->text + len, f->cap - len - 1, (off_t)len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (n == 0)
			break;
	}
	f->text[len] = 0;
	return (ssize_t)len;
}

int kfile_read_u64(struct kfile *f, uint64_t *ret)
{
	char text[64];
	if (f->fd < 0)
		return -EBADF;
	ssize_t n = io_pread_text(f->fd, text, sizeof(text));
	if (n < 0)
		return (int)n;
	const char *p = text;
	return io_parse_u64(&p, ret) ? 0 : -EINVAL;
}

void kfile_close(struct kfile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->text);
	*f = (struct kfile)KFILE_INIT;
}
