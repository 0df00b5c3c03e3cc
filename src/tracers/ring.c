/*
 * The tracer that drains the rings in SPOTTER_DIR: the step hook's, the marks', the output matcher's.
 *
 * At each drain: look for new rings where the directory changed, read all heads, then take what waits. Each
 * ring belongs to a process of the job, found by its pid (in whatever pid namespace it lives), and its rows go
 * to tracks of that process. A ring whose process has ended is emptied once more and deleted.
 */
#include "tracers/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "tracers/job_facts.h"
#include "tracers/ring_file.h"
#include "tracers/ring_owner.h"
#include "tracers/wire_decode.h"

#define RINGS_MAX     512 /* open at a time; more wait until one of them has ended */
#define BATCH         512 /* records read at a time */
#define RING_NAME_MAX 64
#define PATIENCE      3                /* drains to wait for the job source to show the process */
#define NOTICES_MAX   64               /* per ring */
#define FRESH_NS      (50 * NS_PER_MS) /* two changes of a directory may share a time stamp */

enum speaker { SPEAKS_HOOK = 1, SPEAKS_MARKS, SPEAKS_REGEX }; /* the greater, the more explicit */

struct ring {
	struct ring_file file;
	struct wire_decoder decoder;
	char name[RING_NAME_MAX];
	char source[128]; /* what it calls itself; empty: not known yet */
	enum speaker speaker;
	struct ring_owner owner;
	uint32_t entity, thread_entity; /* 0: not known yet */
	uint32_t track[TRACK__COUNT];   /* + 1; 0: none yet */
	unsigned patience, notices;
	uint64_t records; /* that wait */
	bool told;        /* steps_source names it */
	bool dying;       /* its process had ended when this drain began */
};

struct rings {
	struct tracer_env env;
	int dirfd;
	DIR *dir;
	struct timespec scanned; /* mtime of the directory at the last scan */
	bool rescan;             /* in any case */
	struct map refused;      /* hash of the names that are no rings */
	struct ring *ring[RINGS_MAX];
	size_t nrings;
	struct ring_owners owners;
	struct job_facts facts;
	struct map speakers; /* pid (0: whole job) -> loudest speaker of each phase, 4 bits each */
	struct tracer_totals past; /* of rings that are gone */
	bool closing;

	/* While one run of rows of one kind is collected: */
	struct ring *now;
	enum track_kind kind;
	size_t nrows;
	int64_t rows[BATCH * TRACK_COLUMNS_MAX];
	struct wire_record records[BATCH];
};

/* -------------------------------------------------------------------------------- where rows go */

/* Ranges and marks of another thread than the main one would cross those of the main one. */
static uint32_t entity_for(struct rings *s, struct ring *r, enum track_kind kind)
{
	const struct ring_file *f = &r->file;
	if ((kind != TRACK_RANGE && kind != TRACK_MARK) || !f->tid || f->tid == f->pid || !f->pid)
		return r->entity;
	if (!r->thread_entity) {
		char name[32];
		snprintf(name, sizeof(name), "thread %u", f->tid);
		if (rec_entity(s->env.w, ENTITY_THREAD, r->entity, name, f->tid, clock_mono_ns(),
			       &r->thread_entity))
			return r->entity;
	}
	return r->thread_entity;
}

static void put_rows(struct rings *s)
{
	struct ring *r = s->now;
	uint32_t *track = &r->track[s->kind], id;
	if (!s->nrows)
		return;
	if (!*track && !rec_track(s->env.w, entity_for(s, r, s->kind), s->kind, &id))
		*track = id + 1;
	if (!*track || rec_events(s->env.w, *track - 1, s->rows, s->nrows))
		r->decoder.lost += s->nrows;
	s->nrows = 0;
}

/* ------------------------------------------------------------------------------- whose steps count */

static unsigned loudest(const struct rings *s, uint32_t pid, unsigned phase)
{
	uint64_t mine = 0, all = 0;
	map_get(&s->speakers, pid, &mine);
	map_get(&s->speakers, 0, &all);
	mine = mine >> (4 * phase) & 15;
	all = all >> (4 * phase) & 15;
	return (unsigned)(mine > all ? mine : all);
}

/* This ring has steps of this phase. */
static void speak_up(struct rings *s, const struct ring *r, unsigned phase)
{
	uint64_t said = 0;
	if (r->speaker <= loudest(s, r->file.pid, phase))
		return;
	map_get(&s->speakers, r->file.pid, &said);
	said = (said & ~(15ULL << (4 * phase))) | (uint64_t)r->speaker << (4 * phase);
	map_put(&s->speakers, r->file.pid, said);
}

static unsigned phase_of(int64_t phase)
{
	return phase == 1;
}

static void set_source(struct ring *r, const char *source)
{
	r->speaker = !strncmp(source, "regex", 5) ? SPEAKS_REGEX
		     : !strcmp(source, "marks")   ? SPEAKS_MARKS
						  : SPEAKS_HOOK;
	snprintf(r->source, sizeof(r->source), "%s", source);
}

/*
 * Before anything is taken: does a more explicit source of steps speak than was known? So the steps of one
 * drain, often all there are of a short job, are never counted twice.
 */
static void listen(struct rings *s, struct ring *r)
{
	uint64_t seen = 0;
	int64_t n;
	if (!*r->source && ring_file_peek(&r->file, 0, s->records, 1) == 1) {
		const struct wire_record *first = s->records;
		char text[WIRE_TEXT_BYTES + 1] = "";
		memcpy(text, first->arg, WIRE_TEXT_BYTES);
		bool fact = first->kind == WIRE_FACT && !strncmp(text, "hook=", 5);
		set_source(r, fact ? text + 5 : "hook");
		wire_clean_text(r->source, strlen(r->source));
	}
	while (r->speaker > SPEAKS_HOOK && loudest(s, r->file.pid, 0) < (unsigned)r->speaker &&
	       (n = ring_file_peek(&r->file, seen, s->records, BATCH)) > 0) {
		for (int64_t i = 0; i < n; i++)
			if (s->records[i].kind == WIRE_STEP)
				speak_up(s, r, phase_of(s->records[i].arg[STEP_PHASE - 2]));
		seen += (uint64_t)n;
	}
}

/* --------------------------------------------------------------------------------------- the sink */

static void on_event(void *ctx, enum track_kind kind, const int64_t *row, int ncolumns)
{
	struct rings *s = ctx;
	struct ring *r = s->now;
	if (kind == TRACK_STEP) {
		unsigned phase = phase_of(row[STEP_PHASE]);
		speak_up(s, r, phase);
		if (r->speaker < loudest(s, r->file.pid, phase))
			return;
		if (!phase && !r->told)
			r->told = !rec_set(s->env.w, "steps_source", r->source);
	}
	if (kind != s->kind || s->nrows == BATCH)
		put_rows(s);
	s->kind = kind;
	memcpy(&s->rows[s->nrows++ * (size_t)ncolumns], row, (size_t)ncolumns * sizeof(*row));
}

static uint32_t on_string(void *ctx, const char *text, size_t len)
{
	struct rings *s = ctx;
	uint32_t id = 0;
	return rec_string(s->env.w, text, len, &id) ? 0 : id;
}

static void on_fact(void *ctx, const char *key, const char *value)
{
	struct rings *s = ctx;
	if (!strcmp(key, "hook"))
		set_source(s->now, value);
	else if (job_facts_set(&s->facts, s->env.w, s->now->file.pid, key, value))
		s->now->decoder.lost++;
}

static void on_notice(void *ctx, uint64_t t_ns, const char *text)
{
	struct rings *s = ctx;
	if (s->now->notices++ < NOTICES_MAX)
		rec_notice(s->env.w, t_ns, s->now->entity, "hook", text, NULL);
	else
		s->now->decoder.lost++;
}

static const struct wire_sink sink = {
	.event = on_event, .string = on_string, .fact = on_fact, .notice = on_notice
};

/* ------------------------------------------------------------------------------ rings come and go */

static uint64_t hash_name(const char *name)
{
	uint64_t h = 0xcbf29ce484222325;
	while (*name)
		h = (h ^ (unsigned char)*name++) * 0x100000001b3;
	return h;
}

/* PID.TID.N.ring */
static bool is_ring_name(const char *name)
{
	static const char digits[] = "0123456789";
	if (strlen(name) >= RING_NAME_MAX)
		return false;
	for (int i = 0; i < 3; i++) {
		size_t n = strspn(name, digits);
		if (!n || name[n] != '.')
			return false;
		name += n + 1;
	}
	return !strcmp(name, "ring");
}

static void meet(struct rings *s, const char *name)
{
	uint64_t known;
	for (size_t i = 0; i < s->nrings; i++)
		if (!strcmp(s->ring[i]->name, name))
			return;
	if (map_get(&s->refused, hash_name(name), &known))
		return;
	struct ring *r = s->nrings < RINGS_MAX ? calloc(1, sizeof(*r)) : NULL;
	int rc = r ? ring_file_open(s->dirfd, name, &r->file) : -EMFILE;
	if (rc) {
		if (rc == -EBADMSG || rc == -ELOOP || rc == -EISDIR || rc == -ENXIO)
			map_put(&s->refused, hash_name(name), 1);
		else
			s->rescan = true; /* not finished, or no room now */
		free(r);
		return;
	}
	wire_decoder_init(&r->decoder);
	strcpy(r->name, name);
	s->ring[s->nrings++] = r;
}

static void scan(struct rings *s)
{
	struct stat st;
	if (fstat(s->dirfd, &st))
		return;
	uint64_t changed = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	bool same =
		st.st_mtim.tv_sec == s->scanned.tv_sec && st.st_mtim.tv_nsec == s->scanned.tv_nsec;
	if (same && !s->rescan)
		return;
	s->scanned = st.st_mtim;
	uint64_t now = clock_real_ns();
	s->rescan = now < changed + FRESH_NS;
	rewinddir(s->dir);
	for (const struct dirent *entry; (entry = readdir(s->dir));)
		if (is_ring_name(entry->d_name))
			meet(s, entry->d_name);
}

static void count(const struct ring *r, struct tracer_totals *t)
{
	/* A cost greater than the time since the ring was made is no cost. */
	uint64_t now = clock_mono_ns(), age = now > r->file.start_ns ? now - r->file.start_ns : 0;
	t->records += r->decoder.records;
	t->lost += r->decoder.lost + r->file.dropped;
	if (r->file.cost_ns < age)
		t->job_cost_ns += r->file.cost_ns;
}

static void forget(struct rings *s, size_t i, bool delete)
{
	struct ring *r = s->ring[i];
	count(r, &s->past);
	if (r->file.dropped) {
		char text[sizeof(r->source) + 64];
		snprintf(text, sizeof(text), "%llu records of %s were lost: its ring was full",
			 (unsigned long long)r->file.dropped, r->source);
		rec_notice(s->env.w, clock_mono_ns(), r->entity, "lost", text, NULL);
	}
	if (delete)
		unlinkat(s->dirfd, r->name, 0);
	ring_file_close(&r->file);
	wire_decoder_free(&r->decoder);
	free(r);
	s->ring[i] = s->ring[--s->nrings];
}

/* It makes no sense (any more): leave it alone for ever. */
static void refuse(struct rings *s, size_t i)
{
	struct ring *r = s->ring[i];
	char text[128];
	snprintf(text, sizeof(text), "the ring %s is damaged; what it held is lost", r->name);
	rec_notice(s->env.w, clock_mono_ns(), r->entity, "lost", text, NULL);
	map_put(&s->refused, hash_name(r->name), 1);
	r->decoder.lost++;
	r->file.dropped = 0;
	forget(s, i, false);
}

/* -------------------------------------------------------------------------------------- the drain */

/* Is the entity known, or shall it be made now? False: wait for the job source. */
static bool settle_owner(struct rings *s, struct ring *r)
{
	if (r->entity)
		return true;
	bool hurry = s->closing || r->dying || r->patience++ >= PATIENCE ||
		     r->records > r->file.capacity / 2;
	r->entity = ring_owner_entity(&s->owners, &r->owner, &r->file, hurry);
	return r->entity != 0;
}

/* What waits now; -EBADMSG if the ring is damaged. */
static int take(struct rings *s, struct ring *r, uint64_t now)
{
	int64_t n;
	s->now = r;
	while (r->records && (n = ring_file_peek(&r->file, 0, s->records, BATCH)) != 0) {
		if (n < 0)
			return (int)n;
		wire_decode(&r->decoder, s->records, (size_t)n, now, &sink, s);
		ring_file_advance(&r->file, (uint64_t)n);
		r->records -= (uint64_t)n;
	}
	put_rows(s);
	return 0;
}

static void rings_drain(void *state)
{
	struct rings *s = state;
	uint64_t waiting = 0;
	scan(s);
	for (size_t i = s->nrings; i-- > 0;) {
		struct ring *r = s->ring[i];
		r->dying = ring_owner_ended(&s->owners, &r->owner, &r->file);
		int64_t n = ring_file_look(&r->file);
		if (n < 0) {
			refuse(s, i);
			continue;
		}
		r->records = (uint64_t)n;
		waiting += r->records;
	}
	if (waiting)
		ring_file_order();
	uint64_t now = clock_mono_ns();
	for (size_t i = 0; i < s->nrings; i++)
		if (s->ring[i]->records)
			listen(s, s->ring[i]);
	for (size_t i = s->nrings; i-- > 0;) {
		struct ring *r = s->ring[i];
		if (r->records && !settle_owner(s, r))
			continue;
		if (take(s, r, now))
			refuse(s, i);
		else if (r->dying)
			forget(s, i, true);
	}
}

/* ------------------------------------------------------------------------------------- the tracer */

static void rings_close(void *state)
{
	struct rings *s = state;
	if (!s)
		return;
	s->closing = true;
	if (s->dir)
		rings_drain(s);
	while (s->nrings)
		forget(s, s->nrings - 1, true);
	if (s->dir)
		closedir(s->dir);
	map_free(&s->refused);
	map_free(&s->speakers);
	ring_owners_free(&s->owners);
	job_facts_free(&s->facts);
	free(s);
}

static int rings_open(const struct tracer_env *env, void **ret_state, struct err *e)
{
	if (!env->dir || !*env->dir)
		return err_set(e, ENOENT, "no directory to share with the job: steps are not seen");
	struct rings *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ENOMEM, "no memory for the rings: steps are not seen");
	s->env = *env;
	s->rescan = true;
	map_init(&s->refused);
	map_init(&s->speakers);
	ring_owners_init(&s->owners, &s->env);
	job_facts_init(&s->facts);
	s->dir = opendir(env->dir);
	if (!s->dir) {
		int code = errno;
		rings_close(s);
		return err_set(e, code, "%s: %s; steps are not seen", env->dir, strerror(code));
	}
	s->dirfd = dirfd(s->dir);
	*ret_state = s;
	return 0;
}

static void rings_totals(const void *state, struct tracer_totals *ret)
{
	const struct rings *s = state;
	ret->records += s->past.records;
	ret->lost += s->past.lost;
	ret->job_cost_ns += s->past.job_cost_ns;
	for (size_t i = 0; i < s->nrings; i++)
		count(s->ring[i], ret);
}

const struct tracer tracer_rings = {
	.name = "rings",
	.help = "steps, epochs, checkpoints, collector pauses and marks from inside the job",
	.open = rings_open,
	.drain = rings_drain,
	.totals = rings_totals,
	.close = rings_close,
};
