/* What the host's files of /proc and /sys say; see host_parse.h. */
#include "sources/host_parse.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

int64_t host_scale(uint64_t v, uint64_t by)
{
	int64_t out;
	return __builtin_mul_overflow(v, by, &out) ? INT64_MAX : out;
}

static const char *next_line(const char *p)
{
	const char *end = strchr(p, '\n');
	return end ? end + 1 : p + strlen(p);
}

static const char *skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* Up to n numbers from p on; how many there were. */
static size_t numbers(const char *p, uint64_t *v, size_t n)
{
	size_t i = 0;
	while (i < n && io_parse_u64(&p, &v[i]))
		i++;
	return i;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* "cpu" or "cpuN" and a blank at *p: moves *p behind it. */
static bool cpu_label(const char **p, int *ret_cpu)
{
	const char *s = *p;
	uint64_t cpu;
	if (strncmp(s, "cpu", 3))
		return false;
	s += 3;
	if (*s == ' ') {
		*ret_cpu = -1;
	} else if (*s >= '0' && *s <= '9' && io_parse_u64(&s, &cpu) && cpu < HOST_CPUS_MAX &&
		   *s == ' ') {
		*ret_cpu = (int)cpu;
	} else {
		return false;
	}
	*p = s;
	return true;
}

/* Columns of /proc/stat, in order; guest and guest_nice follow and are already in user and nice. */
static const uint8_t stat_columns[] = { HOST_USER,   HOST_USER, HOST_SYSTEM, HOST_IDLE,
					HOST_IOWAIT, HOST_IRQ,  HOST_IRQ,    HOST_STEAL };

bool host_parse_cpu(const char **p, struct host_cpu_line *ret)
{
	while (!strncmp(*p, "cpu", 3)) {
		struct host_cpu_line line = { 0 };
		uint64_t v[sizeof(stat_columns)];
		const char *s = *p;
		bool ok = cpu_label(&s, &line.cpu);
		*p = next_line(*p);
		size_t n = ok ? numbers(s, v, sizeof(stat_columns)) : 0;
		if (n < 4)
			continue;
		for (size_t i = 0; i < n; i++) {
			line.ticks[stat_columns[i]] = add(line.ticks[stat_columns[i]], v[i]);
			line.have |= 1u << stat_columns[i];
		}
		*ret = line;
		return true;
	}
	return false;
}

bool host_parse_schedstat_version(const char *text, uint64_t *ret)
{
	return io_find_u64(text, "version", ret);
}

bool host_parse_schedstat(const char **p, int *ret_cpu, uint64_t *ret_delay_ns)
{
	enum { RUN_DELAY = 7, COLUMNS = 9 };
	while (**p) {
		const char *s = *p;
		uint64_t v[COLUMNS];
		int cpu;
		bool ok = cpu_label(&s, &cpu) && cpu >= 0 && numbers(s, v, COLUMNS) == COLUMNS;
		*p = next_line(*p);
		if (!ok)
			continue;
		*ret_cpu = cpu;
		*ret_delay_ns = v[RUN_DELAY];
		return true;
	}
	return false;
}

static void match_key(const char *line, struct host_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct host_key *k = &keys[i];
		if (k->have || *line != *k->key)
			continue;
		size_t len = strlen(k->key);
		if (strncmp(line, k->key, len))
			continue;
		const char *s = line + len;
		if (*s != ':' && *s != ' ' && *s != '\t')
			continue;
		s += *s == ':';
		k->have = io_parse_u64(&s, &k->value);
		return;
	}
}

void host_parse_keys(const char *text, struct host_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i].have = false;
	for (const char *line = text; *line; line = next_line(line))
		match_key(line, keys, n);
}

bool host_parse_pressure(const char *text, const char *line, uint64_t *ret_us)
{
	size_t len = strlen(line);
	for (const char *s = text; *s; s = next_line(s)) {
		if (strncmp(s, line, len) || s[len] != ' ')
			continue;
		const char *end = next_line(s), *total = strstr(s, " total=");
		if (!total || total >= end)
			return false;
		total += strlen(" total=");
		return io_parse_u64(&total, ret_us);
	}
	return false;
}

bool host_parse_decimal(const char *text, double *ret)
{
	const char *s = skip_blanks(text);
	uint64_t whole, part = 0;
	double scale = 1;
	if (!io_parse_u64(&s, &whole))
		return false;
	if (*s == '.') {
		s++;
		for (int digits = 0; *s >= '0' && *s <= '9' && digits < 15; s++, digits++) {
			part = part * 10 + (uint64_t)(*s - '0');
			scale *= 10;
		}
	}
	*ret = (double)whole + (double)part / scale;
	return true;
}

bool host_parse_disk(const char **p, struct host_disk_line *ret)
{
	enum { COLUMNS = 10 };
	while (**p) {
		const char *s = *p;
		uint64_t device[2], v[COLUMNS];
		*p = next_line(*p);
		if (!io_parse_u64(&s, &device[0]) || !io_parse_u64(&s, &device[1]))
			continue;
		s = skip_blanks(s);
		size_t len = strcspn(s, " \t\n");
		if (!len || numbers(s + len, v, COLUMNS) < COLUMNS)
			continue;
		*ret = (struct host_disk_line){
			.name = s,
			.name_len = len,
			.reads = v[0],
			.read_sectors = v[2],
			.read_ms = v[3],
			.writes = v[4],
			.write_sectors = v[6],
			.write_ms = v[7],
			.busy_ms = v[9],
		};
		return true;
	}
	return false;
}

bool host_is_partition(const char *disk, size_t disk_len, const char *part, size_t part_len)
{
	if (!disk_len || part_len <= disk_len || memcmp(disk, part, disk_len))
		return false;
	size_t i = disk_len;
	bool ends_in_digit = disk[disk_len - 1] >= '0' && disk[disk_len - 1] <= '9';
	if (ends_in_digit) {
		if (part[i] != 'p')
			return false;
		i++;
	}
	if (i == part_len)
		return false;
	for (; i < part_len; i++)
		if (part[i] < '0' || part[i] > '9')
			return false;
	return true;
}

bool host_parse_net(const char **p, struct host_net_line *ret)
{
	enum { COLUMNS = 16 };
	while (**p) {
		const char *s = skip_blanks(*p);
		const char *end = next_line(*p);
		uint64_t v[COLUMNS];
		*p = end;
		/* an alias ("eth0:1") holds a colon of its own: the name ends at the last one */
		const char *colon = NULL;
		for (const char *c = s; c < end && *c != ' '; c++)
			if (*c == ':')
				colon = c;
		if (!colon || colon == s || numbers(colon + 1, v, COLUMNS) < COLUMNS)
			continue;
		*ret = (struct host_net_line){
			.name = s,
			.name_len = (size_t)(colon - s),
			.received = v[0],
			.received_errors = v[2],
			.received_dropped = v[3],
			.sent = v[8],
			.sent_errors = v[10],
			.sent_dropped = v[11],
		};
		return true;
	}
	return false;
}

static bool cpu_range(const char **p, uint64_t *ret_first, uint64_t *ret_last)
{
	if (!io_parse_u64(p, ret_first))
		return false;
	*ret_last = *ret_first;
	if (**p != '-')
		return true;
	++*p;
	return **p != ' ' && io_parse_u64(p, ret_last) && *ret_last >= *ret_first;
}

int host_parse_cpulist(const char *text, uint64_t *bits, size_t words)
{
	memset(bits, 0, words * sizeof(*bits));
	const char *p = skip_blanks(text);
	while (*p && *p != '\n') {
		uint64_t first, last;
		if (!cpu_range(&p, &first, &last) || last >= words * 64)
			return -EINVAL;
		for (uint64_t cpu = first; cpu <= last; cpu++)
			bits[cpu / 64] |= 1ULL << (cpu % 64);
		if (*p == ',')
			p++;
		else if (*p && *p != '\n')
			return -EINVAL;
	}
	int n = 0;
	for (size_t i = 0; i < words; i++)
		n += __builtin_popcountll(bits[i]);
	return n;
}

static bool has_word(const char *line, const char *end, const char *word)
{
	size_t len = strlen(word);
	for (const char *s = line; (s = strstr(s, word)) && s < end; s += len)
		if (s > line && s[-1] == ' ' && (s[len] == ' ' || s[len] == '\n' || !s[len]))
			return true;
	return false;
}

bool host_parse_cpuinfo_hz(const char *text, double *ret_hz)
{
	double sum = 0;
	unsigned n = 0;
	bool measured = false, asked = false; /* the flags of one CPU are those of all */
	for (const char *s = text; *s; s = next_line(s)) {
		if (!asked && !strncmp(s, "flags", 5)) {
			measured = has_word(s, next_line(s), "aperfmperf");
			asked = true;
		}
		if (strncmp(s, "cpu MHz", 7))
			continue;
		const char *colon = s + strcspn(s, ":\n");
		double mhz;
		if (*colon == ':' && host_parse_decimal(colon + 1, &mhz)) {
			sum += mhz;
			n++;
		}
	}
	if (!measured || !n)
		return false;
	*ret_hz = sum / n * 1e6;
	return true;
}
