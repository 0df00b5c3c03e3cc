/*
 * Records of a ring (inject/wire.h) turned into what a recording holds. Knows nothing of files or processes:
 * it is given records, however they were obtained, and calls a sink. What producers write is not trusted: a
 * record that makes no sense is counted as lost, and nothing a ring contains can do worse than that.
 */
#ifndef SPOTTER_TRACERS_WIRE_DECODE_H
#define SPOTTER_TRACERS_WIRE_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "recording/recording.h"
#include "wire.h"

/* Where decoded things go. All text is valid UTF-8 without control characters, and NUL-terminated. */
struct wire_sink {
	/* One row of a track; columns called name hold what string() returned. */
	void (*event)(void *ctx, enum track_kind kind, const int64_t *row, int ncolumns);
	/* A name: returns its id in the recording, 0 if it cannot be kept. */
	uint32_t (*string)(void *ctx, const char *text, size_t len);
	void (*fact)(void *ctx, const char *key, const char *value);
	void (*notice)(void *ctx, uint64_t t_ns, const char *text);
};

struct wire_decoder {
	struct map names;   /* the producer's id -> the recording's */
	struct buf text;    /* pieces of a text so far */
	uint16_t text_kind; /* 0: none has begun */
	uint64_t records;   /* decoded, pieces of text included */
	uint64_t lost;      /* not understood */
};

void wire_decoder_init(struct wire_decoder *d);
void wire_decoder_free(struct wire_decoder *d);

/* Decode n records that follow what was decoded before; none may end later than now_ns (plus a second). */
void wire_decode(struct wire_decoder *d, const struct wire_record *records, size_t n,
		 uint64_t now_ns, const struct wire_sink *sink, void *ctx);

/* Make text fit to be shown: bytes that are no UTF-8 and control characters become '?'. */
void wire_clean_text(char *text, size_t len);

#endif
