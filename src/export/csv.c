/*
 * CSV by RFC 4180 with a header row; lines end in a line feed. Three shapes: long (a row per sample, the
 * columns of the SQL table `samples`), wide (a row per moment, a column per series), events of one kind (a row
 * per event). What is absent is an empty cell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "export/columns.h"
#include "export/export.h"
#include "export/scan.h"
#include "export/text.h"

/* Text that every row of one series or track repeats: made once. */
struct fixed {
	char *before; /* ",cpu3,cpu,5,3," */
	char *after;  /* ",ns,/proc/stat\n" */
};

static void fixed_free(struct fixed *list, size_t n)
{
	for (size_t i = 0; list && i < n; i++) {
		free(list[i].before);
		free(list[i].after);
	}
	free(list);
}

/* "entity,entity_kind,entity_id,entity_key" */
static void add_entity(struct buf *b, const struct rec_reader *r, uint32_t id)
{
	const struct rec_entity_info *entity = rec_entity_by_id(r, id);
	if (!entity) {
		buf_addf(b, ",,%u,", id);
		return;
	}
	text_csv(b, entity->name);
	buf_addf(b, ",%s,%u,", entity_kind_name(entity->kind), id);
	text_i64(b, entity->key);
}

static void add_stamp(struct buf *b, const struct rec_reader *r, uint64_t t_ns)
{
	text_i64(b, (int64_t)t_ns);
	buf_addc(b, ',');
	text_time(b, r, t_ns);
}

static void add_value(struct buf *b, const struct scan_value *v)
{
	if (v->type == METRIC_I64)
		text_i64(b, v->i);
	else
		text_f64(b, v->v);
}

/* -------------------------------------------------------------------------------------------- long */

static struct fixed *long_fixed(struct export_job *job)
{
	size_t n = job->chosen.nseries;
	struct fixed *list = calloc(n + 1, sizeof(*list));
	bool failed = !list;
	for (size_t i = 0; !failed && i < n; i++) {
		const struct rec_series_info *s = job->chosen.series[i];
		struct buf before = BUF_INIT, after = BUF_INIT;
		buf_addc(&before, ',');
		add_entity(&before, job->r, s->entity);
		buf_addc(&before, ',');
		text_csv(&before, s->name);
		buf_addc(&before, ',');
		buf_addc(&after, ',');
		text_csv(&after, s->unit);
		buf_addc(&after, ',');
		text_csv(&after, s->source);
		buf_addc(&after, '\n');
		list[i].before = buf_detach(&before);
		list[i].after = buf_detach(&after);
		failed = !list[i].before || !list[i].after;
	}
	if (failed) {
		fixed_free(list, n);
		return NULL;
	}
	return list;
}

static int write_long(struct export_job *job, struct scan *scan, struct err *e)
{
	struct fixed *fixed = long_fixed(job);
	struct buf *b = &job->out->text;
	struct buf stamp = BUF_INIT;
	struct scan_row row;
	int rc = fixed ? 0 : err_set(e, ENOMEM, "out of memory");
	buf_adds(b, "t_ns,time,entity,entity_kind,entity_id,entity_key,metric,value,unit,source\n");
	while (!rc && (rc = scan_next(scan, &row, e)) > 0) {
		rc = 0;
		buf_clear(&stamp);
		add_stamp(&stamp, job->r, row.t_ns);
		for (size_t i = 0; !rc && i < row.n; i++) {
			const struct fixed *f = &fixed[row.values[i].index];
			buf_add(b, stamp.data, stamp.len);
			buf_adds(b, f->before);
			add_value(b, &row.values[i]);
			buf_adds(b, f->after);
			rc = export_step(job, row.t_ns);
		}
	}
	buf_free(&stamp);
	fixed_free(fixed, job->chosen.nseries);
	return rc;
}

/* -------------------------------------------------------------------------------------------- wide */

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ULL;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	return h;
}

/* "cpu3:cpu.user"; where two series would be called the same, the later ones get "#ENTITY_ID" behind. */
static int add_wide_header(struct export_job *job, struct buf *b)
{
	struct map seen;
	struct buf name = BUF_INIT;
	int rc = 0;
	map_init(&seen);
	buf_adds(b, "t_ns,time");
	for (size_t i = 0; !rc && i < job->chosen.nseries; i++) {
		const struct rec_series_info *s = job->chosen.series[i];
		const struct rec_entity_info *entity = rec_entity_by_id(job->r, s->entity);
		uint64_t before;
		buf_clear(&name);
		if (entity)
			text_entity(&name, entity);
		buf_addf(&name, ":%s", s->name);
		uint64_t key = hash_text(name.data);
		if (map_get(&seen, key, &before))
			buf_addf(&name, "#%u", s->entity);
		rc = map_put(&seen, key, 1);
		buf_addc(b, ',');
		text_csv(b, name.data);
	}
	buf_addc(b, '\n');
	buf_free(&name);
	map_free(&seen);
	return rc;
}

static int write_wide(struct export_job *job, struct scan *scan, struct err *e)
{
	struct buf *b = &job->out->text;
	struct scan_row row;
	int rc = add_wide_header(job, b);
	while (!rc && (rc = scan_next(scan, &row, e)) > 0) {
		uint32_t column = 0;
		add_stamp(b, job->r, row.t_ns);
		for (size_t i = 0; i < row.n; i++) {
			/* Values come in the order of the columns. */
			buf_addn(b, ',', row.values[i].index - column + 1);
			column = row.values[i].index + 1;
			add_value(b, &row.values[i]);
		}
		buf_addn(b, ',', job->chosen.nseries - column);
		buf_addc(b, '\n');
		rc = export_step(job, row.t_ns);
	}
	return rc;
}

/* ------------------------------------------------------------------------------------------ events */

static void add_event(struct export_job *job, const struct columns *columns,
		      const struct scan_event *event)
{
	struct buf *b = &job->out->text;
	add_stamp(b, job->r, (uint64_t)event->row[EV_T]);
	buf_addc(b, ',');
	if (event->row[EV_DUR] != REC_NONE)
		text_i64(b, event->row[EV_DUR]);
	buf_addc(b, ',');
	add_entity(b, job->r, job->chosen.tracks[event->index]->entity);
	for (int i = EV_DUR + 1; i < columns->n; i++) {
		struct cell cell = columns_cell(columns, job->r, event->row, i);
		buf_addc(b, ',');
		if (cell.type == CELL_I64)
			text_i64(b, cell.i);
		else if (cell.type == CELL_TEXT)
			text_csv(b, cell.s);
	}
	buf_addc(b, '\n');
}

static int write_events(struct export_job *job, struct err *e)
{
	const struct rec_track_info *first = job->chosen.tracks[0];
	for (size_t i = 1; i < job->chosen.ntracks; i++)
		if (strcmp(job->chosen.tracks[i]->name, first->name) != 0)
			return err_set(e, EINVAL,
				       "one CSV file holds events of one kind, and '%s' and '%s' "
				       "are two: name one with --events",
				       first->name, job->chosen.tracks[i]->name);
	struct columns columns;
	columns_of(first, &columns);
	struct buf *b = &job->out->text;
	buf_adds(b, "t_ns,time,dur_ns,entity,entity_kind,entity_id,entity_key");
	for (int i = EV_DUR + 1; i < columns.n; i++)
		buf_addf(b, ",%s", columns.names[i]);
	buf_addc(b, '\n');

	struct scan_events *scan;
	struct scan_event event;
	int rc = scan_events_new(job->r, job->chosen.tracks, job->chosen.ntracks, job->query->t0,
				 job->query->t1, &scan);
	if (rc)
		return err_set(e, -rc, "out of memory");
	while (!rc && (rc = scan_events_next(scan, &event, e)) > 0) {
		add_event(job, &columns, &event);
		rc = export_step(job, (uint64_t)event.row[EV_T]);
	}
	scan_events_free(scan);
	return rc;
}

static int csv_write(struct export_job *job, struct err *e)
{
	if (job->query->events && job->query->metrics)
		return err_set(e, EINVAL,
			       "one CSV file holds samples or events: give --metric or --events");
	if (job->query->events)
		return write_events(job, e);
	struct scan *scan;
	int rc = scan_new(job->r, job->chosen.series, job->chosen.nseries, job->query->t0,
			  job->query->t1, &scan);
	if (rc)
		return err_set(e, -rc, "out of memory");
	rc = job->query->wide ? write_wide(job, scan, e) : write_long(job, scan, e);
	scan_free(scan);
	return rc;
}

extern const struct exporter exporter_csv;
const struct exporter exporter_csv = {
	.name = "csv",
	.help = "comma-separated values, a row per sample or event",
	.can_wide = true,
	.write = csv_write,
};
