/*
 * The recorder: starts the job, ticks the sources, drains the tracers, reaps what the job leaves, and writes
 * the recording. Whatever fails here, the job goes on: a recorder that cannot record still waits for the job
 * and passes its fate on.
 *
 *   recorder_start   forks the job, creates the recording, opens sources and tracers
 *   recorder_watch   returns when the command has ended (or, with wait_all, the last process of the job)
 *   recorder_writer  the recording is still open here, for findings
 *   recorder_close   settles what spotter itself cost and closes the recording
 */
#ifndef SPOTTER_RECORD_RECORDER_H
#define SPOTTER_RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/recording.h"

struct recorder;

struct recorder_options {
	const char *path;     /* of the recording */
	uint64_t interval_ns; /* between ticks, at least 1 ms */
	enum rec_journal journal;
	const char *steps_from;  /* a regular expression over the job's output, or NULL */
	const char *task_reader; /* "auto", "bpf", "proc" */
	const char *without;     /* names of sources to leave out, separated by commas, or NULL */
	bool no_hook;            /* put nothing on the job's path */
	bool threads, all_processes;
	bool wait_all; /* go on until the last process of the job has ended */
};

/*
 * 0 once the command runs. Failures to start it: -errno with words (see launch.h), nothing left behind.
 * Failures to record are not errors: the words are in recorder_trouble.
 */
int recorder_start(const struct recorder_options *o, char **argv, struct recorder **ret,
		   struct err *e);

/* Until the job ends; returns its wait status (see wait(2)). */
int recorder_watch(struct recorder *r);

/* The open recording; NULL if there is none. Flushed: a reader sees everything. */
struct rec_writer *recorder_writer(struct recorder *r);

/* Where the recording is. */
const char *recorder_path(const struct recorder *r);

/* Why nothing, or not all, was recorded: a sentence; "" if all is well. */
const char *recorder_trouble(const struct recorder *r);

/* Close the recording, remove the run's directory, free r. 0 or -errno with words. NULL is fine. */
int recorder_close(struct recorder *r, struct err *e);

/* Die of the signal the job died of; returns if that is not possible. */
void recorder_die_like(int sig);

#endif
