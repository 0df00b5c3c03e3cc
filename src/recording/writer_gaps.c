/*
 * Gaps with a reason. A source says at each tick why it has no value; the file holds one row from
 * the first such tick to the first without. Most series never have one.
 */
#include "recording/writer.h"

#include <stdlib.h>
#include <string.h>

/* The place of a reason in the list of all, or -1. There are only ever a handful. */
static int64_t intern(struct rec_writer *w, const char *reason)
{
	for (size_t i = 0; i < w->nreasons; i++)
		if (!strcmp(w->reasons[i], reason))
			return (int64_t)i;
	char **more = realloc(w->reasons, (w->nreasons + 1) * sizeof(*more));
	if (!more)
		return -1;
	w->reasons = more;
	more[w->nreasons] = strdup(reason);
	return more[w->nreasons] ? (int64_t)w->nreasons++ : -1;
}

static void end_gap(struct rec_writer *w, size_t i, uint64_t t_ns)
{
	struct writer_gap *g = &w->gaps[i];
	w->series[g->series].gap = 0;
	if (!op_add(w, OP_GAP_END, g->id, (int64_t)t_ns))
		op_add_change(w, "gap", g->id);
	*g = w->gaps[--w->ngaps];
	if (i < w->ngaps)
		w->series[g->series].gap = (uint32_t)i + 1;
}

static void begin_gap(struct rec_writer *w, uint32_t series, const char *reason)
{
	int64_t place = intern(w, reason);
	if (place < 0)
		return;
	if (w->ngaps == w->gaps_cap) {
		size_t cap = w->gaps_cap ? w->gaps_cap * 2 : 64;
		struct writer_gap *gaps = realloc(w->gaps, cap * sizeof(*gaps));
		if (!gaps)
			return;
		w->gaps = gaps;
		w->gaps_cap = cap;
	}
	int64_t id = w->gap_ids + 1;
	if (op_add(w, OP_GAP, id, (int64_t)series, (int64_t)w->tick_ns, reason))
		return;
	w->gap_ids = id;
	w->gaps[w->ngaps++] = (struct writer_gap){
		.series = series, .reason = (uint32_t)place, .tick = w->tick_no, .id = id
	};
	w->series[series].gap = (uint32_t)w->ngaps;
}

void rec_gap(struct rec_writer *w, uint32_t series, const char *reason)
{
	if (series >= w->nseries || !w->in_tick)
		return;
	w->stats.gaps++;
	uint32_t place = w->series[series].gap;
	if (place) {
		struct writer_gap *g = &w->gaps[place - 1];
		if (!strcmp(w->reasons[g->reason], reason)) {
			g->tick = w->tick_no;
			return;
		}
		end_gap(w, place - 1, w->tick_ns);
	}
	begin_gap(w, series, reason);
}

void gaps_tick(struct rec_writer *w)
{
	for (size_t i = w->ngaps; i-- > 0;)
		if (w->gaps[i].tick != w->tick_no)
			end_gap(w, i, w->tick_ns);
}

void gaps_end_series(struct rec_writer *w, uint32_t series)
{
	if (w->series[series].gap)
		end_gap(w, w->series[series].gap - 1, w->tick_ns);
}

void gaps_free(struct rec_writer *w)
{
	for (size_t i = 0; i < w->nreasons; i++)
		free(w->reasons[i]);
	free(w->reasons);
	free(w->gaps);
}
