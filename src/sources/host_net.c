/*
 * Source host-net: /proc/net/dev. Bytes, drops and errors of each network interface.
 *
 * Kept are the interfaces with hardware behind them (/sys/class/net/NAME/device): bridges, bonds, tunnels
 * and the host's ends of containers' interfaces carry the same bytes once more. Where none is real (inside
 * a container) all are taken. The loopback is always left out: what goes through it never leaves the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "sources/devlist.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

enum { RECEIVED, SENT, DROPPED, ERRORS, NET_SERIES };
static const enum metric_id net_metrics[NET_SERIES] = {
	[RECEIVED] = METRIC_NET_RECEIVED,
	[SENT] = METRIC_NET_SENT,
	[DROPPED] = METRIC_NET_DROPPED,
	[ERRORS] = METRIC_NET_ERRORS,
};
_Static_assert(NET_SERIES <= DEVICE_SERIES_MAX, "devices hold fewer series");

enum { ARPHRD_LOOPBACK = 772 };
enum class { CLASS_LOOPBACK, CLASS_VIRTUAL, CLASS_REAL };

struct state {
	struct rec_writer *w;
	uint32_t host;
	char sys_root[PATH_MAX / 2];
	struct kfile dev;
	enum class least;
	struct devlist list;
};

static enum class classify(const char *sys_root, const struct host_net_line *line) {
	char path[PATH_MAX]; int64_t type; int len = (int)line->name_len;
	if (line->name_len == 2 && !memcmp(line->name, "lo", 2)) return CLASS_LOOPBACK;
	int n = snprintf(path, sizeof(path), "%s/class/net/%.*s/type", sys_root, len, line->name);
	if (n < 0 || (size_t)n >= sizeof(path)) return CLASS_VIRTUAL;
	if (!io_read_i64(AT_FDCWD, path, &type) && type == ARPHRD_LOOPBACK) return CLASS_LOOPBACK;
	snprintf(path, sizeof(path), "%s/class/net/%.*s/device", sys_root, len, line->name);
	return access(path, F_OK) ? CLASS_VIRTUAL : CLASS_REAL;
}

static enum class best_class(const char *sys_root, const char *text) {
	enum class best = CLASS_LOOPBACK; struct host_net_line line;
	for (const char *p = text; host_parse_net(&p, &line);){
		enum class c = classify(sys_root, &line); best = c > best ? c : best; }
return best;
}

static void adopt(struct state *s, struct device *d, const struct host_net_line *line,
		  uint64_t t_ns)
{
	if (classify(s->sys_root, line) < s->least)
		return;
	if (rec_entity(s->w, ENTITY_NET, s->host, d->name, 0, t_ns, &d->entity))
		return;
	d->kept = true;
	if (series_make(s->w, d->entity, net_metrics, NET_SERIES, "/proc/net/dev", d->series))
		series_none(d->series, NET_SERIES);
}

static int64_t sum(uint64_t a, uint64_t b)
{
	uint64_t v;
	return __builtin_add_overflow(a, b, &v) ? INT64_MAX : host_scale(v, 1);
}

static void put(struct state *s, const struct device *d, const struct host_net_line *line)
{
	rec_put_i64(s->w, d->series[RECEIVED], host_scale(line->received, 1));
	rec_put_i64(s->w, d->series[SENT], host_scale(line->sent, 1));
	rec_put_i64(s->w, d->series[DROPPED], sum(line->received_dropped, line->sent_dropped));
	rec_put_i64(s->w, d->series[ERRORS], sum(line->received_errors, line->sent_errors));
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	struct host_net_line line;
	ssize_t n = kfile_read(&s->dev);
	if (n < 0) {
		for (size_t i = 0; i < s->list.n; i++)
			series_gap(s->w, s->list.items[i].series, NET_SERIES,
				   series_reason((int)n));
		return;
	}
	devlist_begin(&s->list);
	for (const char *p = s->dev.text; host_parse_net(&p, &line);) {
		bool is_new;
		struct device *d = devlist_find(&s->list, line.name, line.name_len, &is_new);
		if (!d)
			continue;
		if (is_new)
			adopt(s, d, &line, t_ns);
		if (d->kept)
			put(s, d, &line);
	}
	devlist_end(&s->list, s->w, t_ns);
}

static void close_source(void *state)
{
	struct state *s = state;
	kfile_close(&s->dev);
	devlist_free(&s->list);
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
	int rc = kfile_open(&s->dev, env->proc_root, "/net/dev");
	ssize_t n = rc ? rc : kfile_read(&s->dev);
	if (n < 0) {
		close_source(s);
		return err_set(e, (int)-n, "%s/net/dev: %s", env->proc_root, strerror((int)-n));
	}
	enum class best = best_class(s->sys_root, s->dev.text);
	s->least = best == CLASS_REAL ? CLASS_REAL : CLASS_VIRTUAL;
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	static const char *const words[] = {
		[CLASS_LOOPBACK] = "no network interface but the loopback, which is left out",
		[CLASS_VIRTUAL] = "virtual interfaces, since none has hardware behind it",
		[CLASS_REAL] = "interfaces with hardware behind them; the loopback is left out",
	};
	struct kfile f = KFILE_INIT;
	int rc = kfile_open(&f, env->proc_root, "/net/dev");
	ssize_t n = rc ? rc : kfile_read(&f);
	if (n < 0)
		buf_addf(why, "%s/net/dev: %s", env->proc_root, strerror((int)-n));
	else
		buf_adds(why, words[best_class(env->sys_root, f.text)]);
	kfile_close(&f);
	return n < 0 ? (int)n : 0;
}

const struct source source_host_net = {
	.name = "host-net",
	.help = "bytes, drops and errors of each network interface, the loopback left out",
	.needs = "/proc/net/dev",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
