/*
 * Files that travel inside the binary: the Python step hook. Made by tools/embed.py at build time.
 */
#ifndef SPOTTER_RECORD_EMBED_H
#define SPOTTER_RECORD_EMBED_H

#include <stddef.h>

struct embedded_file {
	const char *path; /* "python/sitecustomize.py"; NULL ends the table */
	const unsigned char *data;
	size_t len;
};

extern const struct embedded_file embedded_files[];

#endif
