/*
 * Stands before the real sqlite3.h where the reader is compiled for the extension, so that each of its calls
 * goes through the host program's own SQLite; see extension.c for why.
 */
#ifndef SPOTTER_EXTENSION_HOST_SQLITE3_H
#define SPOTTER_EXTENSION_HOST_SQLITE3_H

#include <sqlite3ext.h>
#include <string.h>

/* clang-format off */
SQLITE_EXTENSION_INIT3
/* clang-format on */

/*
 * Where a file cannot be locked the reader's last resort is to read it without locks. A descriptor opened so is
 * outside of SQLite's bookkeeping, and closing it would drop the locks of the host: not in here.
 */
static inline int host_open_v2(const char *name, sqlite3 **ret, int flags, const char *vfs)
{
	*ret = NULL;
	return strstr(name, "nolock=1") ? SQLITE_CANTOPEN
					: sqlite3_api->open_v2(name, ret, flags, vfs);
}
#undef sqlite3_open_v2
#define sqlite3_open_v2 host_open_v2

#endif
