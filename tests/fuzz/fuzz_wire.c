/*
 * libFuzzer: a ring with any content. The first byte says whether the header is taken as it comes or made
 * sane (then its counters come from the input, and records are reached); the rest is the file.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "tracers/ring_file.h"
#include "tracers/wire_decode.h"

#define ROUNDS 4 /* drains of one input */

static int64_t names;

static void check_text(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			abort();
}

static void on_event(void *ctx, enum track_kind kind, const int64_t *row, int ncolumns)
{
	if (ncolumns != track_ncolumns(kind) || row[EV_T] <= 0 || row[EV_DUR] < 0 ||
	    row[EV_T] > INT64_MAX - row[EV_DUR])
		abort();
	if (kind == TRACK_MARK && (row[MARK_NAME] < 1 || row[MARK_NAME] > names))
		abort();
}

static uint32_t on_string(void *ctx, const char *text, size_t len)
{
	if (strlen(text) != len)
		abort();
	check_text(text);
	return (uint32_t)++names;
}

static void on_fact(void *ctx, const char *key, const char *value)
{
	if (!*key || strchr(key, '='))
		abort();
	check_text(key);
	check_text(value);
}

static void on_notice(void *ctx, uint64_t t_ns, const char *text)
{
	check_text(text);
}

static const struct wire_sink sink = {
	.event = on_event, .string = on_string, .fact = on_fact, .notice = on_notice
};

/* A header that is accepted, its capacity no more than there are records, its counters near the end. */
static void make_sane(unsigned char *file, size_t n)
{
	struct wire_header h;
	memcpy(&h, file, sizeof(h));
	uint32_t records = (uint32_t)((n - WIRE_HEADER_BYTES) / WIRE_RECORD_BYTES), capacity = 1;
	while (capacity * 2 <= records)
		capacity *= 2;
	h.magic = WIRE_MAGIC;
	h.version = WIRE_VERSION;
	h.header_bytes = WIRE_HEADER_BYTES;
	h.record_bytes = WIRE_RECORD_BYTES;
	h.capacity = capacity;
	h.tail %= 1000;
	h.head = h.tail + h.head % (capacity + 1);
	memcpy(file, &h, sizeof(h));
}

static void drain(struct ring_file *r, struct wire_decoder *d)
{
	struct wire_record records[7];
	int64_t n = ring_file_look(r);
	while (n > 0 && (n = ring_file_peek(r, 0, records, 7)) > 0) {
		uint64_t before = d->records;
		wire_decode(d, records, (size_t)n, clock_mono_ns(), &sink, NULL);
		ring_file_advance(r, (uint64_t)n);
		if (d->records != before + (uint64_t)n)
			abort();
	}
}

/* The next drain finds one more round of records, as if a producer had gone on. */
static void go_on(int fd, const struct ring_file *r)
{
	uint64_t head = r->tail + r->capacity;
	if (pwrite(fd, &head, sizeof(head), offsetof(struct wire_header, head)) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The input holds no padding: 192 bytes of header, then records. */
	static unsigned char file[WIRE_HEADER_BYTES + 64 * WIRE_RECORD_BYTES];
	static int fd = -1;
	struct wire_decoder d;
	struct ring_file r;
	if (size < 1 + sizeof(struct wire_header))
		return 0;
	size_t records = size - 1 - sizeof(struct wire_header);
	if (records > sizeof(file) - WIRE_HEADER_BYTES)
		records = sizeof(file) - WIRE_HEADER_BYTES;
	memset(file, 0, sizeof(file));
	memcpy(file, data + 1, sizeof(struct wire_header));
	memcpy(file + WIRE_HEADER_BYTES, data + 1 + sizeof(struct wire_header), records);
	size_t n = WIRE_HEADER_BYTES + records;
	if ((data[0] & 1) && records >= WIRE_RECORD_BYTES)
		make_sane(file, n);
	if (fd < 0)
		fd = memfd_create("ring", 0);
	if (ftruncate(fd, 0) || pwrite(fd, file, n, 0) != (ssize_t)n)
		abort();
	names = 0;
	wire_decoder_init(&d);
	if (!ring_file_adopt(fd, &r)) {
		drain(&r, &d);
		for (int i = 1; i < ROUNDS; i++) {
			go_on(fd, &r);
			drain(&r, &d);
		}
	}
	wire_decoder_free(&d);
	return 0;
}
