/*
 * Facts about pauses: checkpoints and the garbage collector, how long they took, and which steps they
 * happened in. After facts_steps.c.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/events.h"
#include "analyze/facts.h"

/* The pauses of one track on their way into the facts. */
struct pauses {
	struct run_facts *f;
	enum track_kind kind;
	double *durs; /* of single pauses; sums of short ones have no place here */
	size_t n_durs, room, n;
	double total_s, window_s, bytes;
	size_t from; /* first step that may still overlap: both are in order of time */
	bool failed;
};

static void keep(struct pauses *p, double dur_s)
{
	if (p->n_durs == p->room) {
		size_t room = p->room ? 2 * p->room : 256;
		double *v = realloc(p->durs, room * sizeof(*v));
		p->failed |= !v;
		if (!v)
			return;
		p->durs = v;
		p->room = room;
	}
	p->durs[p->n_durs++] = dur_s;
}

static double overlap_s(uint64_t a0, uint64_t a1, uint64_t b0, uint64_t b1)
{
	uint64_t from = a0 > b0 ? a0 : b0, to = a1 < b1 ? a1 : b1;
	return to > from ? events_seconds((int64_t)(to - from)) : 0;
}

/* Add a pause to the steps that it overlaps. */
static void charge_steps(struct pauses *p, uint64_t t0, uint64_t t1)
{
	struct facts_steps *s = &p->f->steps;
	while (p->from < s->n && s->v[p->from].t1_ns <= t0)
		p->from++;
	for (size_t i = p->from; i < s->n && s->v[i].t0_ns < t1; i++) {
		struct fact_step *step = &s->v[i];
		float *part = p->kind == TRACK_CHECKPOINT ? &step->checkpoint_s : &step->gc_s;
		*part += (float)overlap_s(t0, t1, step->t0_ns, step->t1_ns);
	}
}

static void pause_row(void *arg, const int64_t *row)
{
	struct pauses *p = arg;
	uint64_t t0 = (uint64_t)row[EV_T], t1 = events_end(row);
	double dur_s = events_seconds(row[EV_DUR]);
	p->n++;
	p->total_s += dur_s;
	/* Short collections come as sums: they count in the total, not as one pause. */
	if (p->kind == TRACK_CHECKPOINT || row[GC_GENERATION] != REC_NONE)
		keep(p, dur_s);
	if (p->kind == TRACK_CHECKPOINT && row[CHECKPOINT_BYTES] != REC_NONE)
		p->bytes = (isnan(p->bytes) ? 0 : p->bytes) + (double)row[CHECKPOINT_BYTES];
	p->window_s += overlap_s(t0, t1, p->f->w0, p->f->w1);
	charge_steps(p, t0, t1);
}

static void total_row(void *arg, const int64_t *row)
{
	*(double *)arg += events_seconds(row[EV_DUR]);
}

/*
 * The track of the leading process (pauses of its loader workers do not stall it); where no process leads, the
 * one with the longest pauses. NULL if there is none.
 */
static const struct rec_track_info *find_track(struct run_facts *f, enum track_kind kind)
{
	const struct rec_track_info *tracks, *best = NULL;
	size_t n = rec_tracks(f->r, &tracks);
	double longest = -1;
	for (size_t i = 0; i < n; i++) {
		double total = 0;
		if (tracks[i].kind != (int)kind ||
		    (f->steps.entity && tracks[i].entity != f->steps.entity) ||
		    events_each(f->r, &tracks[i], total_row, &total, NULL))
			continue;
		if (total > longest) {
			longest = total;
			best = &tracks[i];
		}
	}
	return best;
}

static int load(struct run_facts *f, enum track_kind kind, struct facts_pauses *ret, struct err *e)
{
	struct pauses p = { .f = f, .kind = kind, .bytes = NAN };
	const struct rec_track_info *track = find_track(f, kind);
	const char *source = rec_get(f->r, "steps_source");
	*ret = (struct facts_pauses){ -1, NAN, NAN, NAN, NAN, NAN };
	/* With the hook in the job and no such event, the count is an honest 0. */
	if (!track && !(source && strstr(source, "hook")))
		return 0;
	int rc = track ? events_each(f->r, track, pause_row, &p, e) : 0;
	if (!rc && p.failed)
		rc = -ENOMEM;
	if (!rc) {
		double window = events_seconds((int64_t)(f->w1 - f->w0));
		ret->n = (int64_t)p.n;
		ret->total_s = p.total_s;
		ret->median_s = stat_median(p.durs, p.n_durs);
		ret->max_s = stat_percentile(p.durs, p.n_durs, 100);
		ret->share = window > 0 ? p.window_s / window : NAN;
		ret->bytes = p.bytes;
	}
	free(p.durs);
	return rc;
}

int facts_load_pauses(struct run_facts *f, struct err *e)
{
	int rc = load(f, TRACK_CHECKPOINT, &f->checkpoints, e);
	if (!rc)
		rc = load(f, TRACK_GC, &f->gc, e);
	if (rc == -ENOMEM)
		err_set(e, ENOMEM, "out of memory while reading the pauses of the recording");
	return rc;
}
