/*
 * Files that travel inside the binary: the Python step hook. Made by tools/embed.py at build time.
 */
#ifndef SPOTTER_RECORD_EMBED_H
#define SPOTTER_RECORD_EMBED_H

#include "base/embed.h"

extern const struct embedded_file embedded_files[];

#endif
