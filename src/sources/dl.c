/* Vendor libraries opened at run time; see dl.h. */
#include "sources/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Pointers to functions and to data have one size on every system with dlsym; memcpy keeps C happy. */
static void *get_slot(const void *slots, size_t at)
{
	void *p;
	memcpy(&p, (const char *)slots + at, sizeof(p));
	return p;
}

int dl_open(const char *soname, const struct dl_symbol *table, void *slots, void **ret_handle,
	    struct err *e)
{
	void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *why = dlerror();
		return err_set(e, ENOENT, "%s", why ? why : soname);
	}
	for (const struct dl_symbol *s = table; s->name; s++)
		memset((char *)slots + s->slot, 0, sizeof(void *));
	for (const struct dl_symbol *s = table; s->name; s++) {
		if (get_slot(slots, s->slot))
			continue;
		void *p = dlsym(handle, s->name);
		memcpy((char *)slots + s->slot, &p, sizeof(p));
	}
	for (const struct dl_symbol *s = table; s->name; s++) {
		if (!s->required || get_slot(slots, s->slot))
			continue;
		dlclose(handle);
		return err_set(e, ENOSYS, "%s has no function %s", soname, s->name);
	}
	*ret_handle = handle;
	return 0;
}
