/*
 * A stream of output with a buffer in front. Text is added to `text` with the buf calls; out_step writes it
 * when enough is together. After the first failure nothing more is written and every call returns it.
 */
#ifndef SPOTTER_EXPORT_OUT_H
#define SPOTTER_EXPORT_OUT_H

#include <stdint.h>

#include "base/buf.h"

struct out {
	struct buf text;
	int fd;         /* owned by the caller */
	uint64_t bytes; /* written so far */
	int rc;         /* 0 or the first -errno; -EPIPE: nobody reads any more */
};

void out_init(struct out *o, int fd);
void out_release(struct out *o); /* what was not written is dropped */

int out_step(struct out *o); /* write if there is much */
int out_flush(struct out *o);

#endif
