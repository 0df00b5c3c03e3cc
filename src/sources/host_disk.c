/*
 * Source host-disk: /proc/diskstats. Bytes, requests and times of each disk.
 *
 * Kept are the devices that bytes really go through: those with hardware behind them (/sys/block/NAME/device)
 * and network disks. Partitions, device-mapper and RAID devices lie on top of these and would count each
 * byte twice; loop, RAM and optical devices are no disks. Only where nothing real is shown (some containers
 * and virtual machines) are the stacked devices and then the partitions taken instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "sources/attrs.h"
#include "sources/devlist.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

enum { READ, WRITTEN, READS, WRITES, READ_TIME, WRITE_TIME, BUSY, DISK_SERIES };
static const enum metric_id disk_metrics[DISK_SERIES] = {
	[READ] = METRIC_DISK_READ,           [WRITTEN] = METRIC_DISK_WRITTEN,
	[READS] = METRIC_DISK_READS,         [WRITES] = METRIC_DISK_WRITES,
	[READ_TIME] = METRIC_DISK_READ_TIME, [WRITE_TIME] = METRIC_DISK_WRITE_TIME,
	[BUSY] = METRIC_DISK_BUSY,
};
_Static_assert(DISK_SERIES <= DEVICE_SERIES_MAX, "devices hold fewer series");

enum { SECTOR_BYTES = 512 }; /* of diskstats, whatever the disk's own are */

enum class { CLASS_NONE, CLASS_PARTITION, CLASS_STACKED, CLASS_REAL };

struct state {
	struct rec_writer *w;
	uint32_t host;
	char sys_root[PATH_MAX / 2];
	struct kfile stats;
	enum class least; /* devices below this are passed over */
	struct devlist disks;
};

static bool begins_with_any(const char *name, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (len >= strlen(*list) && !memcmp(name, *list, strlen(*list)))
			return true;
	return false;
}

static bool sys_has(const char *sys_root, const char *name, size_t len, const char *rest)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/block/%.*s%s", sys_root, (int)len, name, rest);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	for (char *p = path + strlen(sys_root) + strlen("/block/"); p < path + n - strlen(rest);
	     p++)
		if (*p == '/')
			*p = '!'; /* as sysfs spells cciss/c0d0 */
	return !access(path, F_OK);
}

/* Is it a partition of something listed before or after it? Where there is no sysfs to ask. */
static bool listed_partition(const char *text, const struct host_disk_line *line)
{
	struct host_disk_line other;
	for (const char *p = text; host_parse_disk(&p, &other);)
		if (host_is_partition(other.name, other.name_len, line->name, line->name_len))
			return true;
	return false;
}

static enum class classify(const char *sys_root, const char *text,
			   const struct host_disk_line *line) {
	static const char *const no_disks[] = { "loop", "ram", "zram", "sr", "fd", NULL };
	static const char *const network[] = { "nbd", "rbd", NULL };
	static const char *const stacked[] = { "dm-", "md", "drbd", "bcache", "zd", NULL };
	bool sysfs = !access(sys_root, F_OK) && sys_has(sys_root, "", 0, "");
	if (begins_with_any(line->name, line->name_len, no_disks)) return CLASS_NONE;
	if (sysfs ? !sys_has(sys_root, line->name, line->name_len, "")
		  : listed_partition(text, line)) return CLASS_PARTITION;
	if (begins_with_any(line->name, line->name_len, network) ||
	    sys_has(sys_root, line->name, line->name_len, "/device")) return CLASS_REAL;
	if (sysfs || begins_with_any(line->name, line->name_len, stacked)) return CLASS_STACKED;
	return CLASS_REAL;
}

static enum class best_class(const char *sys_root, const char *text) {
	enum class best = CLASS_NONE; struct host_disk_line line;
	for (const char *p = text; host_parse_disk(&p, &line);){
		enum class c = classify(sys_root, text, &line); best = c > best ? c : best; }
return best;
}

static bool sys_number(const struct state *s, const char *disk, const char *file, int64_t *ret)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/block/%s/%s", s->sys_root, disk, file);
	return n > 0 && (size_t)n < sizeof(path) && !io_read_i64(AT_FDCWD, path, ret);
}

static void set_attrs(struct state *s, const struct device *d)
{
	struct buf b = BUF_INIT;
	int64_t sectors, rotational;
	if (sys_number(s, d->name, "size", &sectors) && sectors >= 0)
		attrs_i64(&b, "size_bytes", host_scale((uint64_t)sectors, SECTOR_BYTES));
	if (sys_number(s, d->name, "queue/rotational", &rotational))
		attrs_bool(&b, "rotational", rotational != 0);
	attrs_store(&b, s->w, d->entity);
}

static void adopt(struct state *s, struct device *d, const struct host_disk_line *line,
		  uint64_t t_ns)
{
	if (classify(s->sys_root, s->stats.text, line) < s->least)
		return;
	if (rec_entity(s->w, ENTITY_DISK, s->host, d->name, 0, t_ns, &d->entity))
		return;
	d->kept = true;
	if (series_make(s->w, d->entity, disk_metrics, DISK_SERIES, "/proc/diskstats", d->series))
		series_none(d->series, DISK_SERIES);
	set_attrs(s, d);
}

static void put(struct state *s, struct device *d, const struct host_disk_line *line)
{
	const uint64_t ms[] = { line->read_ms, line->write_ms, line->busy_ms };
	rec_put_i64(s->w, d->series[READ], host_scale(line->read_sectors, SECTOR_BYTES));
	rec_put_i64(s->w, d->series[WRITTEN], host_scale(line->write_sectors, SECTOR_BYTES));
	rec_put_i64(s->w, d->series[READS], host_scale(line->reads, 1));
	rec_put_i64(s->w, d->series[WRITES], host_scale(line->writes, 1));
	for (size_t i = 0; i < 3; i++) /* 32 bits of ms: they wrap after 50 days */
		rec_put_i64(s->w, d->series[READ_TIME + i],
			    host_scale(device_unwrap(d, READ_TIME + i, ms[i]), 1000000));
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	struct host_disk_line line;
	ssize_t n = kfile_read(&s->stats);
	if (n < 0) {
		for (size_t i = 0; i < s->disks.n; i++)
			series_gap(s->w, s->disks.items[i].series, DISK_SERIES,
				   series_reason((int)n));
		return;
	}
	devlist_begin(&s->disks);
	for (const char *p = s->stats.text; host_parse_disk(&p, &line);) {
		bool is_new;
		struct device *d = devlist_find(&s->disks, line.name, line.name_len, &is_new);
		if (!d)
			continue;
		if (is_new)
			adopt(s, d, &line, t_ns);
		if (d->kept)
			put(s, d, &line);
	}
	devlist_end(&s->disks, s->w, t_ns);
}

static void close_source(void *state)
{
	struct state *s = state;
	kfile_close(&s->stats);
	devlist_free(&s->disks);
	free(s);
}

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	s->host = env->host;
	kfile_path(s->sys_root, sizeof(s->sys_root), env->sys_root, "");
	int rc = kfile_open(&s->stats, env->proc_root, "/diskstats");
	ssize_t n = rc ? rc : kfile_read(&s->stats);
	if (n < 0) {
		close_source(s);
		return err_set(e, (int)-n, "%s/diskstats: %s", env->proc_root, strerror((int)-n));
	}
	enum class best = best_class(s->sys_root, s->stats.text);
	s->least = best == CLASS_NONE ? CLASS_REAL : best; /* a real one may still be plugged in */
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	static const char *const words[] = {
		[CLASS_NONE] = "no disk is listed",
		[CLASS_PARTITION] = "partitions, since no whole disk is listed",
		[CLASS_STACKED] = "stacked devices, since no real disk is listed",
		[CLASS_REAL] = "real disks",
	};
	struct kfile f = KFILE_INIT;
	int rc = kfile_open(&f, env->proc_root, "/diskstats");
	ssize_t n = rc ? rc : kfile_read(&f);
	if (n < 0)
		buf_addf(why, "%s/diskstats: %s", env->proc_root, strerror((int)-n));
	else
		buf_adds(why, words[best_class(env->sys_root, f.text)]);
	kfile_close(&f);
	return n < 0 ? (int)n : 0;
}

const struct source source_host_disk = {
	.name = "host-disk",
	.help = "bytes, requests and times of each disk",
	.needs = "/proc/diskstats",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
