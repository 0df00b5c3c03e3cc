/* Messages to the user; see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum log_level current = LOG_NORMAL;

void log_set_level(enum log_level level)
{
	current = level;
}

/* One write per line, so that lines of the job and ours do not mix in the middle. */
static void say(const char *fmt, va_list ap)
{
	char line[1024] = "spotter: ";
	size_t at = sizeof("spotter: ") - 1;
	int n = vsnprintf(line + at, sizeof(line) - at - 1, fmt, ap);
	if (n < 0)
		return;
	size_t end = at + (size_t)n < sizeof(line) - 2 ? at + (size_t)n : sizeof(line) - 2;
	line[end++] = '\n';
	if (write(STDERR_FILENO, line, end) < 0)
		return;
}

#define SAY_AT(level)                   \
	{                               \
		va_list ap;             \
		va_start(ap, fmt);      \
		if (current >= (level)) \
			say(fmt, ap);   \
		va_end(ap);             \
	}

void log_info(const char *fmt, ...) SAY_AT(LOG_NORMAL)

	void log_error(const char *fmt, ...) SAY_AT(LOG_QUIET)

		void log_verbose(const char *fmt, ...) SAY_AT(LOG_VERBOSE)
