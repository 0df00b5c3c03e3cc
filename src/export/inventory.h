/*
 * What a recording holds, counted: facts, entities by kind, metrics, tracks, what could not be read, notices. One
 * JSON document, from which the text of `spotter info` is made as well.
 */
#ifndef SPOTTER_EXPORT_INVENTORY_H
#define SPOTTER_EXPORT_INVENTORY_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "recording/recording.h"

/* 0 and a new reference, or -errno with words. path: for its name and size. */
int inventory_make(struct rec_reader *r, const char *path, json_t **ret, struct err *e);

/* The document as text for people. */
void inventory_text(const json_t *inventory, struct buf *b);

#endif
