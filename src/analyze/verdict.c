/*
 * The verdict: which finding explains which, and what comes first.
 *
 * Many causes show the same symptoms. Where a cause and its symptom are both found, and the cause is large
 * enough to explain it, the symptom steps back to a remark, and the cause takes over its severity. Then the
 * gravest comes first; of equals, the one that costs the most time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"

/* A cause explains a symptom if it costs at least this part of the symptom's time. */
struct rule {
	const char *cause, *symptom;
	double part;
};

static const struct rule rules[] = {
	/* memory in swap is read from disk, late */
	{ "swapping", "io-bound", 0 },
	{ "swapping", "memory-near-limit", 0 },
	{ "swapping", "input-bound", 0.3 },
	{ "swapping", "uneven-steps", 0.3 },
	/* a leak is why the limit is near */
	{ "memory-growing", "memory-near-limit", 0 },
	/* checkpoints are writes; their time is not in uneven-steps, but what follows them is */
	{ "checkpoint-stalls", "io-bound", 0.4 },
	{ "checkpoint-stalls", "uneven-steps", 1 },
	/* the loader waits for the disk */
	{ "io-bound", "input-bound", 0.4 },
	{ "io-bound", "uneven-steps", 0.5 },
	/* data loads late because nobody gets a core */
	{ "cpu-oversubscribed", "input-bound", 1 },
	{ "cpu-oversubscribed", "uneven-steps", 0.5 },
	/* taking turns makes outliers, but not of more than about half of what it costs */
	{ "host-contended", "uneven-steps", 2 },
	/* late input is what makes steps uneven */
	{ "input-bound", "uneven-steps", 1 },
	{ "gc-pauses", "uneven-steps", 1 },
};

/* Of equals in severity and loss, what more likely matters. */
static const char *const order[] = {
	"job-failed",
	"memory-near-limit",
	"memory-growing",
	"swapping",
	"gpu-idle",
	"io-bound",
	"input-bound",
	"cpu-oversubscribed",
	"checkpoint-stalls",
	"gc-pauses",
	"uneven-steps",
	"healthy",
	"too-little-evidence",
	"host-contended",
};

static struct finding *get(struct findings *all, const char *id)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->v[i].id, id))
			return &all->v[i];
	return NULL;
}

/* What a symptom costs less what others on the host made of it: waiting for input is also waiting for a core. */
static double own_loss(struct findings *all, const struct finding *symptom)
{
	const struct finding *host = get(all, "host-contended");
	bool inflated = host && !strcmp(symptom->id, "input-bound") && !isnan(host->loss);
	return inflated ? fmax(0, symptom->loss - host->loss) : symptom->loss;
}

static bool explains(struct findings *all, const struct rule *r, const struct finding *cause,
		     const struct finding *symptom)
{
	if (cause->severity == SEVERITY_INFO || symptom->severity == SEVERITY_INFO)
		return false;
	if (r->part <= 0 || isnan(symptom->loss))
		return true;
	return cause->loss >= r->part * own_loss(all, symptom);
}

static void step_back(struct finding *cause, struct finding *symptom)
{
	char advice[sizeof(symptom->advice)];
	if (symptom->severity > cause->severity)
		cause->severity = symptom->severity;
	symptom->severity = SEVERITY_INFO;
	snprintf(advice, sizeof(advice), "Likely an effect of %s: settle that first.", cause->id);
	memcpy(symptom->advice, advice, sizeof(advice));
}

static size_t place(const char *id)
{
	size_t n = sizeof(order) / sizeof(*order);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(order[i], id))
			return i;
	return n;
}

/*
 * Good news comes before remarks, but after anything that is wrong with the run itself. A warning of what may end the
 * run goes before those of what slows it. What others do on the host slows everything alike: it comes first
 * only where the run itself has no limit.
 */
enum { REMARK = 1, BUSY_HOST, GOOD, FULL_HOST, SLOWER, ENDANGERED, LIMITED };

static int gravity(const struct finding *f)
{
	static const int ranks[] = {
		[SEVERITY_LIMIT] = LIMITED,
		[SEVERITY_WARNING] = SLOWER,
		[SEVERITY_OK] = GOOD,
		[SEVERITY_INFO] = REMARK,
	};
	static const struct {
		const char *id;
		enum severity severity;
		int rank;
	} others[] = {
		{ "memory-growing", SEVERITY_WARNING, ENDANGERED },
		{ "memory-near-limit", SEVERITY_WARNING, ENDANGERED },
		{ "job-failed", SEVERITY_WARNING, ENDANGERED },
		{ "host-contended", SEVERITY_LIMIT, FULL_HOST },
		{ "host-contended", SEVERITY_WARNING, BUSY_HOST },
		{ "too-little-evidence", SEVERITY_INFO, GOOD },
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (others[i].severity == f->severity && !strcmp(others[i].id, f->id))
			return others[i].rank;
	return ranks[f->severity];
}

static bool before(const struct finding *a, const struct finding *b)
{
	if (gravity(a) != gravity(b))
		return gravity(a) > gravity(b);
	double x = isnan(a->loss) ? 0 : a->loss, y = isnan(b->loss) ? 0 : b->loss;
	if (fabs(x - y) > 1e-9)
		return x > y;
	return place(a->id) < place(b->id);
}

static void sort(struct findings *all)
{
	for (size_t i = 1; i < all->n; i++) {
		struct finding moving = all->v[i];
		size_t k = i;
		for (; k > 0 && before(&moving, &all->v[k - 1]); k--)
			all->v[k] = all->v[k - 1];
		all->v[k] = moving;
	}
}

void verdict_weigh(struct findings *all)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		struct finding *cause = get(all, rules[i].cause);
		struct finding *symptom = get(all, rules[i].symptom);
		if (cause && symptom && explains(all, &rules[i], cause, symptom))
			step_back(cause, symptom);
	}
	sort(all);
}
