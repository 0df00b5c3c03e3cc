/*
 * Source thermal: temperatures of /sys/class/hwmon and /sys/class/thermal.
 *
 * Sensors answer through firmware, buses and disks, and some take milliseconds. So each is read at most
 * every 5 s, and one that took longer than 1 ms once a minute. Sensors of single cores are left out (the
 * package's stands for them, and reading one interrupts that core), and so is a thermal zone that hwmon
 * shows as well.
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
#include "sources/kfile.h"
#include "sources/series.h"
#include "sources/source.h"
#include "sources/sources.h"

#define EVERY_NS      (5 * NS_PER_S)
#define SLOW_NS       (1 * NS_PER_MS)
#define SLOW_EVERY_NS (60 * NS_PER_S)

enum { SENSORS_MAX = 64, CHIP_TEMPS_MAX = 32, MILLI = 1000 };

struct sensor {
	char name[96];
	int fd;
	uint32_t entity, series;
	uint64_t next_ns;
};

struct state {
	struct rec_writer *w;
	struct sensor sensors[SENSORS_MAX];
	int n;
};

/* One line of a small file, without its newline; false if it cannot be had or is empty. */
static bool read_line(int dirfd, const char *path, char *buf, size_t cap)
{
	if (io_read_text(dirfd, path, buf, cap) <= 0)
		return false;
	buf[strcspn(buf, "\n")] = 0;
	return *buf != 0;
}

static bool has_sensor(const struct state *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->sensors[i].name, name))
			return true;
	return false;
}

/* Keep the sensor if it can be read: an input that only gives errors is no sensor. */
static void add_sensor(struct state *s, int dirfd, const char *path, const char *chip,
		       const char *label)
{
	struct sensor *t = &s->sensors[s->n];
	char text[32];
	if (s->n == SENSORS_MAX)
		return;
	snprintf(t->name, sizeof(t->name), "%.47s%s%.47s", chip, *label ? " " : "", label);
	for (int i = 2; has_sensor(s, t->name) && i < SENSORS_MAX; i++)
		snprintf(t->name, sizeof(t->name), "%.47s%s%.32s #%d", chip, *label ? " " : "",
			 label, i);
	t->fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		return;
	if (io_pread_text(t->fd, text, sizeof(text)) <= 0) {
		close(t->fd);
		return;
	}
	s->n++;
}

static void add_chip(struct state *s, int dirfd)
{
	char chip[48], path[40], label[48];
	if (!read_line(dirfd, "name", chip, sizeof(chip)))
		return;
	for (int i = 1; i <= CHIP_TEMPS_MAX; i++) {
		snprintf(path, sizeof(path), "temp%d_label", i);
		if (!read_line(dirfd, path, label, sizeof(label)))
			*label = 0;
		snprintf(path, sizeof(path), "temp%d_input", i);
		if (strncmp(label, "Core ", 5))
			add_sensor(s, dirfd, path, chip, label);
	}
}

static void add_zone(struct state *s, int dirfd)
{
	char type[48];
	if (read_line(dirfd, "type", type, sizeof(type)) && !has_sensor(s, type) &&
	    faccessat(dirfd, "hwmon0", F_OK, 0))
		add_sensor(s, dirfd, "temp", type, "");
}

static void scan(struct state *s, const char *sys_root, const char *class_dir, const char *prefix,
		 void (*add)(struct state *s, int dirfd))
{
	char path[PATH_MAX];
	struct dirent **names;
	if (!kfile_path(path, sizeof(path), sys_root, class_dir))
		return;
	int n = scandir(path, &names, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		char dir[PATH_MAX + 300];
		snprintf(dir, sizeof(dir), "%s/%s", path, names[i]->d_name);
		int fd = strncmp(names[i]->d_name, prefix, strlen(prefix))
				 ? -1
				 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			add(s, fd);
			close(fd);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static void scan_all(struct state *s, const char *sys_root)
{
	scan(s, sys_root, "/class/hwmon", "hwmon", add_chip);
	scan(s, sys_root, "/class/thermal", "thermal_zone", add_zone);
}

static bool parse_milli(const char *text, double *ret)
{
	const char *p = text + (*text == '-');
	uint64_t v;
	if (!io_parse_u64(&p, &v) || v > 1000000)
		return false;
	*ret = (*text == '-' ? -(double)v : (double)v) / MILLI;
	return true;
}

static void sample(void *state, uint64_t t_ns)
{
	struct state *s = state;
	char text[32];
	double celsius;
	for (int i = 0; i < s->n; i++) {
		struct sensor *t = &s->sensors[i];
		if (t_ns < t->next_ns)
			continue;
		uint64_t before = clock_mono_ns();
		ssize_t n = io_pread_text(t->fd, text, sizeof(text));
		bool slow = clock_mono_ns() - before > SLOW_NS;
		uint64_t every_ns = slow ? SLOW_EVERY_NS : EVERY_NS;
		t->next_ns =
			t_ns + every_ns - every_ns / 8; /* a tick that is a little early counts */
		if (n > 0 && parse_milli(text, &celsius))
			rec_put_f64(s->w, t->series, celsius);
		else
			rec_gap(s->w, t->series, series_reason(n < 0 ? (int)n : -EINVAL));
	}
}

static void close_source(void *state)
{
	struct state *s = state;
	for (int i = 0; i < s->n; i++)
		close(s->sensors[i].fd);
	free(s);
}

#define ABSENT                                                                                     \
	"no temperature sensor in %s/class/hwmon or %s/class/thermal (usual for virtual machines " \
	"and containers; on hardware the driver may not be loaded: coretemp, k10temp)"

static int open_source(const struct source_env *env, void **ret_state, struct err *e)
{
	static const enum metric_id metric = METRIC_TEMPERATURE;
	struct state *s = calloc(1, sizeof(*s));
	int rc = 0;
	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->w = env->w;
	scan_all(s, env->sys_root);
	if (!s->n) {
		close_source(s);
		return err_set(e, ENOENT, ABSENT, env->sys_root, env->sys_root);
	}
	for (int i = 0; i < s->n && !rc; i++) {
		struct sensor *t = &s->sensors[i];
		rc = rec_entity(s->w, ENTITY_SENSOR, env->host, t->name, 0, clock_mono_ns(),
				&t->entity);
		if (!rc)
			rc = series_make(s->w, t->entity, &metric, 1, "sysfs", &t->series);
	}
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
	int n = 0;
	if (s) {
		scan_all(s, env->sys_root);
		n = s->n;
		if (n)
			buf_addf(why, "%d temperature sensor%s, the first is %s", n,
				 n == 1 ? "" : "s", s->sensors[0].name);
		close_source(s);
	}
	if (!n)
		buf_addf(why, ABSENT, env->sys_root, env->sys_root);
	return n ? 0 : -ENOENT;
}

const struct source source_thermal = {
	.name = "thermal",
	.help = "temperatures of the host's sensors",
	.needs = "/sys/class/hwmon or /sys/class/thermal",
	.probe = probe,
	.open = open_source,
	.sample = sample,
	.close = close_source,
};
