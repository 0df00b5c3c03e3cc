/*
 * Recordings that were left, copied, cut off or damaged. Of a recorder that was killed everything
 * up to the last flush is read, wherever the files are; of a damaged file what can be had is had,
 * or the error is told; and nothing crashes or reads outside (CI runs this under ASan).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "recording_fixture.h"
#include "recording_walk.h"

static uint64_t random_state = 88172645463325252ULL;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void file_path(const struct fixture *f, const char *suffix, char *ret, size_t cap)
{
	snprintf(ret, cap, "%s%s", f->path, suffix);
}

static char *load(const struct fixture *f, const char *suffix, size_t *ret_len)
{
	char path[640];
	file_path(f, suffix, path, sizeof(path));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	size_t len = (size_t)ftell(file);
	rewind(file);
	char *data = malloc(len + 1);
	assert_int_equal(fread(data, 1, len, file), len);
	fclose(file);
	*ret_len = len;
	return data;
}

static void store(const struct fixture *f, const char *suffix, const char *data, size_t len)
{
	char path[640];
	file_path(f, suffix, path, sizeof(path));
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	fclose(file);
}

enum { TICKS = 100 };

static struct rec_writer *begin_run(struct fixture *f, enum rec_journal journal, uint32_t *series)
{
	struct rec_options o = { .size = sizeof(o), .batch_ticks = 30, .journal = journal };
	struct rec_writer *w = create(f, &o);
	uint32_t track, string;
	make_series(w, series);
	assert_int_equal(rec_track(w, 1, TRACK_STEP, &track), 0);
	assert_int_equal(rec_string(w, "forward", 7, &string), 0);
	for (int i = 0; i < 500; i++) {
		int64_t row[7] = { (int64_t)S + i, 5, i, 0, i / 10, 64, REC_NONE };
		assert_int_equal(rec_events(w, track, row, 1), 0);
	}
	rec_notice(w, S, 0, "process", "started", NULL);
	return w;
}

/* In a child that is killed with its recording open and everything flushed but one tick. */
static void killed_run(struct fixture *f, enum rec_journal journal)
{
	int fds[2], status;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		uint32_t series[NSERIES];
		struct rec_writer *w = begin_run(f, journal, series);
		add_ticks(w, series, 0, TICKS);
		rec_flush(w, NULL);
		rec_tick_begin(w, 1000 * S);
		rec_put_i64(w, series[0], 1);
		rec_tick_end(w, NULL);
		if (write(fds[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	char ready;
	assert_int_equal(read(fds[0], &ready, 1), 1);
	struct rec_reader *r = open_it(f);
	assert_true(rec_is_live(r));
	rec_reader_free(r);
	kill(pid, SIGKILL);
	/* Not reaped yet: a zombie is not alive. */
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	r = open_it(f);
	assert_false(rec_is_live(r));
	rec_reader_free(r);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fds[0]);
	close(fds[1]);
}

static void check_open(struct fixture *f, unsigned ticks)
{
	struct rec_reader *r = open_it(f);
	check_all(r, ticks);
	assert_false(rec_is_live(r));
	assert_string_equal(rec_get(r, "state"), "running");
	rec_reader_free(r);
}

static void test_killed(void **state)
{
	struct fixture *f = *state;
	killed_run(f, REC_JOURNAL_WAL);
	assert_true(exists(f, "-wal"));
	check_open(f, TICKS);
	check_open(f, TICKS); /* reading has not changed that */
}

static void test_killed_without_wal(void **state)
{
	killed_run(*state, REC_JOURNAL_ROLLBACK);
	check_open(*state, TICKS);
}

/* As somebody else, for whom the folder is read-only: root becomes nobody, in a child. */
static void check_as_nobody(struct fixture *f)
{
	pid_t pid = fork();
	if (!pid) {
		struct rec_reader *r = NULL;
		struct rec_points p;
		if (!geteuid() && seteuid(65534))
			_exit(1);
		if (rec_open(f->path, &r, &f->e))
			_exit(2);
		const struct rec_series_info *s = rec_series_of(r, 1, ids[3]);
		if (!s || rec_read(r, s->id, 0, 999 * S, &p, &f->e) || rec_damaged(r))
			_exit(3);
		_exit(p.n == TICKS ? 0 : 4);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_read_only_folder(void **state)
{
	struct fixture *f = *state;
	static const enum rec_journal journals[] = { REC_JOURNAL_WAL, REC_JOURNAL_ROLLBACK };
	for (size_t i = 0; i < 2; i++) {
		char shm[640], wal[640];
		killed_run(f, journals[i]);
		file_path(f, "-shm", shm, sizeof(shm));
		file_path(f, "-wal", wal, sizeof(wal));
		chmod(f->folder, 0555);
		chmod(f->path, 0444);
		check_as_nobody(f);
		/* And where the shared memory of the recorder is gone, too. */
		chmod(f->folder, 0755);
		unlink(shm);
		chmod(f->folder, 0555);
		check_as_nobody(f);
		chmod(f->folder, 0755);
		unlink(f->path);
		unlink(wal);
	}
}

static void test_copies(void **state)
{
	struct fixture *f = *state, copy = *f;
	size_t len, wal_len;
	killed_run(f, REC_JOURNAL_WAL);
	char *data = load(f, "", &len), *wal = load(f, "-wal", &wal_len);
	snprintf(copy.path, sizeof(copy.path), "%s/copy with ?strange#name%%41.spot", f->folder);
	store(&copy, "", data, len);
	store(&copy, "-wal", wal, wal_len);
	check_open(&copy, TICKS);
	char path[640];
	static const char *const suffixes[] = { "-wal", "-shm" };
	for (size_t i = 0; i < 2; i++) {
		file_path(&copy, suffixes[i], path, sizeof(path));
		unlink(path);
	}
	/* Without the log there is what was there before: a whole recording, only older. */
	struct rec_reader *r = open_it(&copy);
	assert_int_equal(walk_all(r).failed, 0);
	assert_int_equal(rec_damaged(r), 0);
	rec_reader_free(r);
	file_path(&copy, "-shm", path, sizeof(path));
	unlink(path);
	file_path(&copy, "-wal", path, sizeof(path));
	unlink(path);
	unlink(copy.path);
	free(data);
	free(wal);
}

/* ------------------------------------------------------------------------------------ mutations */

/* Open and read all; the result does not matter, only that there is one. True if it opened. */
static bool survives(struct fixture *f, uint64_t *damaged)
{
	struct rec_reader *r = NULL;
	f->e.text[0] = 0;
	int rc = rec_open(f->path, &r, &f->e);
	if (rc) {
		assert_true(rc < 0 && f->e.text[0]);
		assert_null(r);
		return false;
	}
	walk_all(r);
	*damaged += rec_damaged(r) > 0;
	rec_reader_free(r);
	return true;
}

/* A finished recording, and one with its tail still in it (and no log beside it). */
static char *make_victim(struct fixture *f, bool finished, size_t *len)
{
	uint32_t series[NSERIES];
	struct rec_writer *w = begin_run(f, REC_JOURNAL_ROLLBACK, series);
	for (unsigned i = 0; i < TICKS; i += 5) {
		add_ticks(w, series, i, i + 5);
		assert_int_equal(rec_flush(w, &f->e), 0);
	}
	char *data = NULL;
	if (!finished)
		data = load(f, "", len);
	assert_int_equal(rec_close(w, &f->e), 0);
	return data ? data : load(f, "", len);
}

static void test_truncated(void **state)
{
	struct fixture *f = *state;
	for (int finished = 0; finished < 2; finished++) {
		size_t len;
		uint64_t damaged = 0;
		char *data = make_victim(f, finished, &len);
		for (size_t cut = 0; cut < len; cut += cut < 2000 ? 97 : 1009) {
			store(f, "", data, cut);
			survives(f, &damaged);
		}
		store(f, "", data, len);
		assert_true(survives(f, &damaged));
		free(data);
		unlink(f->path);
	}
}

static void mutate(char *data, size_t len)
{
	size_t at = random_u64() % len;
	switch (random_u64() % 4) {
	case 0: /* one bit */
	case 1:
		data[at] ^= (char)(1 << random_u64() % 8);
		break;
	case 2: /* some bytes */
		for (size_t i = at; i < len && i < at + random_u64() % 64; i++)
			data[i] = (char)random_u64();
		break;
	case 3: /* a piece from elsewhere: often well-formed, in the wrong place */
		memmove(data + at, data + random_u64() % len,
			(len - at) < 64 ? 0 : 1 + random_u64() % 63);
		break;
	}
}

static void test_flipped(void **state)
{
	struct fixture *f = *state;
	for (int finished = 0; finished < 2; finished++) {
		size_t len;
		uint64_t damaged = 0;
		char *data = make_victim(f, finished, &len);
		char *bad = malloc(len + 64);
		unsigned opened = 0;
		for (unsigned round = 0; round < 1500; round++) {
			memcpy(bad, data, len);
			for (unsigned k = 0; k <= round % 5; k++)
				mutate(bad, len);
			store(f, "", bad, len);
			opened += survives(f, &damaged);
		}
		assert_true(opened >
			    300); /* most of a file is data, of which what is whole is read */
		assert_true(damaged > 100);
		free(bad);
		free(data);
		unlink(f->path);
	}
}

/* Damage in the log of a recorder that was killed costs what comes behind it, not the recording. */
static void test_flipped_log(void **state)
{
	struct fixture *f = *state;
	size_t len, wal_len;
	uint64_t damaged = 0;
	killed_run(f, REC_JOURNAL_WAL);
	char *data = load(f, "", &len), *wal = load(f, "-wal", &wal_len);
	for (unsigned round = 0; round < 200; round++) {
		size_t at = random_u64() % wal_len;
		wal[at] ^= 0x10;
		store(f, "", data, len);
		store(f, "-wal", wal, wal_len);
		char shm[640];
		file_path(f, "-shm", shm, sizeof(shm));
		unlink(shm);
		assert_true(survives(f, &damaged));
		wal[at] ^= 0x10;
	}
	assert_int_equal(damaged, 0);
	free(data);
	free(wal);
}

/* One bad chunk is skipped and counted; all others are read. */
static void test_one_bad_chunk(void **state)
{
	struct fixture *f = *state;
	uint32_t series[NSERIES];
	sqlite3 *db;
	struct rec_points p;
	struct rec_writer *w = begin_run(f, REC_JOURNAL_AUTO, series);
	add_ticks(w, series, 0, 90);
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE chunk SET data=zeroblob(40) WHERE id=(2<<32)|0;"
				      "UPDATE chunk SET n=700 WHERE id=(1<<32)|3;"
				      "DELETE FROM chunk WHERE id=(1<<32)|4",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	struct rec_reader *r = open_it(f);
	assert_int_equal(rec_read(r, series[0], 0, UINT64_MAX, &p, &f->e), 0);
	assert_int_equal(p.n, 60);
	assert_int_equal(rec_damaged(r), 1);
	rec_points_free(&p);
	assert_int_equal(rec_read(r, series[3], 0, UINT64_MAX, &p, &f->e), 0);
	assert_int_equal(p.n, 60);
	assert_int_equal(rec_damaged(r), 2);
	rec_points_free(&p);
	check_series(r, 2, series[2], 0, 90);
	rec_reader_free(r);
}

static void exec_on(struct fixture *f, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Well-formed databases that are not well-formed recordings. */
static void test_hostile_schemas(void **state)
{
	struct fixture *f = *state;
	static const char *const hostile[] = {
		"DROP TABLE chunk",
		"DROP TABLE run",
		"DROP TABLE tail; CREATE VIEW tail AS SELECT 1 AS id, randomblob(1000000000) AS "
		"data",
		"ALTER TABLE entity RENAME TO other; CREATE VIEW entity AS SELECT * FROM other",
		"DROP TABLE event; CREATE VIRTUAL TABLE event USING rtree(id,a,b)",
		"UPDATE series SET id=id+4000000000",
		"INSERT INTO series VALUES(9999999999,1,1,'x',0,0)",
		"UPDATE batch SET n=60000",
		"UPDATE batch SET n=-1",
		"UPDATE batch SET t0=t1+1",
		"UPDATE chunk SET data=NULL",
		"UPDATE chunk SET data='text', min='x', t0=-5",
		"UPDATE track SET columns=''",
		"UPDATE track SET columns=hex(zeroblob(300))",
		"UPDATE track SET columns='input_wait t dur what is this'",
		"UPDATE event SET n=65536",
		"UPDATE event SET t1=-1, t0=5",
		"UPDATE metric SET kind='new', type='blob', name=NULL, unit=NULL",
		"UPDATE entity SET kind='tpu', name=NULL",
		"UPDATE run SET value=NULL",
		"INSERT INTO run VALUES('recorder_pid','-1'),('recorder_start','x') ON CONFLICT DO "
		"NOTHING",
		"INSERT INTO tail SELECT 1000,max(id)+1,zeroblob(100000) FROM batch",
		"INSERT INTO tail SELECT 1001,max(id)+1,NULL FROM batch",
		"INSERT INTO change VALUES(500,'entity',1),(501,NULL,NULL),(502,'gap',-1)",
		"CREATE TABLE new(id); ALTER TABLE chunk ADD COLUMN later INT",
	};
	uint64_t damaged = 0;
	size_t len;
	char *data = make_victim(f, true, &len);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		store(f, "", data, len);
		exec_on(f, hostile[i]);
		survives(f, &damaged);
	}
	free(data);
}

/* ------------------------------------------------------------------------------- many at a time */

/*
 * Readers in other processes look all the time while it grows; none ever sees anything but a whole
 * state.
 */
static void look_on(struct fixture *f, int stop)
{
	struct rec_reader *r = NULL;
	struct err e;
	unsigned seen = 0, char_read = 0;
	char c;
	while (!char_read) {
		char_read = read(stop, &c, 1) == 0;
		if (!r && rec_open(f->path, &r, &e)) {
			fprintf(stderr, "%s\n", e.text);
			_exit(1);
		}
		int rc = rec_refresh(r, &e);
		if (rc < 0 && rc != -EBUSY)
			_exit(2);
		const struct rec_series_info *s = rec_series_of(r, 1, ids[3]);
		struct rec_points p;
		rc = s ? rec_read(r, s->id, 0, UINT64_MAX, &p, &e) : -EBUSY;
		if (rc == -EBUSY)
			continue;
		if (rc || p.n < seen || rec_damaged(r))
			_exit(3);
		/* A series without holes, so that sample i is tick i. */
		for (size_t i = 0; i < p.n; i++) {
			int64_t v;
			if (!expected(3, (unsigned)i, &v) || p.i[i] == v)
				continue;
			_exit(4);
		}
		seen = (unsigned)p.n;
		rec_points_free(&p);
		if (seen % 2) { /* now and then from the start */
			rec_reader_free(r);
			r = NULL;
		}
	}
	rec_reader_free(r);
	_exit(seen ? 0 : 5);
}

static void readers_while_it_grows(struct fixture *f, enum rec_journal journal)
{
	enum { READERS = 3 };
	pid_t pids[READERS];
	int fds[2];
	uint32_t series[NSERIES];
	struct rec_writer *w = begin_run(f, journal, series);
	assert_int_equal(rec_flush(w, &f->e), 0);
	assert_int_equal(pipe(fds), 0);
	for (int i = 0; i < READERS; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			rec_abandon(w);
			close(fds[1]);
			fcntl(fds[0], F_SETFL, O_NONBLOCK);
			look_on(f, fds[0]);
		}
	}
	for (unsigned i = 0; i < 400; i++) {
		add_ticks(w, series, i, i + 1);
		int rc = rec_flush(w, &f->e);
		assert_true(rc == 0 || rc == -EBUSY); /* tries again at the next */
		usleep(500);
	}
	close(fds[1]);
	for (int i = 0; i < READERS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	close(fds[0]);
	struct rec_writer_stats stats;
	rec_writer_stats(w, &stats);
	assert_int_equal(stats.lost_ticks, 0);
	assert_int_equal(rec_close(w, &f->e), 0);
	assert_false(exists(f, "-wal") || exists(f, "-journal"));
	struct rec_reader *r = open_it(f);
	check_all(r, 400);
	rec_reader_free(r);
	unlink(f->path);
}

static void test_readers_while_it_grows(void **state)
{
	readers_while_it_grows(*state, REC_JOURNAL_WAL);
	readers_while_it_grows(*state, REC_JOURNAL_ROLLBACK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_killed),           TEST(test_killed_without_wal),
		TEST(test_read_only_folder), TEST(test_copies),
		TEST(test_truncated),        TEST(test_flipped),
		TEST(test_flipped_log),      TEST(test_one_bad_chunk),
		TEST(test_hostile_schemas),  TEST(test_readers_while_it_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
