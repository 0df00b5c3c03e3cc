/* What the files of /proc/PID say; see tasks_parse.h. */
#include "sources/tasks_parse.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/io.h"

#define PF_KTHREAD 0x00200000

/* Skip n fields that are separated by blanks; some are negative. */
static void skip(const char **p, int n)
{
	while (n-- > 0) {
		*p += strspn(*p, " ");
		*p += strcspn(*p, " \n");
	}
}

static bool pid_from(const char **p, pid_t *ret)
{
	uint64_t v;
	if (!io_parse_u64(p, &v) || v > INT_MAX)
		return false;
	*ret = (pid_t)v;
	return true;
}

/* The name is in brackets, may hold anything but NUL, and ends at the last ") ". */
static const char *comm_from(const char *p, char comm[16])
{
	const char *end = strrchr(p, ')');
	p += strspn(p, " ");
	if (*p != '(' || !end || end < p)
		return NULL;
	size_t len = (size_t)(end - p - 1);
	if (len > 15)
		len = 15;
	memcpy(comm, p + 1, len);
	comm[len] = 0;
	return end + 1;
}

bool task_parse_stat(const char *text, struct task_stat *ret)
{
	struct task_stat s = { 0 };
	const char *p = text;
	uint64_t flags;
	if (!pid_from(&p, &s.pid))
		return false;
	p = comm_from(p, s.comm);
	if (!p || *p != ' ' || !p[1] || p[2] != ' ')
		return false;
	s.state = p[1];
	p += 2;
	if (!pid_from(&p, &s.ppid))
		return false;
	skip(&p, 4); /* group, session, terminal and its group */
	bool ok = io_parse_u64(&p, &flags) && io_parse_u64(&p, &s.minor_faults) &&
		  io_parse_u64(&p, &s.reaped_minor_faults) && io_parse_u64(&p, &s.major_faults) &&
		  io_parse_u64(&p, &s.reaped_major_faults) && io_parse_u64(&p, &s.user) &&
		  io_parse_u64(&p, &s.system) && io_parse_u64(&p, &s.reaped_user) &&
		  io_parse_u64(&p, &s.reaped_system);
	skip(&p, 2); /* priority and nice */
	ok = ok && io_parse_u64(&p, &s.nthreads);
	skip(&p, 1);
	if (!ok || !io_parse_u64(&p, &s.start))
		return false;
	s.kernel = flags & PF_KTHREAD;
	*ret = s;
	return true;
}

bool task_parse_statm(const char *text, uint64_t *ret_rss_pages)
{
	const char *p = text;
	uint64_t size;
	return io_parse_u64(&p, &size) && io_parse_u64(&p, ret_rss_pages);
}

bool task_parse_io(const char *text, struct task_io *ret)
{
	struct task_io io;
	if (!io_find_u64(text, "rchar:", &io.read) || !io_find_u64(text, "wchar:", &io.written) ||
	    !io_find_u64(text, "read_bytes:", &io.disk_read) ||
	    !io_find_u64(text, "write_bytes:", &io.disk_written))
		return false;
	*ret = io;
	return true;
}

bool task_parse_schedstat(const char *text, uint64_t *ret_run, uint64_t *ret_delay,
			  uint64_t *ret_runs)
{
	const char *p = text;
	uint64_t run, delay, runs;
	if (!io_parse_u64(&p, &run) || !io_parse_u64(&p, &delay) || !io_parse_u64(&p, &runs))
		return false;
	*ret_run = run;
	*ret_delay = delay;
	*ret_runs = runs;
	return true;
}

/* "SigIgn:\t0000000001001000": is SIGCHLD, the 17th on all but a few machines, among them? */
static bool has_sigchld(const char *hex)
{
	hex += strspn(hex, " \t");
	size_t len = strspn(hex, "0123456789abcdef");
	if (len < 5)
		return false;
	char digit = hex[len - 5];
	return (digit <= '9' ? digit - '0' : digit - 'a' + 10) & 1;
}

static unsigned count_numbers(const char *p)
{
	uint64_t v;
	unsigned n = 0;
	while (io_parse_u64(&p, &v))
		n++;
	return n;
}

static const struct {
	const char *key;
	size_t len, offset;
	uint64_t unit;
} status_numbers[] = {
	{ "VmHWM", 5, offsetof(struct task_status, peak_rss), 1024 },
	{ "VmRSS", 5, offsetof(struct task_status, rss), 1024 },
	{ "VmSwap", 6, offsetof(struct task_status, swapped), 1024 },
	{ "voluntary_ctxt_switches", 23, offsetof(struct task_status, voluntary), 1 },
	{ "nonvoluntary_ctxt_switches", 26, offsetof(struct task_status, involuntary), 1 },
};

static void status_number(const char *key, size_t len, const char *value, struct task_status *s)
{
	for (size_t i = 0; i < sizeof(status_numbers) / sizeof(*status_numbers); i++) {
		uint64_t v;
		if (len != status_numbers[i].len || memcmp(key, status_numbers[i].key, len))
			continue;
		if (!io_parse_u64(&value, &v) ||
		    __builtin_mul_overflow(v, status_numbers[i].unit, &v))
			return;
		*(uint64_t *)(void *)((char *)s + status_numbers[i].offset) = v;
		s->have_memory |= status_numbers[i].unit > 1;
		s->have_switches |= status_numbers[i].unit == 1;
		return;
	}
}

void task_parse_status(const char *text, struct task_status *ret)
{
	struct task_status s = { 0 };
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		size_t len = strcspn(line, ":\n");
		if (line[len] != ':')
			continue;
		const char *value = line + len + 1;
		if (len == 6 && !memcmp(line, "SigIgn", 6)) {
			s.ignores_sigchld = has_sigchld(value);
		} else if (len == 5 && !memcmp(line, "NSpid", 5)) {
			unsigned n = count_numbers(value);
			s.pid_level = n > 0 ? n - 1 : 0;
		} else {
			status_number(line, len, value, &s);
		}
	}
	*ret = s;
}

bool task_parse_child(const char **p, pid_t *ret)
{
	*p += strspn(*p, " \n");
	return pid_from(p, ret);
}
