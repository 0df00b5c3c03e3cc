/*
 * --steps-from: the job's output passes through a helper process that forwards every byte unchanged and at
 * once, and looks for a regular expression in complete lines. Each match is a training step.
 *
 * There is one helper per output (one for both where both go to the same place, so their order stays). It is
 * a process of its own, no child of the recorder, so that the recorder's end or failure never breaks the
 * job's output, and it lives until the last process that has the output open has closed it. The job sees a
 * terminal where there was one and a pipe else. When the reader of the output goes away, so does the helper,
 * and the job gets what it would have got: SIGPIPE or EPIPE.
 *
 *   tee_prepare             before the recorder becomes a subreaper (else it inherits the helper)
 *   tee_stdout, tee_stderr  what the job's child process puts in their place before exec
 *   tee_parent_after_fork   the recorder gives up its copies
 *   tee_finish              when the job has ended: all it has written has been forwarded and matched
 */
#ifndef SPOTTER_RECORD_TEE_H
#define SPOTTER_RECORD_TEE_H

#include "base/err.h"

struct tee;

/*
 * regex is POSIX extended. If its first group captures a number, that is the step's index; else steps
 * are counted. Lines end with a newline or a carriage return (progress bars). Steps go to a ring in dir.
 * 0, also where an output cannot be watched (it then stays as it is); -EINVAL with words for a regex that is
 * none; -ENOMEM. *ret is NULL where dir is empty: there is no place for steps.
 */
int tee_prepare(const char *regex, const char *dir, struct tee **ret, struct err *e);

int tee_stdout(const struct tee *t); /* -1: leave it as it is */
int tee_stderr(const struct tee *t);

void tee_parent_after_fork(struct tee *t);

/* Waits at most some seconds for a reader that does not read; the helper goes on alone then. Frees t. */
void tee_finish(struct tee *t);

#endif
