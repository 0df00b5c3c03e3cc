/*
 * The producer's end of a ring (inject/wire.h), for helpers of the recorder itself and for tests. Producers
 * inside the job have their own: spotter/mark.h and inject/python/spotter_mark.py.
 */
#ifndef SPOTTER_TRACERS_RING_WRITER_H
#define SPOTTER_TRACERS_RING_WRITER_H

#include <stdint.h>

#include "wire.h"

struct ring_writer {
	struct wire_header *header; /* the mapping */
	struct wire_record *records;
	uint64_t head;
	char path[256]; /* of its file, for tests */
};

/*
 * Make a ring in dir for (pid, tid), see struct wire_header. source is what it says of itself. 0 or -errno,
 * and nothing left behind. The thread that makes it is the one that writes.
 */
int ring_writer_open(struct ring_writer *w, const char *dir, uint32_t pid, uint32_t tid,
		     const char *source);
/* Unmap; the file stays for the consumer. */
void ring_writer_close(struct ring_writer *w);

/* Write one record, or drop it and count where the ring is full. */
void ring_writer_put(struct ring_writer *w, const struct wire_record *record);
/* A string, fact or notice, in pieces; the same. */
void ring_writer_text(struct ring_writer *w, uint16_t kind, uint32_t id, const char *text);

#endif
