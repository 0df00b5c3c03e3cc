/*
 * The live view as a document: what a recording says about its last moments. Built again at each refresh; only
 * ever reads the recording, so it works on one that has ended as well (its last moments, then).
 */
#ifndef SPOTTER_REPORT_TOP_H
#define SPOTTER_REPORT_TOP_H

#include "base/err.h"
#include "recording/recording.h"
#include "report/doc.h"

enum top_sort { TOP_SORT_CPU, TOP_SORT_RSS, TOP_SORT_IO };

struct top_options {
	enum top_sort sort;
	size_t rows; /* processes to show; 0: all */
};

/* 0 and a new document (doc_free), or -errno with words. path is only shown. */
int top_build(struct rec_reader *r, const char *path, const struct top_options *o, struct doc **ret,
	      struct err *e);

#endif
