/* Records of a ring turned into rows, names, facts and notices; see wire_decode.h. */
#include "tracers/wire_decode.h"

#include <string.h>

#include "base/clock.h"

#define NAMES_MAX 65536 /* per ring */
#define TEXT_MAX  8192  /* bytes of one text; what is longer is cut */
#define KEY_MAX   64
#define ARGS      5

static const uint16_t track_of_kind[] = {
	[WIRE_STEP] = TRACK_STEP, [WIRE_EPOCH] = TRACK_EPOCH, [WIRE_CHECKPOINT] = TRACK_CHECKPOINT,
	[WIRE_GC] = TRACK_GC,     [WIRE_RANGE] = TRACK_RANGE, [WIRE_MARK] = TRACK_MARK,
};

void wire_decoder_init(struct wire_decoder *d)
{
	memset(d, 0, sizeof(*d));
	map_init(&d->names);
	buf_init(&d->text);
}

void wire_decoder_free(struct wire_decoder *d)
{
	map_free(&d->names);
	buf_free(&d->text);
}

/* Bytes of the UTF-8 character at p (n bytes are left), or 0 if it is none. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char first, last; /* of the first byte */
		unsigned char low, high;   /* of the second */
		unsigned char len;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (*p < forms[i].first || *p > forms[i].last)
			continue;
		if (forms[i].len > n || p[1] < forms[i].low || p[1] > forms[i].high)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++)
			if ((p[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

void wire_clean_text(char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)text[i];
		size_t n = c < 0x80 ? 0 : utf8_length((unsigned char *)text + i, len - i);
		if (n) {
			i += n;
			continue;
		}
		if (c < 0x20 || c >= 0x7f)
			text[i] = '?';
		i++;
	}
}

/* "key=value" to the sink; false if it is none. */
static bool give_fact(char *text, const struct wire_sink *sink, void *ctx)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = strspn(text, allowed);
	if (!n || n > KEY_MAX || text[n] != '=')
		return false;
	text[n] = 0;
	sink->fact(ctx, text, text + n + 1);
	return true;
}

/* The text is complete. */
static void give_text(struct wire_decoder *d, const struct wire_record *r,
		      const struct wire_sink *sink, void *ctx)
{
	bool good = !d->text.failed;
	if (good && r->kind == WIRE_STRING) {
		uint64_t known;
		good = d->names.count < NAMES_MAX || map_get(&d->names, r->aux, &known);
		uint32_t id = good ? sink->string(ctx, d->text.data, d->text.len) : 0;
		good = id && !map_put(&d->names, r->aux, id);
	} else if (good && r->kind == WIRE_FACT) {
		good = give_fact(d->text.data, sink, ctx);
	} else if (good) {
		sink->notice(ctx, r->t_ns, d->text.data);
	}
	d->lost += !good;
}

static void add_text(struct wire_decoder *d, const struct wire_record *r,
		     const struct wire_sink *sink, void *ctx)
{
	size_t n = r->flags & ~WIRE_MORE;
	if (d->text_kind && d->text_kind != r->kind)
		d->lost++; /* the text before was never finished */
	if (d->text_kind != r->kind)
		buf_clear(&d->text);
	if (n > WIRE_TEXT_BYTES) {
		d->lost++;
		d->text_kind = 0;
		return;
	}
	if (d->text.len + n <= TEXT_MAX)
		buf_add(&d->text, r->arg, n);
	d->text_kind = r->kind;
	if (r->flags & WIRE_MORE)
		return;
	d->text_kind = 0;
	/* A NUL in the middle ends it for everybody. */
	d->text.len = strnlen(d->text.data, d->text.len);
	wire_clean_text(d->text.data, d->text.len);
	give_text(d, r, sink, ctx);
	buf_clear(&d->text);
}

static bool time_is_sane(const struct wire_record *r, uint64_t now_ns)
{
	uint64_t latest = now_ns + NS_PER_S;
	return r->t_ns && r->t_ns <= latest && r->dur_ns <= latest - r->t_ns;
}

/* The column of a track that holds a name, as an index into arg; -1: none. */
static int name_argument(enum track_kind kind)
{
	return kind == TRACK_RANGE ? RANGE_NAME - 2 : kind == TRACK_MARK ? MARK_NAME - 2 : -1;
}

static bool add_event(struct wire_decoder *d, const struct wire_record *r, uint64_t now_ns,
		      const struct wire_sink *sink, void *ctx)
{
	int64_t row[TRACK_COLUMNS_MAX];
	if (!r->kind || r->kind >= sizeof(track_of_kind) / sizeof(*track_of_kind) ||
	    !time_is_sane(r, now_ns))
		return false;
	enum track_kind kind = track_of_kind[r->kind];
	int ncolumns = track_ncolumns(kind), name = name_argument(kind);
	row[EV_T] = (int64_t)r->t_ns;
	row[EV_DUR] = (int64_t)r->dur_ns;
	for (int i = 0; i + 2 < ncolumns; i++)
		row[i + 2] = i < ARGS ? r->arg[i] : REC_NONE;
	if (name >= 0) {
		uint64_t id;
		if (!map_get(&d->names, (uint64_t)r->arg[name], &id))
			return false;
		row[name + 2] = (int64_t)id;
	}
	sink->event(ctx, kind, row, ncolumns);
	return true;
}

void wire_decode(struct wire_decoder *d, const struct wire_record *records, size_t n,
		 uint64_t now_ns, const struct wire_sink *sink, void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		const struct wire_record *r = &records[i];
		if (r->kind >= WIRE_STRING && r->kind <= WIRE_NOTICE)
			add_text(d, r, sink, ctx);
		else if (!add_event(d, r, now_ns, sink, ctx))
			d->lost++;
		d->records++;
	}
}
