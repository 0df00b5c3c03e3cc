/* The table of exporters, and choosing what is exported; see export.h. */
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/text.h"

extern const struct exporter exporter_csv;
extern const struct exporter exporter_jsonl;

const struct exporter *const exporters[] = { &exporter_csv, &exporter_jsonl, NULL };

const struct exporter *exporter_find(const char *name)
{
	for (const struct exporter *const *x = exporters; *x; x++)
		if (!strcmp((*x)->name, name))
			return *x;
	return NULL;
}

/* Is the entity one of "KIND,KIND:KEY,..."? */
static bool entity_matches(const char *list, const struct rec_entity_info *e)
{
	char full[64];
	snprintf(full, sizeof(full), "%s:%" PRId64, entity_kind_name(e->kind), e->key);
	return text_in_list(list, entity_kind_name(e->kind)) || text_in_list(list, full);
}

static bool wanted(const struct rec_reader *r, const struct export_query *q, uint32_t entity)
{
	if (!q->entities)
		return true;
	const struct rec_entity_info *e = rec_entity_by_id(r, entity);
	return e && entity_matches(q->entities, e);
}

static void select_series(const struct rec_reader *r, const struct export_query *q,
			  struct export_selection *s)
{
	const struct rec_series_info *all;
	size_t n = rec_serieses(r, &all);
	for (size_t i = 0; i < n; i++)
		if ((!q->metrics || text_in_list(q->metrics, all[i].name)) &&
		    wanted(r, q, all[i].entity))
			s->series[s->nseries++] = &all[i];
}

static void select_tracks(const struct rec_reader *r, const struct export_query *q,
			  struct export_selection *s)
{
	const struct rec_track_info *all;
	size_t n = rec_tracks(r, &all);
	for (size_t i = 0; i < n; i++)
		if ((!q->events || text_in_list(q->events, all[i].name)) &&
		    wanted(r, q, all[i].entity))
			s->tracks[s->ntracks++] = &all[i];
}

/* What was asked for and is not there: name it, and what there would be. */
static int nothing_found(const struct rec_reader *r, const struct export_query *q, bool tracks,
			 struct err *e)
{
	char there[320] = "";
	size_t len = 0;
	const struct rec_series_info *series;
	const struct rec_track_info *track;
	size_t n = tracks ? rec_tracks(r, &track) : rec_serieses(r, &series);
	for (size_t i = 0; i < n && len < sizeof(there) - 48; i++) {
		const char *name = tracks ? track[i].name : series[i].name;
		if (text_in_list(there, name))
			continue;
		len += (size_t)snprintf(there + len, sizeof(there) - len, "%s%.40s", len ? "," : "",
					name);
	}
	const char *what = tracks ? "events" : q->metrics ? "metric" : "entity";
	const char *asked = tracks ? q->events : q->metrics ? q->metrics : q->entities;
	return err_set(e, ENOENT, "nothing matches --%s %.60s%s%.60s%s%s", what, asked,
		       q->entities && asked != q->entities ? " with --entity " : "",
		       q->entities && asked != q->entities ? q->entities : "",
		       n ? "; the recording holds " : "; the recording holds none", there);
}

int export_select(struct export_job *job, struct err *e)
{
	const struct export_query *q = job->query;
	const struct rec_series_info *series;
	const struct rec_track_info *tracks;
	struct export_selection s = { 0 };
	s.series = calloc(rec_serieses(job->r, &series) + 1, sizeof(*s.series));
	s.tracks = calloc(rec_tracks(job->r, &tracks) + 1, sizeof(*s.tracks));
	bool samples = q->metrics || !q->events;
	bool events = q->events || (!q->metrics && !q->entities);
	int rc = 0;
	if (!s.series || !s.tracks)
		rc = err_set(e, ENOMEM, "out of memory");
	if (!rc && samples)
		select_series(job->r, q, &s);
	if (!rc && events)
		select_tracks(job->r, q, &s);
	if (!rc && samples && !s.nseries && (q->metrics || q->entities))
		rc = nothing_found(job->r, q, false, e);
	else if (!rc && q->events && !s.ntracks)
		rc = nothing_found(job->r, q, true, e);
	job->chosen = s;
	if (rc)
		export_release(job);
	return rc;
}

void export_release(struct export_job *job)
{
	free(job->chosen.series);
	free(job->chosen.tracks);
	job->chosen = (struct export_selection){ 0 };
}

int export_step(struct export_job *job, uint64_t t_ns)
{
	job->records++;
	if (job->progress && !(job->records & 0xfff))
		job->progress(job->ctx, t_ns, job->records);
	return out_step(job->out);
}

int export_run(const struct exporter *x, struct export_job *job, struct err *e)
{
	int rc = x->write(job, e);
	if (!rc)
		rc = out_flush(job->out);
	if (job->out->rc)
		err_set(e, -job->out->rc, "%s", strerror(-job->out->rc));
	return rc;
}
