/* Moments of a recording as people give them; see export_parse_time in export.h. */
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fmt.h"

/* ".25" behind the seconds, as ns; moves *p behind it. */
static uint64_t fraction(const char **p)
{
	uint64_t ns = 0, unit = NS_PER_S / 10;
	if (**p != '.')
		return 0;
	for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
		ns += unit * (uint64_t)(**p - '0');
	return ns;
}

/* A date and time in words to CLOCK_REALTIME. */
static int parse_real(const char *text, uint64_t *ret_ns)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *p = strptime(text, "%Y-%m-%d", &tm);
	if (!p)
		return -EINVAL;
	if (*p == 'T' || *p == ' ') {
		p = strptime(p + 1, "%H:%M", &tm);
		if (p && *p == ':')
			p = strptime(p + 1, "%S", &tm);
		if (!p)
			return -EINVAL;
	}
	uint64_t ns = fraction(&p);
	bool utc = *p == 'Z';
	p += utc;
	time_t s = utc ? timegm(&tm) : mktime(&tm);
	if (*p || s < 0)
		return -EINVAL;
	*ret_ns = (uint64_t)s * NS_PER_S + ns;
	return 0;
}

/* The monotonic stamp of a real one: the clocks' distance hardly changes, so a few steps settle it. */
static uint64_t mono_of_real(const struct rec_reader *r, uint64_t real)
{
	uint64_t t = rec_t0(r);
	for (int i = 0; i < 4; i++) {
		int64_t off = (int64_t)(real - rec_realtime_ns(r, t));
		if (off < 0 && (uint64_t)-off > t)
			return 0;
		t += (uint64_t)off;
	}
	return t;
}

int export_parse_time(const struct rec_reader *r, const char *text, uint64_t *ret_ns, struct err *e)
{
	uint64_t ns;
	bool from_end = *text == '-';
	if (!fmt_parse_duration(text + from_end, &ns)) {
		uint64_t t0 = rec_t0(r), t1 = rec_t1(r);
		*ret_ns = from_end ? (ns < t1 ? t1 - ns : 0)
				   : (ns < UINT64_MAX - t0 ? t0 + ns : UINT64_MAX);
		return 0;
	}
	if (!from_end && !parse_real(text, &ns)) {
		*ret_ns = mono_of_real(r, ns);
		return 0;
	}
	return err_set(e, EINVAL,
		       "'%.60s' is no time: give \"90s\" after the beginning, \"-30s\" before the "
		       "end, or \"2026-11-20 20:03:00\"",
		       text);
}
