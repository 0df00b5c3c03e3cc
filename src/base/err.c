/* Errors with words; see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	if (e) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
	}
	return -code;
}

int err_prefix(struct err *e, int code, const char *what)
{
	if (e) {
		char old[sizeof(e->text)];
		memcpy(old, e->text, sizeof(old));
		int n = snprintf(e->text, sizeof(e->text), "%s%s", what, *old ? ": " : "");
		if (n > 0 && (size_t)n < sizeof(e->text))
			snprintf(e->text + n, sizeof(e->text) - (size_t)n, "%s", old);
	}
	return code;
}
