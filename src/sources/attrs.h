/*
 * What is known of an entity beside its name, as the JSON object that rec_entity_attrs takes.
 *
 *	struct buf b = BUF_INIT;
 *	attrs_text(&b, "uuid", uuid);
 *	attrs_i64(&b, "memory_bytes", total);
 *	attrs_store(&b, w, entity); (frees b)
 */
#ifndef SPOTTER_SOURCES_ATTRS_H
#define SPOTTER_SOURCES_ATTRS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "recording/recording.h"

/* Keys are plain words; text may be anything (what is not UTF-8 becomes '?'). */
void attrs_text(struct buf *b, const char *key, const char *text);
void attrs_i64(struct buf *b, const char *key, int64_t value);
void attrs_f64(struct buf *b, const char *key, double value);
void attrs_bool(struct buf *b, const char *key, bool value);

void attrs_store(struct buf *b, struct rec_writer *w, uint32_t entity);

#endif
