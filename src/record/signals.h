/*
 * Signals between the terminal, whoever sends us signals, and the job: everything that would have reached
 * the job without spotter reaches it, once.
 *
 * The job shares our process group, so what the terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z) it gets by itself, and
 * we only must not die of it. What another process sends to our pid is passed on to the job. When the
 * job stops, we stop the same way, so that the shell gets its terminal back; when we are continued, so is it.
 */
#ifndef SPOTTER_RECORD_SIGNALS_H
#define SPOTTER_RECORD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "sources/jobset.h"

struct signals {
	int fd;            /* signalfd; -1 before signals_open */
	sigset_t original; /* the mask as we found it: the job's */
};

/* Block what is passed on and open the descriptor. 0 or -errno. Call before the job is forked. */
int signals_open(struct signals *s);

/*
 * Read one signal and do what is due. True: children changed (SIGCHLD), the caller looks at them. The job
 * is job_pid (0 or less: there is none any more); senders in jobset are not echoed back to it.
 */
bool signals_handle(const struct signals *s, pid_t job_pid, const struct jobset *jobset);

/* The job was stopped by sig: stop ourselves the same way; returns when we are continued. */
void signals_stop_self(int sig);

/* Die of sig as the job did, without a core file; returns only if that is impossible. */
void signals_die(int sig);

void signals_close(struct signals *s);

/*
 * If the recorder itself crashes from now on (SIGSEGV and its kind): say so once, stay until the job ends,
 * and pass on its exit status. Call in the parent after the job was forked.
 */
void signals_guard(pid_t job_pid);

#endif
