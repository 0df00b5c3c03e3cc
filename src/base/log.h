/*
 * What spotter itself has to say, on standard error, one line each, prefixed "spotter: ".
 * Only commands and the recorder speak; libraries return errors. Never used in a child before exec.
 */
#ifndef SPOTTER_BASE_LOG_H
#define SPOTTER_BASE_LOG_H

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE };

void log_set_level(enum log_level level);
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));    /* LOG_NORMAL */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));   /* always */
void log_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* LOG_VERBOSE */

#endif
