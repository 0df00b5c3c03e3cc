/*
 * Command-line options as a table per command. One table gives parsing, --help, man page and completion.
 */
#ifndef SPOTTER_BASE_OPT_H
#define SPOTTER_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum opt_type {
	OPT_FLAG,     /* bool *: set to true */
	OPT_STRING,   /* const char **: points into argv */
	OPT_U64,      /* uint64_t * */
	OPT_DURATION, /* uint64_t *, ns */
	OPT_BYTES,    /* uint64_t * */
};

struct opt {
	const char *name; /* "interval": --interval; the table ends with a NULL name */
	char letter;      /* 'i': -i; 0: none */
	enum opt_type type;
	size_t offset;    /* of the field in the struct that opt_parse fills */
	const char *arg;  /* name of the argument for people ("TIME"); NULL for flags */
	const char *help; /* one line, with the default */
};

#define OPT(strct, field, nm, l, t, a, h)                                                    \
	{                                                                                    \
		.name = nm, .letter = l, .type = t, .offset = offsetof(struct strct, field), \
		.arg = a, .help = h                                                          \
	}
#define OPT_END              \
	{                    \
		.name = NULL \
	}

/*
 * Parse argv[1..] into `into` by the table. Options may stand before and after positional arguments, which
 * are moved to argv[1..*ret_n] in order; "--" ends options. With stop_at_first, the first positional
 * ends options too (for commands that run commands). --help sets *ret_help instead of failing.
 * 0, or -EINVAL with words that name the option and what is near it.
 */
int opt_parse(const struct opt *table, void *into, int argc, char **argv, bool stop_at_first,
	      int *ret_n, bool *ret_help, struct err *e);

#endif
