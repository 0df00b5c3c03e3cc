/* The tables of metrics, tracks and entity kinds, made from metrics.def and tracks.def. */
#include "recording/recording.h"

#include <errno.h>
#include <string.h>

#define GAUGE   METRIC_GAUGE
#define COUNTER METRIC_COUNTER
#define I64     METRIC_I64
#define F64     METRIC_F64

const struct metric metrics[METRIC__COUNT] = {
#define M(symbol, nm, un, kd, ty, hp) \
	[METRIC_##symbol] = { .name = nm, .unit = un, .kind = kd, .type = ty, .help = hp },
#include "recording/metrics.def"
#undef M
};

int metric_find(const char *name)
{
	for (int i = 0; i < METRIC__COUNT; i++)
		if (!strcmp(metrics[i].name, name))
			return i;
	return -ENOENT;
}

static const struct track_info tracks[TRACK__COUNT] = {
#define T(symbol, nm, cols, hp) [TRACK_##symbol] = { .name = nm, .columns = cols, .help = hp },
#include "recording/tracks.def"
#undef T
};

const struct track_info *track_info(enum track_kind kind)
{
	return &tracks[kind];
}

int track_ncolumns(enum track_kind kind)
{
	int n = 1;
	for (const char *p = tracks[kind].columns; *p; p++)
		n += *p == ' ';
	return n;
}

static const char *const entity_names[ENTITY__COUNT] = {
	[ENTITY_HOST] = "host",       [ENTITY_CPU] = "cpu",       [ENTITY_DISK] = "disk",
	[ENTITY_NET] = "net",         [ENTITY_SENSOR] = "sensor", [ENTITY_ENERGY] = "energy",
	[ENTITY_CGROUP] = "cgroup",   [ENTITY_GPU] = "gpu",       [ENTITY_JOB] = "job",
	[ENTITY_PROCESS] = "process", [ENTITY_THREAD] = "thread",
};

const char *entity_kind_name(enum entity_kind kind)
{
	return kind < ENTITY__COUNT ? entity_names[kind] : "unknown";
}
