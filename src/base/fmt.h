/*
 * Numbers for people. Each appends to a buf, with its unit, in at most about 9 columns.
 * A NaN is written as "-": absent, and the caller says why nearby.
 */
#ifndef SPOTTER_BASE_FMT_H
#define SPOTTER_BASE_FMT_H

#include <stdint.h>

#include "base/buf.h"

void fmt_bytes(struct buf *b, double bytes);  /* "1.4 GB" (powers of 1000), "512 B" */
void fmt_duration(struct buf *b, double ns);  /* "83 ms", "1.25 s", "5 min 20 s", "40 us" */
void fmt_share(struct buf *b, double ratio);  /* 0.413 -> "41 %", 0.0041 -> "0.41 %" */
void fmt_count(struct buf *b, double count);  /* "3,840", "12.5" below 100 and not whole */
void fmt_number(struct buf *b, double value); /* three significant digits: "1.94", "83", "0.012" */
void fmt_unit(struct buf *b, double value, const char *unit); /* by a metric's unit */

/*
 * n values as one line of block characters that spans the range 0..max (max <= 0: the largest value);
 * NaN is a blank. ascii: characters " .:-=+*#" instead.
 */
void fmt_spark(struct buf *b, const double *values, int n, double max, int ascii);

/* "10ms", "1s", "0.5", "2m", "1h": seconds where no unit is given. 0 or -EINVAL. */
int fmt_parse_duration(const char *text, uint64_t *ret_ns);
/* "10", "64k", "1.5G", "500MB" (powers of 1000), "1GiB" (of 1024). 0 or -EINVAL. */
int fmt_parse_bytes(const char *text, uint64_t *ret_bytes);

#endif
