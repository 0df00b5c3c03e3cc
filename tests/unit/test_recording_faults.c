/*
 * Bad luck while recording: the Nth change to a file fails or is where the process is killed, the
 * Nth allocation fails, the disk is full; for N = 1, 2, 3, ... until nothing strikes. Each time the
 * file must not exist or must open, and hold everything up to the last flush that was said to be
 * done. (Leaks are ASan's.)
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "fault_vfs.h"
#include "recording_fixture.h"
#include "recording_walk.h"

/* ---------------------------------------------------------------------------------- allocations */

static struct {
	long left; /* allocations until one fails; 0: none will */
	bool forever;
	long struck;
} drought;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

static bool dry(void)
{
	if (!drought.left)
		return false;
	if (drought.left > 1) {
		drought.left--;
		return false;
	}
	drought.struck++;
	if (!drought.forever)
		drought.left = 0;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return dry() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return dry() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return dry() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return dry() ? NULL : __real_strdup(s);
}

static sqlite3_mem_methods sqlite_memory;

static void *sqlite_malloc(int n)
{
	return dry() ? NULL : sqlite_memory.xMalloc(n);
}

static void *sqlite_realloc(void *p, int n)
{
	return dry() ? NULL : sqlite_memory.xRealloc(p, n);
}

static void drought_arm(long n, bool forever)
{
	drought.left = n;
	drought.forever = forever;
	drought.struck = 0;
}

/* ---------------------------------------------------------------------------------- a short run */

enum { TICKS = 24, BATCH = 8 };

struct progress {
	unsigned flushed; /* ticks that are safe */
	bool created;
	bool closed; /* and nothing was said to be lost */
};

static void put_tick(struct rec_writer *w, const uint32_t *series, unsigned i)
{
	rec_tick_begin(w, S + i * 100 * MS + i % 3);
	for (unsigned k = 0; k < NSERIES; k++) {
		int64_t v;
		if (!expected(k, i, &v))
			rec_gap(w, series[k], "not there");
		else if (k == 2)
			rec_put_f64(w, series[k], as_load(v));
		else
			rec_put_i64(w, series[k], v);
	}
}

/* Give up as soon as something cannot be had in memory: that is for the caller to see. */
static int short_run(const char *path, enum rec_journal journal, struct progress *p,
		     int progress_fd)
{
	struct rec_options o = {
		.size = sizeof(o), .batch_ticks = BATCH, .journal = journal, .one_thread = true
	};
	struct rec_writer *w;
	uint32_t host, track, string, series[NSERIES];
	int rc = rec_create(path, &o, &w, NULL);
	if (rc)
		return rc;
	p->created = true;
	rc = rec_entity(w, ENTITY_HOST, 0, "node1", 0, S, &host);
	for (unsigned k = 0; !rc && k < NSERIES; k++)
		rc = rec_series(w, host, ids[k], "/proc/test", &series[k]);
	if (!rc)
		rc = rec_track(w, host, TRACK_MARK, &track);
	bool whole = true;
	for (unsigned i = 0; !rc && i < TICKS; i++) {
		int64_t row[] = { (int64_t)(S + i * 100 * MS), 0, 1, i };
		rec_string(w, "mark", 4, &string);
		rec_events(w, track, row, 1);
		put_tick(w, series, i);
		whole &= !rec_tick_end(w, NULL);
		if (i % 3 == 0 && !rec_flush(w, NULL) && whole)
			p->flushed = i + 1;
		if (progress_fd >= 0 && write(progress_fd, p, sizeof(*p)) != sizeof(*p))
			rc = -EPIPE;
	}
	rec_notice(w, S, 0, "end", "that was it", NULL);
	struct rec_writer_stats stats;
	rec_writer_stats(w, &stats);
	int closed = rec_close(w, NULL);
	p->closed = !closed && !rc && !stats.lost_ticks && !stats.lost_samples;
	if (progress_fd >= 0 && write(progress_fd, p, sizeof(*p)) != sizeof(*p))
		rc = -EPIPE;
	return rc ? rc : closed;
}

/* Whatever befell it, what was flushed is there, and nothing that was never put. */
static void check_survivor(struct fixture *f, const struct progress *p)
{
	if (!p->created) {
		assert_false(exists(f, "") || exists(f, "-wal") || exists(f, "-journal"));
		return;
	}
	struct rec_reader *r = open_it(f);
	for (unsigned k = 0; k < NSERIES && p->flushed; k++) {
		const struct rec_series_info *s = rec_series_of(r, 1, ids[k]);
		assert_non_null(s);
		check_series(r, k, s->id, 0, p->flushed);
	}
	if (p->closed)
		check_all(r, TICKS);
	assert_int_equal(walk_all(r).failed, 0);
	assert_int_equal(rec_damaged(r), 0);
	rec_reader_free(r);
}

static void clean(struct fixture *f)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char path[640];
		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		unlink(path);
	}
}

/* ------------------------------------------------------------------------------------ the loops */

static void fail_each_change(struct fixture *f, enum rec_journal journal, enum fault_kind kind,
			     bool forever)
{
	for (long n = 1;; n++) {
		struct progress p = { 0 };
		fault_arm(kind, n, forever);
		short_run(f->path, journal, &p, -1);
		long struck = fault.struck;
		fault_arm(FAULT_NONE, 0, false);
		check_survivor(f, &p);
		clean(f);
		if (!struck) {
			assert_true(n > 30 && p.closed);
			return;
		}
	}
}

static void test_each_write_fails(void **state)
{
	static const enum rec_journal journals[] = { REC_JOURNAL_WAL, REC_JOURNAL_ROLLBACK };
	for (size_t i = 0; i < 2; i++) {
		fail_each_change(*state, journals[i], FAULT_FULL, false);
		fail_each_change(*state, journals[i], FAULT_FULL, true);
		fail_each_change(*state, journals[i], FAULT_IO, false);
		fail_each_change(*state, journals[i], FAULT_IO, true);
	}
}

/* Run in a child that dies at its Nth change; true if it did. */
static bool killed_run(struct fixture *f, enum rec_journal journal, long n, struct progress *p)
{
	int fds[2], status;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		struct progress own = { 0 };
		close(fds[0]);
		fault_arm(FAULT_KILL, n, false);
		short_run(f->path, journal, &own, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	while (read(fds[0], p, sizeof(*p)) == (ssize_t)sizeof(*p))
		;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 9;
}

static void kill_at_each_change(struct fixture *f, enum rec_journal journal)
{
	/* Each change of the first flushes; later ones are alike, and a fork under ASan is slow. */
	for (long n = 1;; n += n < 100 ? 1 : 3) {
		struct progress p = { 0 };
		bool killed = killed_run(f, journal, n, &p);
		if (p.created) {
			check_survivor(f, &p);
		} else if (exists(f, "")) { /* died while making it: whatever it is, it is told */
			struct rec_reader *r = NULL;
			if (!rec_open(f->path, &r, &f->e))
				rec_reader_free(r);
			else
				assert_true(f->e.text[0]);
		}
		clean(f);
		if (!killed) {
			assert_true(n > 30 && p.closed);
			return;
		}
	}
}

static void test_killed_at_each_write(void **state)
{
	kill_at_each_change(*state, REC_JOURNAL_WAL);
	kill_at_each_change(*state, REC_JOURNAL_ROLLBACK);
}

/* Every allocation at first, then strides: SQLite alone makes some thousands. */
static long next_n(long n)
{
	return n < 400 ? n + 1 : n + 7;
}

static void test_each_allocation_of_the_writer_fails(void **state)
{
	struct fixture *f = *state;
	for (int forever = 0; forever < 2; forever++) {
		for (long n = 1;; n = next_n(n)) {
			struct progress p = { 0 };
			drought_arm(n, forever);
			short_run(f->path, REC_JOURNAL_WAL, &p, -1);
			long struck = drought.struck;
			drought_arm(0, false);
			check_survivor(f, &p);
			clean(f);
			if (!struck)
				break;
		}
	}
}

static void test_each_allocation_of_the_reader_fails(void **state)
{
	struct fixture *f = *state;
	/* Once with a tail, once without. */
	for (int closed = 0; closed < 2; closed++) {
		struct progress p = { 0 };
		struct rec_writer *w =
			create(f, &(struct rec_options){ .size = sizeof(struct rec_options),
							 .batch_ticks = BATCH });
		uint32_t series[NSERIES];
		make_series(w, series);
		add_ticks(w, series, 0, 20);
		assert_int_equal(rec_flush(w, &f->e), 0);
		if (closed)
			assert_int_equal(rec_close(w, &f->e), 0);
		for (long n = 1;; n = next_n(n)) {
			struct rec_reader *r = NULL;
			drought_arm(n, n % 2);
			int rc = rec_open(f->path, &r, &f->e);
			if (!rc) {
				walk_all(r);
			} else {
				assert_true(rc < 0 && f->e.text[0]);
			}
			long struck = drought.struck;
			drought_arm(0, false);
			rec_reader_free(r);
			if (!struck)
				break;
		}
		p.created = true;
		p.flushed = 20;
		check_survivor(f, &p);
		if (!closed)
			assert_int_equal(rec_close(w, &f->e), 0);
		clean(f);
	}
}

/* ----------------------------------------------------------------------------- a real full disk */

static int fill_up(const char *folder)
{
	char path[640];
	struct err e;
	struct rec_options o = { .size = sizeof(o), .batch_ticks = 50 };
	struct rec_writer *w;
	uint32_t host, s[40];
	int rc = 0;
	unsigned flushed = 0, ticks = 0;
	snprintf(path, sizeof(path), "%s/full.spot", folder);
	if (rec_create(path, &o, &w, &e) || rec_entity(w, ENTITY_HOST, 0, "h", 0, 1, &host))
		return 1;
	for (unsigned k = 0; k < 40; k++)
		rec_series(w, host, (enum metric_id)k, "x", &s[k]);
	uint64_t random = 1;
	for (; !rc && ticks < 100000; ticks++) {
		rec_tick_begin(w, (ticks + 1) * S);
		for (unsigned k = 0; k < 40; k++)
			rec_put_i64(w, s[k],
				    (int64_t)(random = random * 6364136223846793005ULL + 1));
		rc = rec_tick_end(w, &e);
		flushed = rc ? flushed : ticks + 1;
	}
	if (rc != -ENOSPC || !strstr(e.text, "no space left"))
		return 2;
	/* Readable up to the last flush, and it goes on once there is room. */
	struct rec_reader *r;
	struct rec_points p;
	if (rec_open(path, &r, &e) || rec_read(r, s[0], 0, UINT64_MAX, &p, &e))
		return 3;
	if (p.n < flushed || rec_damaged(r))
		return 4;
	rec_points_free(&p);
	rec_reader_free(r);
	if (mount("tmpfs", folder, "tmpfs", MS_REMOUNT, "size=8m"))
		return 5;
	rec_tick_begin(w, (ticks + 1) * S);
	rec_put_i64(w, s[0], 4711);
	if (rec_tick_end(w, &e) && rec_flush(w, &e))
		return 6;
	if (rec_close(w, &e))
		return 7;
	if (rec_open(path, &r, &e) || rec_read(r, s[0], 0, UINT64_MAX, &p, &e))
		return 8;
	if (p.n != ticks + 1 || p.i[p.n - 1] != 4711 || rec_damaged(r))
		return 9;
	rec_points_free(&p);
	rec_reader_free(r);
	unlink(path);
	return 0;
}

static void test_disk_full(void **state)
{
	struct fixture *f = *state;
	char folder[128];
	snprintf(folder, sizeof(folder), "%s/small", f->folder);
	mkdir(folder, 0700);
	pid_t pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("tmpfs", folder, "tmpfs", 0, "size=400k"))
			_exit(77);
		_exit(fill_up(folder));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rmdir(folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("a small file system cannot be mounted here: not root\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * Nothing can be written for long: memory stays bounded, what is lost is counted, what came later
 * is kept.
 */
static void test_long_drought_of_disk(void **state)
{
	struct fixture *f = *state;
	struct rec_options o = { .size = sizeof(o), .batch_ticks = 10 };
	struct rec_writer *w = create(f, &o);
	struct rec_writer_stats stats;
	uint32_t series[NSERIES], track;
	make_series(w, series);
	assert_int_equal(rec_track(w, 1, TRACK_MARK, &track), 0);
	fault_arm(FAULT_FULL, 1, true);
	int rc = 0;
	for (unsigned i = 0; i < 100; i++) {
		put_tick(w, series, i);
		int now = rec_tick_end(w, &f->e);
		rc = now ? now : rc;
	}
	assert_int_equal(rc, -ENOSPC);
	int64_t *rows = calloc(4 * 100000, sizeof(*rows));
	for (unsigned i = 0; i < 4; i++)
		rec_events(w, track, rows, 100000);
	free(rows);
	rec_writer_stats(w, &stats);
	assert_int_equal(stats.ticks, 20);
	assert_int_equal(stats.lost_ticks, 80);
	assert_int_equal(stats.lost_events, 200000);
	fault_arm(FAULT_NONE, 0, false);
	for (unsigned i = 100; i < 200; i++) {
		put_tick(w, series, i);
		assert_int_equal(rec_tick_end(w, &f->e), 0);
	}
	rec_writer_stats(w, &stats);
	assert_in_range(stats.lost_ticks, 80, 95); /* until it tried again */
	assert_int_equal(rec_close(w, &f->e), 0);
	struct rec_reader *r = open_it(f);
	check_series(r, 0, series[0], 0, 20);
	check_series(r, 0, series[0], 120, 200);
	int64_t *got;
	size_t n;
	assert_int_equal(rec_read_events(r, track, 0, UINT64_MAX, &got, &n, &f->e), 0);
	assert_int_equal(n, 200000);
	free(got);
	rec_reader_free(r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_write_fails),
		TEST(test_killed_at_each_write),
		TEST(test_each_allocation_of_the_writer_fails),
		TEST(test_each_allocation_of_the_reader_fails),
		TEST(test_disk_full),
		TEST(test_long_drought_of_disk),
	};
	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory);
	sqlite3_mem_methods dry_memory = sqlite_memory;
	dry_memory.xMalloc = sqlite_malloc;
	dry_memory.xRealloc = sqlite_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &dry_memory);
	if (sqlite3_initialize() != SQLITE_OK || fault_install() != SQLITE_OK)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
