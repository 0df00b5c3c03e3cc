/* The commands, in the order in which --help lists them. Adding one is a new file and one line here. */
#include "commands/command.h"

extern const struct command command_run;
extern const struct command command_report;
extern const struct command command_top;
extern const struct command command_info;
extern const struct command command_export;
extern const struct command command_doctor;
extern const struct command command_help;

const struct command *const commands[] = {
	&command_run,    &command_report, &command_top,  &command_info,
	&command_export, &command_doctor, &command_help, NULL,
};
