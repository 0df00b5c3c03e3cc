/*
 * libFuzzer: a whole file as a recording, opened and read in every way. Checksums of blobs are
 * taken for right (codec_unseal is wrapped), or nothing would ever get behind them.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "recording/codec.h"
#include "recording_walk.h"

bool __wrap_codec_unseal(const struct codec *c, const void *data, size_t *len);

bool __wrap_codec_unseal(const struct codec *c, const void *data, size_t *len)
{
	(void)c;
	(void)data;
	if (*len < 4)
		return false;
	*len -= 4;
	return true;
}

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

/* One file for all inputs, in memory. */
static int open_file(void)
{
	snprintf(path, sizeof(path), "/dev/shm/fuzz-reader-%d.spot", getpid());
	atexit(remove_file);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct rec_reader *r = NULL;
	struct err e = { "" };
	if (fd < 0)
		fd = open_file();
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	int rc = rec_open(path, &r, &e);
	if (rc >= 0)
		walk_all(r);
	else if (r || !e.text[0])
		abort();
	rec_reader_free(r);
	return 0;
}
