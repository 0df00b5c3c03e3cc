/*
 * Commands: one file each, one const table each, listed in commands.c. main.c finds the one that was asked for
 * and runs it; --help, man pages and completion are made from the same tables.
 */
#ifndef SPOTTER_COMMANDS_COMMAND_H
#define SPOTTER_COMMANDS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

struct command {
	const char *name;    /* "run" */
	const char *summary; /* one line, lower case, no full stop */
	const char *usage;   /* "[options] [--] COMMAND [ARG]..." */
	const char *text; /* paragraphs for --help and the man page: what it does, how to read it */
	const char *examples;      /* lines "command\n    what it does\n" */
	const struct opt *options; /* never NULL */
	size_t options_size;       /* of the struct the options fill */
	const void *defaults;      /* initial content of that struct, or NULL for zeros */
	bool runs_command;         /* the first positional ends options */
	const char *files; /* completion of positionals: "*.spot", or NULL for commands and files */

	/* argv[0..n-1]: the positionals. Returns the exit status of spotter. */
	int (*run)(const void *options, int n, char **argv);
};

extern const struct command *const commands[]; /* NULL-terminated */

#define EXIT_USAGE 2 /* bad options: say what and point to --help */

#endif
