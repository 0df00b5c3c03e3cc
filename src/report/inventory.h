/*
 * What a recording holds, counted: facts, entities by kind, metrics, kinds of events, what could not be read,
 * notices. Explains nothing.
 */
#ifndef SPOTTER_REPORT_INVENTORY_H
#define SPOTTER_REPORT_INVENTORY_H

#include "base/err.h"
#include "recording/recording.h"
#include "report/doc.h"

/* 0 and a new document (doc_free; r must outlive it), or -errno with words. path: for its name and size. */
int inventory_build(struct rec_reader *r, const char *path, struct doc **ret, struct err *e);

#endif
