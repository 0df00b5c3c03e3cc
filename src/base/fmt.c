/* Numbers for people; see fmt.h. */
#include "base/fmt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static void absent(struct buf *b)
{
	buf_addc(b, '-');
}

void fmt_number(struct buf *b, double v)
{
	if (isnan(v)) {
		absent(b);
		return;
	}
	double a = fabs(v);
	int decimals = a >= 99.95 || a == 0 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3;
	if (a != 0 && a < 0.0095)
		decimals = a < 0.00095 ? 5 : 4;
	char text[64];
	snprintf(text, sizeof(text), "%.*f", decimals, v);
	if (strchr(text, '.')) {
		char *end = text + strlen(text);
		while (end[-1] == '0')
			*--end = 0;
		if (end[-1] == '.')
			end[-1] = 0;
	}
	buf_adds(b, text);
}

void fmt_bytes(struct buf *b, double bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	if (isnan(bytes)) {
		absent(b);
		return;
	}
	size_t u = 0;
	while (fabs(bytes) >= 999.5 && u + 1 < sizeof(units) / sizeof(*units)) {
		bytes /= 1000;
		u++;
	}
	char text[64];
	snprintf(text, sizeof(text), "%.*f %s", u && fabs(bytes) < 9.95 ? 1 : 0, bytes, units[u]);
	buf_adds(b, text);
}

/* Minutes, hours and days: two units are enough. */
static void long_duration(struct buf *b, double s)
{
	uint64_t whole = (uint64_t)(s + 0.5);
	if (whole < 3600)
		buf_addf(b, "%u min %u s", (unsigned)(whole / 60), (unsigned)(whole % 60));
	else if (whole < 86400)
		buf_addf(b, "%u h %u min", (unsigned)(whole / 3600), (unsigned)(whole / 60 % 60));
	else
		buf_addf(b, "%u d %u h", (unsigned)(whole / 86400), (unsigned)(whole / 3600 % 24));
}

void fmt_duration(struct buf *b, double ns)
{
	if (isnan(ns)) {
		absent(b);
		return;
	}
	if (ns < 0) {
		buf_addc(b, '-');
		ns = -ns;
	}
	static const struct {
		double below, unit;
		const char *name;
	} scales[] = {
		{ 999.5, 1, "ns" },
		{ 999.5e3, 1e3, "us" },
		{ 999.5e6, 1e6, "ms" },
		{ 99.5e9, 1e9, "s" },
	};
	for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++) {
		if (ns < scales[i].below) {
			fmt_number(b, ns / scales[i].unit);
			buf_addf(b, " %s", scales[i].name);
			return;
		}
	}
	long_duration(b, ns / (double)NS_PER_S);
}

void fmt_share(struct buf *b, double ratio)
{
	if (isnan(ratio)) {
		absent(b);
		return;
	}
	double percent = ratio * 100;
	if (fabs(percent) >= 9.95 || percent == 0)
		buf_addf(b, "%.0f %%", percent);
	else
		buf_addf(b, "%.*f %%", fabs(percent) >= 0.995 ? 1 : 2, percent);
}

void fmt_count(struct buf *b, double count)
{
	if (isnan(count)) {
		absent(b);
		return;
	}
	if (fabs(count) < 100 && count != floor(count)) {
		buf_addf(b, "%.1f", count);
		return;
	}
	char digits[64];
	snprintf(digits, sizeof(digits), "%.0f", fabs(count));
	if (count < 0)
		buf_addc(b, '-');
	size_t n = strlen(digits);
	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			buf_addc(b, ',');
		buf_addc(b, digits[i]);
	}
}

static void fmt_frequency(struct buf *b, double hz)
{
	fmt_number(b, hz / 1e9);
	buf_adds(b, " GHz");
}

static void fmt_energy(struct buf *b, double uj)
{
	fmt_number(b, uj / 1e6);
	buf_adds(b, " J");
}

void fmt_unit(struct buf *b, double value, const char *unit)
{
	static const struct {
		const char *unit;
		void (*fmt)(struct buf *b, double value);
	} units[] = {
		{ "ns", fmt_duration }, { "bytes", fmt_bytes },  { "ratio", fmt_share },
		{ "count", fmt_count }, { "Hz", fmt_frequency }, { "uJ", fmt_energy },
	};
	if (isnan(value)) {
		absent(b);
		return;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!strcmp(units[i].unit, unit)) {
			units[i].fmt(b, value);
			return;
		}
	}
	fmt_number(b, value);
	buf_addf(b, " %s", unit);
}

void fmt_spark(struct buf *b, const double *values, int n, double max, int ascii)
{
	static const char *const blocks[2][8] = {
		{ "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588" },
		{ ".", ":", "-", "=", "+", "*", "%", "#" },
	};
	if (max <= 0) {
		for (int i = 0; i < n; i++)
			if (values[i] > max)
				max = values[i];
	}
	for (int i = 0; i < n; i++) {
		if (isnan(values[i])) {
			buf_addc(b, ' ');
			continue;
		}
		int level = max > 0 ? (int)(values[i] / max * 8) : 0;
		buf_adds(b, blocks[!!ascii][level < 0 ? 0 : level > 7 ? 7 : level]);
	}
}

/* A number and what follows it; 0, or -EINVAL if there is no number, or it is negative or not finite. */
static int split_number(const char *text, double *ret_value, const char **ret_unit)
{
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (end == text || errno || !isfinite(v) || v < 0)
		return -EINVAL;
	while (*end == ' ')
		end++;
	*ret_value = v;
	*ret_unit = end;
	return 0;
}

struct scale {
	const char *unit;
	double factor;
};

static int parse_scaled(const char *text, const struct scale *scales, uint64_t *ret)
{
	double v;
	const char *unit;
	int rc = split_number(text, &v, &unit);
	if (rc)
		return rc;
	for (; scales->unit; scales++) {
		if (strcmp(scales->unit, unit))
			continue;
		v *= scales->factor;
		if (v >= 18e18)
			return -EINVAL;
		*ret = (uint64_t)(v + 0.5);
		return 0;
	}
	return -EINVAL;
}

int fmt_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct scale scales[] = {
		{ "", 1e9 },   { "s", 1e9 },    { "ms", 1e6 },   { "us", 1e3 },    { "ns", 1 },
		{ "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 }, { NULL, 0 },
	};
	return parse_scaled(text, scales, ret_ns);
}

int fmt_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	static const struct scale scales[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "k", 1e3 },
		{ "kB", 1e3 },
		{ "K", 1e3 },
		{ "KB", 1e3 },
		{ "M", 1e6 },
		{ "MB", 1e6 },
		{ "G", 1e9 },
		{ "GB", 1e9 },
		{ "T", 1e12 },
		{ "TB", 1e12 },
		{ "KiB", 1024.0 },
		{ "MiB", 1048576.0 },
		{ "GiB", 1073741824.0 },
		{ "TiB", 1099511627776.0 },
		{ NULL, 0 },
	};
	return parse_scaled(text, scales, ret_bytes);
}
