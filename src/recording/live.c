/* Who writes a recording; see live.h. */
#include "recording/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

/*
 * Start time and state of a process. The name in /proc/PID/stat may hold anything: look from its
 * end.
 */
static int read_start(int pid, uint64_t *ret_start, char *ret_state)
{
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	ssize_t n = io_read_text(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	const char *p = strrchr(text, ')');
	if (!p || p[1] != ' ' || !p[2])
		return -EINVAL;
	*ret_state = p[2];
	p += 3;
	for (int field = 4; field <= 22; field++) {
		while (*p == ' ')
			p++;
		if (field == 22)
			break;
		while (*p && *p != ' ')
			p++;
	}
	return io_parse_u64(&p, ret_start) ? 0 : -EINVAL;
}

int live_self(struct live *ret)
{
	char state;
	struct live l = { .pid = getpid() };
	ssize_t n = io_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", l.boot_id,
				 sizeof(l.boot_id));
	if (n < 0)
		return (int)n;
	l.boot_id[strcspn(l.boot_id, "\n")] = 0;
	int rc = read_start(l.pid, &l.start, &state);
	if (!rc)
		*ret = l;
	return rc;
}

bool live_check(const struct live *l)
{
	struct live self;
	uint64_t start;
	char state;
	return !live_self(&self) && !strcmp(self.boot_id, l->boot_id) &&
	       !read_start(l->pid, &start, &state) && start == l->start && state != 'Z' &&
	       state != 'X';
}
