/*
 * Analyses: pure functions from the facts of a run to findings. One file per analysis, one const table lists
 * them; adding one is a new file and one line in analyses.c. None knows files, terminals or other analyses.
 *
 * analyze_run asks each, lets the verdict weigh them (verdict.c), and gives them in order: the
 * first is what limits the run.
 */
#ifndef SPOTTER_ANALYZE_ANALYSIS_H
#define SPOTTER_ANALYZE_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/facts.h"

enum severity {
	SEVERITY_OK,      /* good news: healthy */
	SEVERITY_INFO,    /* worth knowing, nothing to do */
	SEVERITY_WARNING, /* costs something, or will */
	SEVERITY_LIMIT,   /* this is what limits the run */
};
const char *severity_name(enum severity severity); /* "ok", "info", "warning", "limit" */

enum confidence {
	CONFIDENCE_LIKELY, /* the numbers fit, other causes are possible */
	CONFIDENCE_SURE,   /* measured where it happens */
};
const char *confidence_name(enum confidence confidence);

/* One number that speaks for a finding. */
struct evidence {
	char what[80];      /* "input wait p50" */
	double value;       /* never NaN */
	const char *unit;   /* "s", "ratio", "cores", "bytes", "bytes/s", "count", "per_s" */
	const char *source; /* who measured it: "step hook", "/proc/pressure/io" */
};

#define FINDING_EVIDENCE_MAX 8

struct finding {
	const char *id;
	enum severity severity;
	enum confidence confidence;
	double loss;      /* share of the training time that it costs at most; NaN: not known */
	double gain;      /* times faster once it is gone, where that can be said; NaN: not known */
	char title[96];   /* "input: each step waits for its data" */
	char text[640];   /* a sentence or two for a tired person */
	char advice[640]; /* what to do; empty: nothing */
	struct evidence evidence[FINDING_EVIDENCE_MAX];
	size_t n_evidence;
};

#define FINDINGS_MAX 24

struct findings {
	struct finding v[FINDINGS_MAX];
	size_t n;
};

struct analysis {
	const char *id;   /* of its finding */
	const char *help; /* one line: when it is found */

	/*
	 * Weigh the facts: true and *ret filled if found, else false. ret comes with id set, everything else
	 * zero but loss and gain (NaN). so_far: findings of those before it in the table. Never NULL.
	 */
	bool (*find)(const struct run_facts *f, const struct findings *so_far, struct finding *ret);
};

extern const struct analysis *const analyses[]; /* NULL-terminated, in the order of asking */

/* Ask all, weigh, order. *ret needs no release. */
void analyze_run(const struct run_facts *f, struct findings *ret);

/* Settle which finding explains which, and put what limits the run first (verdict.c). */
void verdict_weigh(struct findings *all);

/* The finding with this id, or NULL. */
const struct finding *findings_get(const struct findings *all, const char *id);

/* Helpers for analyses. A NaN value is no evidence: nothing is added. */
void finding_evidence(struct finding *f, const char *what, double value, const char *unit,
		      const char *source);
/*
 * Text with numbers: printf's %s, %d and such, fed with say_... below. Truncates at a whole word.
 */
void finding_title(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_text(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_advice(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A number as words, to be used at once as an argument: `say(0.41, "ratio").s` is "41 %". */
struct said {
	char s[32];
};
struct said say(double value, const char *unit);

#endif
