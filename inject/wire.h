/*
 * The wire: how code inside the training process tells the recorder what happens.
 *
 * Each producing thread owns one ring, a file in the directory named by the environment variable SPOTTER_DIR
 * (on tmpfs), called PID.TID.N.ring, mapped shared by both sides. It outlives the job, so a killed job keeps
 * its trace. One producer, one consumer, no locks, no system calls while recording. When the ring is full
 * the producer drops the record and counts it.
 *
 * Byte order is the host's; both sides run on one host. This header needs no more than a compiler, and is the
 * truth for three producers: the Python step hook, spotter/mark.h and (later) the injected library.
 *
 * A producer writes a record, then publishes it by a release store of head + 1 (plain store in Python: the
 * consumer issues membarrier(2) between reading head and reading records where the CPU may reorder stores).
 */
#ifndef SPOTTER_WIRE_H
#define SPOTTER_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WIRE_DIR_ENV      "SPOTTER_DIR"
#define WIRE_MAGIC        0x474e495254505331ULL /* "1SPTRING" in memory, little endian */
#define WIRE_VERSION      1
#define WIRE_HEADER_BYTES 4096 /* the first record lies here */
#define WIRE_RECORD_BYTES 64
#define WIRE_CAPACITY     4096 /* records, what producers here use; any power of two is legal */
#define WIRE_CAPACITY_MAX (1 << 20) /* the consumer refuses more */
#define WIRE_NONE         INT64_MIN /* an argument without a value (REC_NONE) */

struct wire_header {
	uint64_t magic; /* written last: the ring is not ready before */
	uint32_t version;
	uint32_t header_bytes; /* WIRE_HEADER_BYTES */
	uint32_t record_bytes; /* WIRE_RECORD_BYTES */
	uint32_t capacity;     /* records, a power of two */
	/*
	 * As the producer sees them (its own pid namespace). pid 0: the producer is no process of the job, what
	 * is in here is about the job as a whole. tid 0: of any thread of the process, one after the other.
	 */
	uint32_t pid, tid;
	uint64_t start_ns; /* CLOCK_MONOTONIC when the ring was made */
	uint64_t pid_ns;   /* inode of the producer's /proc/self/ns/pid; 0 unknown */
	uint8_t pad0[16];
	/* offset 64: the producer's line */
	uint64_t head;    /* records ever published */
	uint64_t dropped; /* records that found the ring full */
	uint64_t cost_ns; /* cost to the job so far, as the producer estimates it; 0 unknown */
	uint8_t pad1[40];
	/* offset 128: the consumer's line */
	uint64_t tail; /* records consumed */
	uint8_t pad2[56];
};

/*
 * Kinds below 100 are the tracks of recording/tracks.def in their order + 1: t and dur, and the further
 * columns of the track in arg[0..]. A column called `name` holds an id given by an earlier WIRE_STRING.
 */
enum wire_kind {
	WIRE_STEP = 1,  /* arg: index, phase (0 train, 1 evaluation), epoch, batch, input_wait ns */
	WIRE_EPOCH = 2, /* arg: index, phase */
	WIRE_CHECKPOINT = 3, /* arg: bytes */
	WIRE_GC = 4,         /* arg: generation, collected */
	WIRE_RANGE = 5,      /* arg: name id, depth */
	WIRE_MARK = 6,       /* arg: name id, value */

	WIRE_STRING = 100, /* aux: id; 40 bytes of text in arg; flags: bytes here | WIRE_MORE */
	WIRE_FACT = 101, /* the same pieces; text is "key=value", about the job ("torch=1.13.0") */
	WIRE_NOTICE = 102, /* the same pieces; text is a sentence for people */
};

/*
 * A step with dur 0: its begin is not known; it counts as a step, but has no place among step times.
 * A GC pause with generation WIRE_NONE: several short pauses together, dur and collected are sums.
 * The first record of a ring is the fact "hook=NAME": who speaks here ("torch hook", "marks", "regex 'X'"),
 * which becomes the source of the steps. Of several sources of steps in one job, the most explicit one is
 * kept (regex, then marks, then torch hook) and steps of the others are ignored.
 */

#define WIRE_TEXT_BYTES 40
#define WIRE_MORE       0x8000 /* in flags: the text goes on in the next record of this ring */

struct wire_record {
	uint64_t t_ns;   /* start, CLOCK_MONOTONIC */
	uint64_t dur_ns; /* 0: an instant */
	uint16_t kind;
	uint16_t flags;
	uint32_t aux;
	int64_t arg[5]; /* WIRE_NONE where there is no value */
};

_Static_assert(offsetof(struct wire_header, head) == 64, "the producer's line");
_Static_assert(offsetof(struct wire_header, tail) == 128, "the consumer's line");
_Static_assert(sizeof(struct wire_header) == 192, "three lines");
_Static_assert(sizeof(struct wire_record) == WIRE_RECORD_BYTES, "one line");

#endif
