/*
 * The helper process behind --steps-from: copies bytes, finds lines, writes steps to a ring. See tee.h.
 */
#ifndef SPOTTER_RECORD_TEE_HELPER_H
#define SPOTTER_RECORD_TEE_HELPER_H

#include <regex.h>
#include <stddef.h>
#include <stdint.h>

#include "tracers/ring_writer.h"

#define TEE_LINE_MAX 65536 /* of a longer line only the beginning is looked at */

struct tee_helper {
	int in, out; /* from the job, to where its output was going */
	int control; /* the recorder asks here whether all is forwarded */
	const regex_t *regex;
	const char *source; /* what the ring says of itself */
};

/* In a child after fork: never returns. */
_Noreturn void tee_helper_run(const struct tee_helper *h, const char *dir);

/* Finds lines in a stream of bytes and steps in lines. */
struct tee_matcher {
	const regex_t *regex;
	struct ring_writer *ring; /* NULL: nothing is kept */
	uint64_t last_ns;         /* of the last match; 0: none yet */
	int64_t count;
	size_t len;                  /* of the line so far; at most TEE_LINE_MAX */
	char line[TEE_LINE_MAX + 1]; /* with a NUL behind it while it is looked at */
};

void tee_matcher_add(struct tee_matcher *m, const char *data, size_t n, uint64_t now_ns);
void tee_matcher_end(struct tee_matcher *m, uint64_t now_ns); /* the last line may lack its end */

#endif
