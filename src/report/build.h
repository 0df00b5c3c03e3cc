/* Building the document of a report from facts and findings: one function per part. */
#ifndef SPOTTER_REPORT_BUILD_H
#define SPOTTER_REPORT_BUILD_H

#include "analyze/analysis.h"
#include "report/doc.h"
#include "report/report.h"

#define CHART_PARTS 60

struct build {
	struct doc_node *root;
	const struct run_facts *f;
	const struct findings *findings;
	const struct report_options *o;
	const char *path; /* of the recording; NULL: not known */
};

/* What ran and how it ended; `run` and `recording`. */
void build_head(struct build *b);
/* steps, evaluation, input_wait, checkpoints, gc. */
void build_steps(struct build *b);
/* cpu, memory, io, energy, gpus. */
void build_machine(struct build *b);
/* findings, without their place in the text; returns the array. */
const struct doc_node *build_findings(struct build *b);
/* missing: what is not known, and why; returns the array. */
const struct doc_node *build_missing(struct build *b);
/* self: what spotter cost. */
void build_self(struct build *b);
/* processes: every process of the job. */
int build_processes(struct build *b);
/* step: one step and what happened during it; -ENOENT if there is none of that index. */
int build_step(struct build *b, struct err *e);

/* How long a part of a chart over the run is. */
static inline double chart_seconds(const struct run_facts *f)
{
	return f->run.wall_s / CHART_PARTS;
}

/* The recording's evidence as JSON array text into out; for storing findings. */
int build_evidence_json(const struct finding *finding, struct buf *out);

#endif
