/*
 * Everything that explains the program, made from the command tables: --help, man pages, completion.
 */
#ifndef SPOTTER_COMMANDS_HELP_H
#define SPOTTER_COMMANDS_HELP_H

#include <stdio.h>

struct command;

void help_overview(FILE *f);
void help_command(FILE *f, const struct command *c);
void help_man(FILE *f, const struct command *c); /* c NULL: the page of spotter itself */
void help_completion_bash(FILE *f);

#endif
