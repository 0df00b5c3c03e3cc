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
	if (!e)
		return code;
	char old[sizeof(e->text)];
	memcpy(old, e->text, sizeof(old));
	size_t at = (size_t)snprintf(e->text, sizeof(e->text), "%s%s", what, *old ? ": " : "");
	size_t n = strlen(old);
	if (at >= sizeof(e->text))
		return code;
	if (n >= sizeof(e->text) - at)
		n = sizeof(e->text) - at - 1;
	memcpy(e->text + at, old, n);
	e->text[at + n] = 0;
	return code;
}
