/*
 * Stands before the real sqlite3.h where the reader is compiled for the extension, so that each of its calls
 * goes through the host program's own SQLite; see extension.c for why.
 */
#ifndef SPOTTER_EXTENSION_HOST_SQLITE3_H
#define SPOTTER_EXTENSION_HOST_SQLITE3_H

#include <sqlite3ext.h>

/* clang-format off */
SQLITE_EXTENSION_INIT3
/* clang-format on */

#endif
