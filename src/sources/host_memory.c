/*
 * Source host-memory: /proc/meminfo and /proc/vmstat. Physical memory by use, swap, page faults, processes
 * killed for lack of memory.
 *
 * /proc/vmstat costs the kernel four times as much as /proc/meminfo (13 us and 3 us), so at short intervals it is
 * read every 100 ms only. A key the kernel does not have (MemAvailable before 3.14, oom_kill before 4.13) is a gap, not a zero.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

#define VMSTAT_EVERY_NS (100 * NS_PER_MS)

/* In the order of the file, so that each line meets its key first. */
enum { TOTAL, FREE, AVAILABLE, BUFFERS, CACHED, SWAP_SPACE, SWAP_FREE, DIRTY, SHARED, INFO_KEYS };
static const char *const info_names[INFO_KEYS] = {
	"MemTotal",  "MemFree",  "MemAvailable", "Buffers", "Cached",
	"SwapTotal", "SwapFree", "Dirty",        "Shmem",
};
enum { PAGES_IN, PAGES_OUT, FAULTS, MAJOR_FAULTS, OOM_KILLS, STAT_KEYS };
static const char *const stat_names[STAT_KEYS] = { "pswpin", "pswpout", "pgfault", "pgmajfault",
						   "oom_kill" };

/* One series: factor * (plus + plus2 - minus), each the number of a key; -1: none. */
struct row {
	enum metric_id metric;
	int plus, plus2, minus;
};
static const struct row info_rows[] = {
	{ METRIC_MEMORY_TOTAL, TOTAL, -1, -1 },    { METRIC_MEMORY_AVAILABLE, AVAILABLE, -1, -1 },
	{ METRIC_MEMORY_FREE, FREE, -1, -1 },      { METRIC_MEMORY_CACHED, CACHED, BUFFERS, -1 },
	{ METRIC_MEMORY_SHARED, SHARED, -1, -1 },  { METRIC_MEMORY_DIRTY, DIRTY, -1, -1 },
	{ METRIC_SWAP_TOTAL, SWAP_SPACE, -1, -1 }, { METRIC_SWAP_USED, SWAP_SPACE, -1, SWAP_FREE },
};
static const struct row page_rows[] = {
	{ METRIC_SWAP_IN, PAGES_IN, -1, -1 },
	{ METRIC_SWAP_OUT, PAGES_OUT, -1, -1 },
};
static const struct row count_rows[] = {
	{ METRIC_MEMORY_FAULTS_MINOR, FAULTS, -1, MAJOR_FAULTS },
	{ METRIC_MEMORY_FAULTS_MAJOR, MAJOR_FAULTS, -1, -1 },
	{ METRIC_MEMORY_OOM_KILLS, OOM_KILLS, -1, -1 },
};
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

struct state {
	struct rec_writer *w;
	uint64_t page;
	struct kfile meminfo, vmstat;
	uint64_t next_vmstat_ns;
	struct host_key info[INFO_KEYS], stat[STAT_KEYS];
	uint32_t info_series[COUNT_OF(info_rows)];
	uint32_t page_series[COUNT_OF(page_rows)];
	uint32_t count_series[COUNT_OF(count_rows)];
};

static void put_rows(struct state *s, const struct row *rows, size_t n, const uint32_t *series,
		     const struct host_key *keys, uint64_t factor)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		bool have = keys[r->plus].have && (r->plus2 < 0 || keys[r->plus2].have) &&
			    (r->minus < 0 || keys[r->minus].have);
		uint64_t v = keys[r->plus].value, minus = r->minus < 0 ? 0 : keys[r->minus].value;
		if (r->plus2 >= 0 && __builtin_add_overflow(v, keys[r->plus2].value, &v))
			v = UINT64_MAX;
		if (!have || minus > v)
			rec_gap(s->w, series[i], "the kernel gave no value");
		else
			rec_put_i64(s->w, series[i], host_scale(v - minus, factor));
	}
}

static void forget(struct host_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i].have = false;
}

static void read_keys(struct kfile *f, struct host_key *keys, size_t n)
{
	if (kfile_read(f) >= 0)
		host_parse_keys(f->text, keys, n);
	else
		forget(keys, n);
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	read_keys(&s->meminfo, s->info, INFO_KEYS);
	put_rows(s, info_rows, COUNT_OF(info_rows), s->info_series, s->info, 1024);
	if (t_ns < s->next_vmstat_ns)
		return;
	s->next_vmstat_ns = t_ns + VMSTAT_EVERY_NS - VMSTAT_EVERY_NS / 8;
	read_keys(&s->vmstat, s->stat, STAT_KEYS);
	put_rows(s, page_rows, COUNT_OF(page_rows), s->page_series, s->stat, s->page);
	put_rows(s, count_rows, COUNT_OF(count_rows), s->count_series, s->stat, 1);
}

static void close_source(void *state)
{
	struct state *s = state;
	kfile_close(&s->meminfo);
	kfile_close(&s->vmstat);
	free(s);
}

static int make_rows(struct state *s, uint32_t host, const struct row *rows, size_t n,
		     const char *source, uint32_t *ret)
{
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = series_make(s->w, host, &rows[i].metric, 1, source, &ret[i]);
	return rc;
}

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	s->page = (uint64_t)sysconf(_SC_PAGESIZE);
	s->vmstat.fd = -1;
	for (int i = 0; i < INFO_KEYS; i++)
		s->info[i].key = info_names[i];
	for (int i = 0; i < STAT_KEYS; i++)
		s->stat[i].key = stat_names[i];
	int rc = kfile_open(&s->meminfo, env->proc_root, "/meminfo");
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s/meminfo: %s", env->proc_root, strerror(-rc));
	}
	kfile_open(&s->vmstat, env->proc_root, "/vmstat");
	rc = make_rows(s, env->host, info_rows, COUNT_OF(info_rows), "/proc/meminfo",
		       s->info_series);
	if (!rc)
		rc = make_rows(s, env->host, page_rows, COUNT_OF(page_rows), "/proc/vmstat",
			       s->page_series);
	if (!rc)
		rc = make_rows(s, env->host, count_rows, COUNT_OF(count_rows), "/proc/vmstat",
			       s->count_series);
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s", strerror(-rc));
	}
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	struct kfile f = KFILE_INIT;
	struct host_key total[] = { { .key = "MemTotal" }, { .key = "SwapTotal" } };
	int rc = kfile_open(&f, env->proc_root, "/meminfo");
	ssize_t n = rc ? rc : kfile_read(&f);
	if (n >= 0)
		host_parse_keys(f.text, total, 2);
	kfile_close(&f);
	if (n < 0 || !total[0].have) {
		buf_addf(why, "%s/meminfo: %s", env->proc_root,
			 n < 0 ? strerror((int)-n) : "no line MemTotal");
		return n < 0 ? (int)n : -EINVAL;
	}
	buf_addf(why, "%.1f GB of memory, ", (double)total[0].value * 1024 / 1e9);
	if (total[1].have && total[1].value)
		buf_addf(why, "%.1f GB of swap", (double)total[1].value * 1024 / 1e9);
	else
		buf_adds(why, "no swap");
	return 0;
}

const struct source source_host_memory = {
	.name = "host-memory",
	.help = "physical memory by use, swap, page faults, kills for lack of memory",
	.needs = "/proc/meminfo",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
