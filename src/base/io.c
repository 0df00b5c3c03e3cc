/* Small reads of kernel files; see io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t io_pread_text(int fd, char *buf, size_t cap)
{
	ssize_t n;
	do
		n = pread(fd, buf, cap - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	return n;
}

ssize_t io_read_text(int dirfd, const char *path, char *buf, size_t cap)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = io_pread_text(fd, buf, cap);
	close(fd);
	return n;
}

int io_read_all(const char *path, size_t max, char **ret_data, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t cap = 4096, len = 0;
	char *data = malloc(cap);
	int rc = data ? 0 : -ENOMEM;
	while (!rc) {
		ssize_t n = read(fd, data + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		len += (size_t)n;
		if (len > max) {
			rc = -EFBIG;
		} else if (cap - len < 2) {
			char *bigger = realloc(data, cap * 2);
			if (bigger) {
				data = bigger;
				cap *= 2;
			} else {
				rc = -ENOMEM;
			}
		}
	}
	close(fd);
	if (rc) {
		free(data);
		return rc;
	}
	data[len] = 0;
	*ret_data = data;
	*ret_len = len;
	return 0;
}

int io_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

bool io_parse_u64(const char **p, uint64_t *ret)
{
	const char *s = *p;
	while (*s == ' ' || *s == '\t')
		s++;
	if (*s < '0' || *s > '9')
		return false;
	uint64_t v = 0;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			v = UINT64_MAX;
	}
	*p = s;
	*ret = v;
	return true;
}

bool io_find_u64(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len)) {
			const char *p = line + len;
			return io_parse_u64(&p, ret);
		}
		if (!*line)
			break;
	}
	return false;
}

int io_read_i64(int dirfd, const char *path, int64_t *ret)
{
	char text[64];
	ssize_t n = io_read_text(dirfd, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (!strncmp(text, "max", 3)) {
		*ret = INT64_MAX;
		return 0;
	}
	const char *p = text + (*text == '-');
	uint64_t v;
	if (!io_parse_u64(&p, &v))
		return -EINVAL;
	if (v > INT64_MAX)
		v = INT64_MAX;
	*ret = *text == '-' ? -(int64_t)v : (int64_t)v;
	return 0;
}
