/*
 * Files that travel inside the program: tables made by tools/embed.py at build time.
 */
#ifndef SPOTTER_BASE_EMBED_H
#define SPOTTER_BASE_EMBED_H

#include <stddef.h>

struct embedded_file {
	const char *path; /* as named at build time; NULL ends the table */
	const unsigned char *data;
	size_t len;
};

#endif
