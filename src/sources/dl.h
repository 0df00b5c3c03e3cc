/*
 * Vendor libraries: opened at run time, their functions put into a struct of pointers by a table. One symbol
 * that is missing costs what needs it, not the library.
 */
#ifndef SPOTTER_SOURCES_DL_H
#define SPOTTER_SOURCES_DL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct dl_symbol {
	size_t slot; /* offsetof the pointer; rows with the same slot are alternatives, first wins */
	const char *name; /* as exported, with its version; NULL ends the table */
	bool required;
};

/*
 * Open soname and fill the pointers in slots, NULL for what is not there. 0 and *ret_handle (release it by
 * dlclose), -ENOENT (the library cannot be loaded) or -ENOSYS (a required symbol is missing), with words.
 */
int dl_open(const char *soname, const struct dl_symbol *table, void *slots, void **ret_handle,
	    struct err *e);

#endif
