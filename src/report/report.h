/*
 * The report: what a recording says about a run, as text for people or as JSON for programs. Both
 * are made from one document (doc.h), described in doc/report-json.md.
 *
 * A report can be made of a recording that grows, that lost its recorder, or that is damaged: it then says so.
 */
#ifndef SPOTTER_REPORT_REPORT_H
#define SPOTTER_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "recording/recording.h"
#include "report/doc.h"

enum report_color {
	REPORT_COLOR_AUTO, /* on a terminal, unless NO_COLOR is set */
	REPORT_COLOR_ALWAYS,
	REPORT_COLOR_NEVER,
};

enum report_charset {
	REPORT_CHARSET_AUTO, /* Unicode where the locale is UTF-8, else ASCII */
	REPORT_CHARSET_UTF8,
	REPORT_CHARSET_ASCII,
};

struct report_options {
	bool json;
	bool all;      /* every process, all evidence of every finding */
	bool one_step; /* only this step and what happened during it */
	int64_t step;  /* its index */
	int width;     /* columns; 0: of the terminal, else COLUMNS, else 100 */
	enum report_color color;
	enum report_charset charset;
};

/* How text is to look on `out`: what the options leave open is the terminal's and the locale's. */
struct doc_text_options report_layout(FILE *out, const struct report_options *o);

/*
 * Print the report of the recording at path. 0, or -errno with words (rec_open's, -ENOENT for a step that
 * is not there); nothing is printed then.
 */
int report_print(FILE *out, const char *path, const struct report_options *o, struct err *e);

/* The same of an open recording; path is only for its name and size and may be NULL. */
int report_print_reader(FILE *out, struct rec_reader *r, const char *path,
			const struct report_options *o, struct err *e);

/*
 * Find what limits the run and store it in the recording at path, which w is still writing: flushes w, reads
 * it back with a reader of its own, replaces the findings. 0 or -errno.
 */
int report_store_findings(struct rec_writer *w, const char *path);

#endif
