/*
 * Values as machines read them: CSV cells, JSON scalars, times, names of entities. Everything is appended to
 * a buf at full precision: what was exported reads back as the same number.
 */
#ifndef SPOTTER_EXPORT_TEXT_H
#define SPOTTER_EXPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "recording/recording.h"

/* A cell by RFC 4180: quoted only where it must be. NULL is an empty cell. */
void text_csv(struct buf *b, const char *s);

/* A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. NULL is null. */
void text_json(struct buf *b, const char *s);

void text_i64(struct buf *b, int64_t value);

/* The shortest decimal that reads back as the same double. NaN adds nothing; an infinity is 1e999. */
void text_f64(struct buf *b, double value);

/*
 * "2026-11-20T20:03:00.123456789Z", the real time of a moment of the recording; nothing where the recording does
 * not say what time it was.
 */
void text_time(struct buf *b, const struct rec_reader *r, uint64_t t_ns);

/*
 * What people call an entity, short and mostly unique: "host", "job", "cpu3", "gpu0", "python3[4711]" for a
 * process or thread, else its name.
 */
void text_entity(struct buf *b, const struct rec_entity_info *e);

/* Does name match one of a comma-separated list of names and globs ("cpu.*,memory.rss")? */
bool text_in_list(const char *list, const char *name);

#endif
