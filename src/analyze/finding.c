/* Making and finding findings; see analysis.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"
#include "base/fmt.h"

const struct threshold thresholds[TH__COUNT] = {
#define T(nm, val, y) [TH_##nm] = { .name = #nm, .value = val, .why = y },
	THRESHOLDS(T)
#undef T
};

static const char *const severities[] = {
	[SEVERITY_OK] = "ok",
	[SEVERITY_INFO] = "info",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_LIMIT] = "limit",
};

const char *severity_name(enum severity severity)
{
	return severities[severity];
}

const char *confidence_name(enum confidence confidence)
{
	return confidence == CONFIDENCE_SURE ? "sure" : "likely";
}

const struct finding *findings_get(const struct findings *all, const char *id)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->v[i].id, id))
			return &all->v[i];
	return NULL;
}

void finding_evidence(struct finding *f, const char *what, double value, const char *unit,
		      const char *source)
{
	if (isnan(value) || f->n_evidence == FINDING_EVIDENCE_MAX)
		return;
	struct evidence *e = &f->evidence[f->n_evidence++];
	snprintf(e->what, sizeof(e->what), "%s", what);
	e->value = value;
	e->unit = unit;
	e->source = source;
}

static void write_text(char *into, size_t cap, const char *fmt, va_list ap)
{
	int n = vsnprintf(into, cap, fmt, ap);
	if (n < 0 || (size_t)n < cap)
		return;
	char *blank = strrchr(into, ' ');
	if (blank)
		*blank = 0;
}

void finding_title(struct finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_text(f->title, sizeof(f->title), fmt, ap);
	va_end(ap);
}

void finding_text(struct finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_text(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void finding_advice(struct finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	write_text(f->advice, sizeof(f->advice), fmt, ap);
	va_end(ap);
}

static void say_bytes_per_s(struct buf *b, double v)
{
	fmt_bytes(b, v);
	buf_adds(b, "/s");
}

static void say_seconds(struct buf *b, double v)
{
	if (v == 0) {
		buf_adds(b, "0 s");
		return;
	}
	fmt_duration(b, v * 1e9);
}

static void say_cores(struct buf *b, double v)
{
	if (v > 0 && v < 0.01) {
		buf_adds(b, "<0.01");
		return;
	}
	/* Two decimals are plenty for cores and for factors. */
	fmt_number(b, v >= 0.1 && v < 10 ? round(v * 100) / 100 : v);
}

static void say_per_s(struct buf *b, double v)
{
	fmt_number(b, v);
	buf_adds(b, "/s");
}

static void say_watts(struct buf *b, double v)
{
	fmt_number(b, v);
	buf_adds(b, " W");
}

static void say_joules(struct buf *b, double v)
{
	fmt_number(b, v);
	buf_adds(b, " J");
}

static void say_celsius(struct buf *b, double v)
{
	fmt_number(b, v);
	buf_adds(b, " C");
}

static void say_ms(struct buf *b, double v)
{
	fmt_duration(b, v * 1e6);
}

static const struct {
	const char *unit;
	void (*say)(struct buf *b, double v);
} units[] = {
	{ "s", say_seconds },       { "ms", say_ms },
	{ "bytes", fmt_bytes },     { "bytes/s", say_bytes_per_s },
	{ "ratio", fmt_share },     { "cores", say_cores },
	{ "count", fmt_count },     { "per_s", say_per_s },
	{ "W", say_watts },         { "J", say_joules },
	{ "celsius", say_celsius },
};

struct said say(double value, const char *unit)
{
	struct said said = { "-" };
	struct buf b = BUF_INIT;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(units[i].unit, unit))
			units[i].say(&b, value);
	if (!b.len)
		fmt_unit(&b, value, unit);
	if (!b.failed)
		snprintf(said.s, sizeof(said.s), "%s", b.data);
	buf_free(&b);
	return said;
}
