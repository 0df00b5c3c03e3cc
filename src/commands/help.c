/*
 * --help, man pages and completion, and the command that prints them. There is one text per command, in
 * its table; this file only lays it out, so the three cannot differ.
 */
#include "commands/help.h"

#include <errno.h>
#include <string.h>

#include "commands/command.h"

#define HELP_COLUMN 26 /* where the explanation of an option begins */

static const char overview[] =
	"spotter watches a deep-learning training run and says what limits it.\n"
	"\n"
	"  spotter run -- python3 train.py     run it, unmodified; at the end: a verdict with "
	"evidence\n"
	"  spotter top                         watch it while it runs, from another terminal\n"
	"  spotter report run.spot             read the verdict again, later\n"
	"\n";

void help_overview(FILE *f)
{
	fputs(overview, f);
	fputs("Commands:\n", f);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(f, "  %-10s %s\n", (*c)->name, (*c)->summary);
	fputs("\n'spotter COMMAND --help' explains a command with examples; "
	      "'spotter --version' tells the version.\n",
	      f);
}

/* "-i, --interval TIME" */
static void option_name(char *text, size_t cap, const struct opt *o)
{
	char letter[8] = "    ";
	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(text, cap, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

/* Words of text from column `column`, wrapped at 100. The cursor stands at `at`. */
static void wrapped(FILE *f, const char *text, int at, int column)
{
	if (at + 2 > column) {
		fputc('\n', f);
		at = 0;
	}
	fprintf(f, "%*s", column - at, "");
	at = column;
	while (*text) {
		size_t n = strcspn(text, " ");
		if (at > column && at + 1 + (int)n > 100) {
			fprintf(f, "\n%*s", column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', f);
			at++;
		}
		fwrite(text, 1, n, f);
		at += (int)n;
		text += n + (text[n] == ' ');
	}
	fputc('\n', f);
}

void help_command(FILE *f, const struct command *c)
{
	fprintf(f, "spotter %s: %s\n\nUsage: spotter %s %s\n\n%s", c->name, c->summary, c->name,
		c->usage, c->text);
	fputs("\nOptions:\n", f);
	for (const struct opt *o = c->options; o->name; o++) {
		char name[80];
		option_name(name, sizeof(name), o);
		wrapped(f, o->help, fprintf(f, "  %s", name), HELP_COLUMN + 4);
	}
	wrapped(f, "this text", fprintf(f, "  -h, --help"), HELP_COLUMN + 4);
	if (c->examples)
		fprintf(f, "\nExamples:\n%s", c->examples);
}

/* Text for troff: no line may begin with a dot or a quote, backslashes and dashes are escaped. */
static void roff(FILE *f, const char *text)
{
	for (const char *p = text; *p; p++) {
		if ((p == text || p[-1] == '\n') && (*p == '.' || *p == '\''))
			fputs("\\&", f);
		if (*p == '\\')
			fputs("\\e", f);
		else if (*p == '-')
			fputs("\\-", f);
		else
			fputc(*p, f);
	}
}

static void man_head(FILE *f, const char *page, const char *summary)
{
	fprintf(f, ".TH \"%s\" 1 \"\" \"spotter %s\" \"spotter\"\n.SH NAME\n", page,
		SPOTTER_VERSION);
	roff(f, page);
	fputs(" \\- ", f);
	roff(f, summary);
	fputs("\n.SH SYNOPSIS\n", f);
}

static void man_literal(FILE *f, const char *title, const char *text)
{
	fprintf(f, ".SH %s\n.nf\n", title);
	roff(f, text);
	fputs(".fi\n", f);
}

static void man_overview(FILE *f)
{
	man_head(f, "spotter", "say what limits a deep-learning training run");
	fputs("spotter COMMAND [options]\n", f);
	man_literal(f, "DESCRIPTION", overview);
	fputs(".SH COMMANDS\n", f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, ".TP\n\\fBspotter\\-%s\\fR(1)\n", (*c)->name);
		roff(f, (*c)->summary);
		fputc('\n', f);
	}
}

void help_man(FILE *f, const struct command *c)
{
	if (!c) {
		man_overview(f);
		return;
	}
	char page[64];
	snprintf(page, sizeof(page), "spotter-%s", c->name);
	man_head(f, page, c->summary);
	fprintf(f, "spotter %s ", c->name);
	roff(f, c->usage);
	fputc('\n', f);
	man_literal(f, "DESCRIPTION", c->text);
	fputs(".SH OPTIONS\n", f);
	for (const struct opt *o = c->options; o->name; o++) {
		char name[80];
		option_name(name, sizeof(name), o);
		fputs(".TP\n", f);
		roff(f, name + strspn(name, " "));
		fputc('\n', f);
		roff(f, o->help);
		fputc('\n', f);
	}
	if (c->examples)
		man_literal(f, "EXAMPLES", c->examples);
	fputs(".SH SEE ALSO\nspotter(1)\n", f);
}

void help_completion_bash(FILE *f)
{
	fputs("# bash completion for spotter\n_spotter()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} i\n"
	      "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"",
	      f);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(f, "%s ", (*c)->name);
	fputs("--help --version\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	      "\t\tif [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
	      "\t\t\t_command_offset $((i + 1)) 2>/dev/null\n\t\t\treturn\n\t\tfi\n\tdone\n"
	      "\tcase ${COMP_WORDS[1]}:$cur in\n",
	      f);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(f, "\t%s:-*) COMPREPLY=($(compgen -W \"", (*c)->name);
		for (const struct opt *o = (*c)->options; o->name; o++)
			fprintf(f, "--%s ", o->name);
		fputs("--help\" -- \"$cur\")) ;;\n", f);
		if ((*c)->files)
			fprintf(f, "\t%s:*) COMPREPLY=($(compgen -f -X '!%s' -- \"$cur\")) ;;\n",
				(*c)->name, (*c)->files);
	}
	fputs("\tesac\n}\ncomplete -o default -F _spotter spotter\n", f);
}

struct help_options {
	const char *format;
};

static const struct opt help_opts[] = {
	OPT(help_options, format, "format", 'f', OPT_STRING, "FORMAT",
	    "text (default), man (a troff page) or bash (completion)"),
	OPT_END,
};

static const struct command *command_named(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

static int help_run(const void *options, int n, char **argv)
{
	const struct help_options *o = options;
	const char *format = o->format ? o->format : "text";
	const struct command *c = n ? command_named(argv[0]) : NULL;
	if (n && !c) {
		fprintf(stderr, "spotter: there is no command '%s'; 'spotter --help' lists them\n",
			argv[0]);
		return EXIT_USAGE;
	}
	if (!strcmp(format, "man")) {
		help_man(stdout, c);
	} else if (!strcmp(format, "bash")) {
		help_completion_bash(stdout);
	} else if (strcmp(format, "text")) {
		fprintf(stderr, "spotter: --format is text, man or bash, not '%s'\n", format);
		return EXIT_USAGE;
	} else if (c) {
		help_command(stdout, c);
	} else {
		help_overview(stdout);
	}
	return 0;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a command; print man pages and shell completion",
	.usage = "[options] [COMMAND]",
	.text = "Prints what 'spotter COMMAND --help' prints, or the same as a man page, or a "
		"script that\n"
		"teaches bash to complete commands, options and recordings.\n",
	.examples = "  spotter help run\n"
		    "      the options of 'spotter run'\n"
		    "  eval \"$(spotter help --format bash)\"\n"
		    "      completion in this shell\n",
	.options = help_opts,
	.options_size = sizeof(struct help_options),
	.run = help_run,
};
