/* The live view: steps of the last seconds. */
#include <math.h>
#include <stdlib.h>

#include "analyze/stats.h"
#include "base/clock.h"
#include "report/top_parts.h"

#define STEPS_SECONDS 10 /* steps per second and input wait are over this much */

/* The track of steps that has the most: the leading process's. */
static const struct rec_track_info *leading_track(struct top *top, uint64_t *ret_n, int *ret_tracks)
{
	const struct rec_track_info *all, *best = NULL;
	size_t n = rec_tracks(top->t.r, &all);
	*ret_n = 0;
	*ret_tracks = 0;
	for (size_t i = 0; i < n; i++) {
		struct rec_size size;
		if (all[i].kind != TRACK_STEP || all[i].ncolumns <= STEP_INPUT_WAIT ||
		    rec_track_size(top->t.r, all[i].id, &size, NULL) < 0 || !size.n)
			continue;
		(*ret_tracks)++;
		if (size.n > *ret_n) {
			best = &all[i];
			*ret_n = size.n;
		}
	}
	return best;
}

struct step_sums {
	double n, dur, wait, waited_dur, batch, batches,
		span; /* batch and waits: NaN where not known */
	int64_t epoch;
	bool evaluating;
};

static struct step_sums sum_steps(const int64_t *rows, size_t n, int ncolumns)
{
	struct step_sums s = { .wait = NAN, .batch = NAN, .epoch = REC_NONE };
	for (size_t i = 0; i < n; i++) {
		const int64_t *row = rows + i * (size_t)ncolumns;
		double dur = row[EV_DUR] == REC_NONE ? 0 : (double)row[EV_DUR];
		s.n++;
		s.dur += dur;
		s.epoch = row[STEP_EPOCH];
		s.evaluating = row[STEP_PHASE] == 1;
		if (row[STEP_INPUT_WAIT] != REC_NONE) {
			s.wait = top_sum(s.wait, (double)row[STEP_INPUT_WAIT]);
			s.waited_dur += dur;
		}
		if (row[STEP_BATCH] != REC_NONE) {
			s.batch = top_sum(s.batch, (double)row[STEP_BATCH]);
			s.batches++;
		}
		s.span = (double)(row[EV_T] - rows[EV_T]);
	}
	return s;
}

static double median_ms(const int64_t *rows, size_t n, int ncolumns)
{
	double *v = calloc(n + 1, sizeof(*v)), result = NAN;
	size_t known = 0;
	for (size_t i = 0; v && i < n; i++)
		if (rows[i * (size_t)ncolumns + EV_DUR] != REC_NONE)
			v[known++] = (double)rows[i * (size_t)ncolumns + EV_DUR] / 1e6;
	if (known)
		result = stat_median(v, known);
	free(v);
	return result;
}

void top_add_steps(struct top *top)
{
	uint64_t total, span = STEPS_SECONDS * NS_PER_S, now = top->t.now;
	int tracks;
	const struct rec_track_info *track = leading_track(top, &total, &tracks);
	int64_t *rows = NULL;
	size_t n = 0;
	struct doc_node *s = doc_section(doc_object(top->root, "steps"), "STEPS", DOC_LINE);
	if (!track) {
		bool hooked = rec_get(top->t.r, "steps_source") || rec_get(top->t.r, "fact.torch");
		const char *why = hooked ? "none yet" : "none seen (no PyTorch, no --steps-from)";
		doc_show(doc_string(s, "missing", why), NULL, NULL);
		return;
	}
	int rc = rec_read_events(top->t.r, track->id, now > span ? now - span : 0, UINT64_MAX,
				 &rows, &n, NULL);
	top->t.rc = rc < 0 && !top->t.rc ? rc : top->t.rc;
	struct step_sums sums = sum_steps(rows, n, track->ncolumns);
	/* n steps begin n - 1 distances apart. */
	double per_s = n > 1 && sums.span > 0 ? (sums.n - 1) / sums.span * 1e9 : NAN;
	doc_show(doc_int(s, "count", (int64_t)total, "count"), NULL, NULL);
	doc_show(doc_number(s, "per_s", per_s, "per_s"), NULL, NULL);
	doc_show(doc_number(s, "p50_ms", median_ms(rows, n, track->ncolumns), "ms"), "p50", NULL);
	doc_show(doc_number(s, "input_wait_share",
			    sums.waited_dur > 0 ? sums.wait / sums.waited_dur : NAN, "ratio"),
		 "input wait", NULL);
	doc_show(doc_number(s, "samples_per_s",
			    sums.batches > 0 ? sums.batch / sums.batches * per_s : NAN, "count"),
		 NULL, "samples/s");
	doc_show(doc_number(s, "epoch", n && sums.epoch != REC_NONE ? (double)sums.epoch : NAN,
			    "count"),
		 "epoch", sums.evaluating ? "(evaluating)" : NULL);
	if (tracks > 1)
		doc_show(doc_int(s, "processes", tracks, "count"), "one of", "processes that step");
	doc_number(s, "window_s", STEPS_SECONDS, "s");
	free(rows);
}
