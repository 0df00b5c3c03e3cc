/* Found when the job did not end well: says how, and what such an end usually means. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"

/* What stands behind an end, as far as experience goes; a shell passes signals on as 128 + their number. */
static const struct {
	int sig;
	const char *meaning, *advice;
} ends[] = {
	{ SIGKILL,
	  "somebody killed it: a batch system at its limit, the memory killer, or a person",
	  "Look into the kernel's log (dmesg) and the batch system's for the reason." },
	{ SIGTERM, "it was asked to end: by a batch system at its time limit, or by a person",
	  "If it was the time limit: write checkpoints, and go on from the last." },
	{ SIGBUS, "memory behind a mapping was not there",
	  "With loader workers /dev/shm is often too small for the batches they pass: make it "
	  "larger (docker run --shm-size), or use fewer workers." },
	{ SIGSEGV, "native code went wrong", "python3 -X faulthandler shows the line of Python." },
	{ SIGABRT, "a library gave up", "The reason usually is in the last lines of its output." },
	{ SIGPIPE, "whoever read its output had gone", "Let the reader stay, or write to a file." },
	{ SIGXCPU, "its CPU time limit (ulimit -t) was reached", "Raise the limit." },
};

static int signal_of(const struct facts_run *r)
{
	return r->signal                                  ? r->signal
	       : r->exit_code > 128 && r->exit_code < 160 ? r->exit_code - 128
							  : 0;
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_run *r = &f->run;
	int sig = signal_of(r);
	/* Ctrl-C is no failure, and for lack of memory there is a finding that says more. */
	if (!r->has_exit || (!r->exit_code && !r->signal) || sig == SIGINT || r->out_of_memory)
		return false;
	ret->severity = SEVERITY_WARNING;
	ret->confidence = CONFIDENCE_SURE;
	finding_title(ret, "the job failed");
	const char *name = sig ? sigabbrev_np(sig) : NULL;
	if (name)
		finding_text(ret, "The job ended by SIG%s after %s", name, say(r->wall_s, "s").s);
	else
		finding_text(ret, "The job ended with exit status %d after %s", r->exit_code,
			     say(r->wall_s, "s").s);
	size_t len = strlen(ret->text);
	const char *meaning = ".";
	finding_advice(ret, "The reason usually is in the last lines of its output.");
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (ends[i].sig != sig)
			continue;
		meaning = ends[i].meaning;
		finding_advice(ret, "%s", ends[i].advice);
	}
	snprintf(ret->text + len, sizeof(ret->text) - len, "%s%s%s", *meaning == '.' ? "" : ": ",
		 meaning, *meaning == '.' ? "" : ".");
	if (r->signal)
		finding_evidence(ret, "signal", r->signal, "count", "wait4");
	else
		finding_evidence(ret, "exit status", r->exit_code, "count", "wait4");
	return true;
}

const struct analysis analysis_job_failed = {
	.id = "job-failed",
	.help = "the job ended with an error or by a signal (but for Ctrl-C)",
	.find = find,
};
