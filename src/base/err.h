/*
 * Errors with words. Library code returns 0 or -errno and, where a person will have to be told more,
 * also fills a struct err: what happened, to what, and what to do. Nothing in the library prints.
 */
#ifndef SPOTTER_BASE_ERR_H
#define SPOTTER_BASE_ERR_H

struct err {
	char text[512]; /* one sentence or two, no newline; empty if nothing was said */
};

/*
 * Write the message and return -code, so that callers can say `return err_set(e, ENOENT, ...)`.
 * e may be NULL (nobody wants the words). code is a positive errno value.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "what: " before the message already in e (NULL and empty are allowed); returns code as given. */
int err_prefix(struct err *e, int code, const char *what);

#endif
