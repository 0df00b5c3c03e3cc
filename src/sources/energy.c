/*
 * Source energy: RAPL counters of /sys/class/powercap. Energy of each domain (package-0, its core and dram,
 * psys), and on the host the sum of all packages and their DRAM.
 *
 * The counters wrap at max_energy_range_uj, some after minutes; what is recorded is accumulated and does
 * not. A domain's share of its package is not added twice: the host's sum takes packages and dram only.
 * Reading is root's alone on current kernels, since fine power readings leak secrets.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "sources/host_parse.h"
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

enum { DOMAINS_MAX = 32 };
#define EVERY_NS (100 * NS_PER_MS) /* the counters themselves move every ms or so */

struct domain {
	char name[96];
	int fd;
	bool in_sum, have_last;
	uint64_t range_uj, last_uj, used_uj;
	uint32_t entity, series;
};

struct state {
	struct rec_writer *w;
	struct domain domains[DOMAINS_MAX];
	int n;
	int refused; /* -errno of a domain that could not be read */
	uint32_t sum_series;
	uint64_t next_ns;
};

static bool read_line(const char *dir, const char *file, char *buf, size_t cap)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (n < 0 || (size_t)n >= sizeof(path) || io_read_text(AT_FDCWD, path, buf, cap) <= 0)
		return false;
	buf[strcspn(buf, "\n")] = 0;
	return *buf != 0;
}

/* "intel-rapl:0:1" is a part of "intel-rapl:0": the name of that one, or "". */
static void parent_name(const char *class_dir, const char *entry, char *buf, size_t cap)
{
	char dir[PATH_MAX];
	const char *first = strchr(entry, ':'), *last = strrchr(entry, ':');
	*buf = 0;
	if (first == last)
		return;
	int n = snprintf(dir, sizeof(dir), "%s/%.*s", class_dir, (int)(last - entry), entry);
	if (n < 0 || (size_t)n >= sizeof(dir) || !read_line(dir, "name", buf, cap))
		*buf = 0;
}

static bool has_domain(const struct state *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->domains[i].name, name))
			return true;
	return false;
}

static void add_domain(struct state *s, const char *class_dir, const char *entry)
{
	char dir[PATH_MAX], path[PATH_MAX], own[40], parent[40], text[32];
	struct domain *d = &s->domains[s->n];
	int n = snprintf(dir, sizeof(dir), "%s/%s", class_dir, entry);
	if (s->n == DOMAINS_MAX || n < 0 || (size_t)n >= sizeof(dir) - sizeof("/energy_uj"))
		return;
	if (!read_line(dir, "name", own, sizeof(own)))
		return;
	parent_name(class_dir, entry, parent, sizeof(parent));
	*d = (struct domain){ .fd = -1 };
	snprintf(d->name, sizeof(d->name), "%s%s%s", parent, *parent ? " " : "", own);
	if (has_domain(s, d->name)) /* the same counter through its second interface (mmio) */
		return;
	d->in_sum = *parent ? !strcmp(own, "dram") : !strncmp(own, "package", 7);
	const char *p = text;
	if (read_line(dir, "max_energy_range_uj", text, sizeof(text)))
		io_parse_u64(&p, &d->range_uj);
	memcpy(path, dir, (size_t)n);
	memcpy(path + n, "/energy_uj", sizeof("/energy_uj"));
	d->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (d->fd < 0)
		s->refused = -errno;
	else
		s->n++;
}

/* The MSR interface first: where a package has two, the second (mmio) is passed over by its name. */
static void scan_all(struct state *s, const char *sys_root)
{
	char path[PATH_MAX / 2];
	struct dirent **names;
	if (!kfile_path(path, sizeof(path), sys_root, "/class/powercap"))
		return;
	int n = scandir(path, &names, NULL, versionsort);
	for (int mmio = 0; mmio < 2; mmio++)
		for (int i = 0; i < n; i++)
			if (strchr(names[i]->d_name, ':') &&
			    !strstr(names[i]->d_name, "mmio") == !mmio)
				add_domain(s, path, names[i]->d_name);
	for (int i = 0; i < n; i++)
		free(names[i]);
	if (n >= 0)
		free(names);
}

/* Take a reading; what was used since the first one grows by what lies between, over one wrap. */
static void advance(struct domain *d, uint64_t now_uj)
{
	if (!d->have_last)
		d->used_uj = 0;
	else if (now_uj >= d->last_uj)
		d->used_uj += now_uj - d->last_uj;
	else if (d->range_uj >= d->last_uj)
		d->used_uj += d->range_uj - d->last_uj + now_uj;
	d->have_last = true;
	d->last_uj = now_uj;
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	uint64_t sum = 0;
	int missing = 0;
	if (t_ns < s->next_ns)
		return;
	s->next_ns = t_ns + EVERY_NS - EVERY_NS / 8; /* a tick that is a little early counts */
	for (int i = 0; i < s->n; i++) {
		struct domain *d = &s->domains[i];
		char text[32];
		const char *p = text;
		uint64_t now;
		ssize_t n = io_pread_text(d->fd, text, sizeof(text));
		if (n > 0 && io_parse_u64(&p, &now)) {
			advance(d, now);
			rec_put_i64(s->w, d->series, host_scale(d->used_uj, 1));
		} else {
			rec_gap(s->w, d->series, series_reason(n < 0 ? (int)n : -EINVAL));
			missing += d->in_sum;
		}
		sum += d->in_sum ? d->used_uj : 0;
	}
	if (missing)
		rec_gap(s->w, s->sum_series, "a domain could not be read");
	else
		rec_put_i64(s->w, s->sum_series, host_scale(sum, 1));
}

static void close_source(void *state)
{
	struct state *s = state;
	for (int i = 0; i < s->n; i++)
		close(s->domains[i].fd);
	free(s);
}

/* Why there is nothing to read, in words; returns -errno. */
static int explain(const struct state *s, const char *sys_root, struct buf *why)
{
	if (s->refused == -EACCES || s->refused == -EPERM) {
		buf_addf(why,
			 "only root may read the energy counters: run as root, or once as root "
			 "`chmod a+r %s/class/powercap/*/energy_uj`",
			 sys_root);
		return -EACCES;
	}
	buf_addf(why,
		 "no energy counter (RAPL) in %s/class/powercap (usual for virtual machines and "
		 "containers; on hardware the module intel_rapl_common may not be loaded)",
		 sys_root);
	return s->refused ? s->refused : -ENOENT;
}

static int make_domain(struct state *s, struct domain *d, uint32_t host)
{
	static const enum metric_id metric = METRIC_ENERGY;
	int rc = rec_entity(s->w, ENTITY_ENERGY, host, d->name, 0, clock_mono_ns(), &d->entity);
	if (!rc)
		rc = series_make(s->w, d->entity, &metric, 1, "rapl", &d->series);
	if (!rc)
		rc = rec_entity_attrs(s->w, d->entity,
				      d->in_sum ? "{\"in_host_sum\":true}"
						: "{\"in_host_sum\":false}");
	return rc;
}

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	static const enum metric_id metric = METRIC_ENERGY;
	struct state *s = calloc(1, sizeof(*s));
	int rc = 0;
	bool any = false;
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	s->sum_series = SERIES_NONE;
	scan_all(s, env->sys_root);
	if (!s->n) {
		struct buf why = BUF_INIT;
		rc = explain(s, env->sys_root, &why);
		err_set(e, -rc, "%s", why.data);
		buf_free(&why);
		close_source(s);
		return rc;
	}
	for (int i = 0; i < s->n && !rc; i++) {
		any |= s->domains[i].in_sum;
		rc = make_domain(s, &s->domains[i], env->host);
	}
	if (!rc && any)
		rc = series_make(s->w, env->host, &metric, 1, "rapl", &s->sum_series);
	if (rc) {
		close_source(s);
		return err_set(e, -rc, "%s", strerror(-rc));
	}
	*ret_state = s;
	return 0;
}

static int probe(const struct source_env *env, struct buf *why)
{
	struct state *s = calloc(1, sizeof(*s));
	int rc = 0;
	if (!s)
		return -ENOMEM;
	scan_all(s, env->sys_root);
	if (s->n)
		buf_addf(why, "%d RAPL domain%s, the first is %s", s->n, s->n == 1 ? "" : "s",
			 s->domains[0].name);
	else
		rc = explain(s, env->sys_root, why);
	close_source(s);
	return rc;
}

const struct source source_energy = {
	.name = "energy",
	.help = "energy used by processor packages and memory (RAPL)",
	.needs = "/sys/class/powercap",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
