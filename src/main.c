/* spotter: finds the command that was asked for, parses its options by its table, and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/command.h"
#include "commands/help.h"

static const struct command *find(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

static int usage_error(const char *command, const char *what)
{
	fprintf(stderr, "spotter: %s\nTry 'spotter %s%s--help'.\n", what, command,
		*command ? " " : "");
	return EXIT_USAGE;
}

static int run(const struct command *c, int argc, char **argv)
{
	struct err e = { 0 };
	bool help = false;
	int n = 0;
	void *options = calloc(1, c->options_size ? c->options_size : 1);
	if (!options)
		return usage_error(c->name, "out of memory");
	if (c->defaults)
		memcpy(options, c->defaults, c->options_size);

	int status;
	if (opt_parse(c->options, options, argc, argv, c->runs_command, &n, &help, &e)) {
		status = usage_error(c->name, e.text);
	} else if (help) {
		help_command(stdout, c);
		status = 0;
	} else {
		argv[1 + n] = NULL;
		status = c->run(options, n, argv + 1);
	}
	free(options);
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help_overview(stderr);
		return EXIT_USAGE;
	}
	const char *first = argv[1];
	if (!strcmp(first, "--help") || !strcmp(first, "-h")) {
		help_overview(stdout);
		return 0;
	}
	if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
		printf("spotter %s\n", SPOTTER_VERSION);
		return 0;
	}
	const struct command *c = find(first);
	if (!c) {
		char what[128];
		snprintf(what, sizeof(what), "there is no command '%.60s'", first);
		return usage_error("", what);
	}
	return run(c, argc - 1, argv + 1);
}
