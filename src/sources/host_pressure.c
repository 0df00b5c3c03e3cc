/*
 * Source host-pressure: /proc/pressure. How long tasks stood still for lack of CPU, memory or I/O.
 *
 * There is no pressure.cpu.full on a host: the kernel writes the line, but it is always zero since not all
 * tasks of a host can wait for a CPU. It is left out rather than recorded as "none".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

enum { CPU, MEMORY, IO, FILES };
static const char *const paths[FILES] = { "/pressure/cpu", "/pressure/memory", "/pressure/io" };

static const struct {
	int file;
	const char *line;
	enum metric_id metric;
} rows[] = {
	{ CPU, "some", METRIC_PRESSURE_CPU_SOME },
	{ MEMORY, "some", METRIC_PRESSURE_MEMORY_SOME },
	{ MEMORY, "full", METRIC_PRESSURE_MEMORY_FULL },
	{ IO, "some", METRIC_PRESSURE_IO_SOME },
	{ IO, "full", METRIC_PRESSURE_IO_FULL },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct state {
	struct rec_writer *w;
	struct kfile files[FILES];
	uint32_t series[ROWS];
};

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	char text[FILES][256];
	ssize_t len[FILES];
	for (int i = 0; i < FILES; i++)
		len[i] = s->files[i].fd < 0
				 ? -EBADF
				 : io_pread_text(s->files[i].fd, text[i], sizeof(text[i]));
	for (int i = 0; i < ROWS; i++) {
		int file = rows[i].file;
		uint64_t us;
		if (len[file] >= 0 && host_parse_pressure(text[file], rows[i].line, &us))
			rec_put_i64(s->w, s->series[i], host_scale(us, 1000));
		else
			rec_gap(s->w, s->series[i],
				series_reason(len[file] < 0 ? (int)len[file] : -EINVAL));
	}
}

static void close_source(void *state)
{
	struct state *s = state;
	for (int i = 0; i < FILES; i++)
		kfile_close(&s->files[i]);
	free(s);
}

/* Can it be opened and read? With psi=0 on the kernel's command line the files may be there and fail. */
static int try_read(const char *proc_root)
{
	struct kfile f = KFILE_INIT;
	int rc = kfile_open(&f, proc_root, paths[CPU]);
	if (!rc) {
		ssize_t n = kfile_read(&f);
		rc = n < 0 ? (int)n : n ? 0 : -ENODATA;
	}
	kfile_close(&f);
	return rc;
}

#define ABSENT                                                                                  \
	"the kernel keeps no pressure information (%s/pressure: %s); Linux 4.20 or later with " \
	"CONFIG_PSI has it, on some distributions after booting with psi=1"

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	int rc = try_read(env->proc_root);
	if (rc)
		return err_set(e, -rc, ABSENT, env->proc_root, strerror(-rc));
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	for (int i = 0; i < FILES; i++)
		kfile_open(&s->files[i], env->proc_root, paths[i]);
	for (int i = 0; i < ROWS && !rc; i++)
		rc = series_make(s->w, env->host, &rows[i].metric, 1, "/proc/pressure",
				 &s->series[i]);
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s", strerror(-rc));
	}
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	int rc = try_read(env->proc_root);
	if (rc)
		buf_addf(why, ABSENT, env->proc_root, strerror(-rc));
	else
		buf_addf(why, "stall times of cpu, memory and io");
	return rc;
}

const struct source source_host_pressure = {
	.name = "host-pressure",
	.help = "time in which tasks stood still for lack of CPU, memory or I/O (PSI)",
	.needs = "/proc/pressure",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
