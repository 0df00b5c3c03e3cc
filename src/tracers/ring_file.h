/*
 * The consumer's end of one ring file (inject/wire.h).
 *
 * It reads with pread and never maps: the file belongs to the job, which may cut or rewrite it at any time,
 * and a mapping would then bring SIGBUS to the recorder. What the header says is checked at opening and the
 * counters at each read; a ring that makes no sense is given up with -EBADMSG, once and for ever.
 */
#ifndef SPOTTER_TRACERS_RING_FILE_H
#define SPOTTER_TRACERS_RING_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct ring_file {
	int fd;
	uint32_t capacity, pid, tid;
	uint64_t start_ns, pid_ns;
	uint64_t head; /* as of the last ring_file_look */
	uint64_t tail; /* read so far */
	uint64_t dropped, cost_ns;
};

/*
 * Open dirfd/name. 0; -EAGAIN if its producer has not finished making it; -EBADMSG if it is no ring or one
 * of another version; or what open said. *ret is untouched on failure.
 */
int ring_file_open(int dirfd, const char *name, struct ring_file *ret);
/* The same for an open descriptor, which is taken over only on success. */
int ring_file_adopt(int fd, struct ring_file *ret);
void ring_file_close(struct ring_file *r);

/* Read the producer's counters. Returns how many records wait (0 or more), or -EBADMSG. */
int64_t ring_file_look(struct ring_file *r);

/*
 * Copy up to max waiting records that stand `skip` behind the tail; returns how many (0: no more), or
 * -EBADMSG. Where the processor may reorder loads or stores, ring_file_order must come between look and this.
 */
int64_t ring_file_peek(const struct ring_file *r, uint64_t skip, struct wire_record *ret,
		       size_t max);

/* The first n waiting records were taken: tell the producer. */
void ring_file_advance(struct ring_file *r, uint64_t n);

/* Everything stored before a head that was seen is seen from here on, on every processor. */
void ring_file_order(void);

#endif
