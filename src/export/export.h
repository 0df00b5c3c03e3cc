/*
 * Export: a recording written in a form that other programs read. One file per format, one const table each,
 * listed in export.c; adding a format is a new file and one line there.
 */
#ifndef SPOTTER_EXPORT_EXPORT_H
#define SPOTTER_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "export/out.h"
#include "recording/recording.h"

/* What is to be exported. Strings are borrowed; NULL: no restriction. */
struct export_query {
	const char *metrics;  /* names and globs, comma-separated */
	const char *entities; /* KIND or KIND:KEY ("process:4711"), comma-separated */
	const char *events;   /* names and globs of tracks, comma-separated */
	uint64_t t0, t1;      /* [t0, t1) */
	bool wide;            /* one row per moment, one column per series */
};

struct export_selection {
	const struct rec_series_info **series;
	size_t nseries;
	const struct rec_track_info **tracks;
	size_t ntracks;
};

/* What an exporter is given: r and query for export_select, and out for export_run. */
struct export_job {
	struct rec_reader *r;
	const struct export_query *query;
	struct export_selection chosen;
	struct out *out;
	/* Called now and then with how far in time the work is; may be NULL. */
	void (*progress)(void *ctx, uint64_t t_ns, uint64_t records);
	void *ctx;
	uint64_t records; /* samples and events written */
};

struct exporter {
	const char *name; /* "csv" */
	const char *help; /* one line */
	bool can_wide;
	/* Write all of it to job->out, without the last flush. 0 or -errno with words. Never NULL. */
	int (*write)(struct export_job *job, struct err *e);
};

extern const struct exporter *const exporters[];        /* NULL-terminated */
const struct exporter *exporter_find(const char *name); /* NULL if there is none */

/*
 * Find what job->query asks for in job->r and put it into job->chosen. With neither metrics nor entities nor
 * events given: everything. With some given: only those, so `events` alone leaves out the samples and
 * `metrics` alone the events. -ENOENT with words where nothing matches what was asked for by name.
 */
int export_select(struct export_job *job, struct err *e);
void export_release(struct export_job *job); /* what export_select made */

/* Write what was chosen, with the last flush. 0 or -errno with words; -EPIPE where the reader left. */
int export_run(const struct exporter *x, struct export_job *job, struct err *e);

/* For exporters: one record is complete. Writes when there is much, and tells the progress. 0 or -errno. */
int export_step(struct export_job *job, uint64_t t_ns);

/*
 * A moment of the recording, as people give it: "90s" after its beginning, "-30s" before its end, or
 * "2026-11-20T20:03:00.5Z" (Z: UTC, else local time; a blank may stand for the T).
 */
int export_parse_time(const struct rec_reader *r, const char *text, uint64_t *ret_ns,
		      struct err *e);

#endif
