/*
 * Small reads of kernel files, and parsing what they say. No allocation.
 */
#ifndef SPOTTER_BASE_IO_H
#define SPOTTER_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Read from offset 0 of a kept descriptor into buf, at most cap - 1 bytes, NUL-terminated.
 * Returns the length, or -errno (-ESRCH for a process that is gone).
 */
ssize_t io_pread_text(int fd, char *buf, size_t cap);

/* Open, read, close. dirfd may be AT_FDCWD. Same result. */
ssize_t io_read_text(int dirfd, const char *path, char *buf, size_t cap);

/* Read a whole file, however long, into malloc'ed memory with a NUL behind; at most max bytes (-EFBIG). */
int io_read_all(const char *path, size_t max, char **ret_data, size_t *ret_len);

/* Write all of it, through EINTR and short writes. 0 or -errno. */
int io_write_all(int fd, const void *data, size_t len);

/* The file at path holds one number ("max" is INT64_MAX). 0, -EINVAL or what open and read said. */
int io_read_i64(int dirfd, const char *path, int64_t *ret);

/*
 * Parse a decimal at *p, skipping blanks before it, and move *p behind it. False and nothing changed if there
 * is none. Values above UINT64_MAX saturate.
 */
bool io_parse_u64(const char **p, uint64_t *ret);

/* The number behind the line that begins with key ("VmRSS:"); false if there is no such line. */
bool io_find_u64(const char *text, const char *key, uint64_t *ret);

#endif
