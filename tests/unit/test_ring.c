/*
 * Rings, from producer to recording: what is written arrives whole and once; what is torn, hostile or lost is
 * counted and hurts nobody. The tracer runs against a real recording, which is then read back.
 */
#include "recording_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tracers/ring_file.h"
#include "tracers/ring_writer.h"
#include "tracers/rings.h"
#include "tracers/wire_decode.h"

struct bench {
	struct fixture *f;
	struct jobset jobset;
	struct tracer_env env;
	void *tracer;
	char dir[96];
};

static void open_bench(struct bench *b, struct fixture *f)
{
	uint32_t host;
	memset(b, 0, sizeof(*b));
	b->f = f;
	snprintf(b->dir, sizeof(b->dir), "%s/rings", f->folder);
	assert_int_equal(mkdir(b->dir, 0700), 0);
	map_init(&b->jobset.pids);
	assert_int_equal(rec_create(f->path, NULL, &b->env.w, &f->e), 0);
	assert_int_equal(rec_entity(b->env.w, ENTITY_HOST, 0, "h", 0, 1, &host), 0);
	assert_int_equal(rec_entity(b->env.w, ENTITY_JOB, host, "job", 1, 1, &b->env.job), 0);
	b->env.dir = b->dir;
	b->env.jobset = &b->jobset;
	assert_int_equal(tracer_rings.open(&b->env, &b->tracer, &f->e), 0);
}

/* An entity for a process of the job, as the job source makes it. */
static uint32_t join(struct bench *b, pid_t pid)
{
	uint32_t entity;
	assert_int_equal(rec_entity(b->env.w, ENTITY_PROCESS, b->env.job, "p", pid, 1, &entity), 0);
	assert_int_equal(map_put(&b->jobset.pids, (uint64_t)pid, entity), 0);
	return entity;
}

/* Close the tracer and the recording; open it for reading. */
static struct rec_reader *finish(struct bench *b, struct tracer_totals *totals)
{
	struct rec_reader *r;
	tracer_rings.drain(b->tracer);
	if (totals)
		tracer_rings.totals(b->tracer, memset(totals, 0, sizeof(*totals)));
	tracer_rings.close(b->tracer);
	assert_int_equal(rec_close(b->env.w, &b->f->e), 0);
	map_free(&b->jobset.pids);
	assert_int_equal(rmdir(b->dir), 0); /* every ring was deleted */
	assert_int_equal(rec_open(b->f->path, &r, &b->f->e), 0);
	return r;
}

static void step(struct ring_writer *w, int64_t index, int64_t phase)
{
	uint64_t now = clock_mono_ns();
	struct wire_record r = { .t_ns = now - 1000,
				 .dur_ns = 1000,
				 .kind = WIRE_STEP,
				 .arg = { index, phase, 0, 64, WIRE_NONE } };
	ring_writer_put(w, &r);
}

/* Rows of a kind over all tracks, and the kind of the entity of the last of them. */
static size_t rows_of(struct rec_reader *r, enum track_kind kind, int64_t *rows, size_t max,
		      enum entity_kind *ret_on)
{
	const struct rec_track_info *tracks;
	size_t total = 0;
	for (size_t n = rec_tracks(r, &tracks), i = 0; i < n; i++) {
		int64_t *block;
		size_t count;
		if (tracks[i].kind != (int)kind)
			continue;
		struct err e;
		assert_int_equal(
			rec_read_events(r, tracks[i].id, 0, UINT64_MAX, &block, &count, &e), 0);
		for (size_t k = 0; k < count && total < max; k++, total++)
			memcpy(&rows[total * (size_t)tracks[i].ncolumns],
			       &block[k * (size_t)tracks[i].ncolumns],
			       (size_t)tracks[i].ncolumns * sizeof(*rows));
		free(block);
		if (ret_on)
			*ret_on = rec_entity_by_id(r, tracks[i].entity)->kind;
	}
	return total;
}

static void everything_arrives(void **state)
{
	static int64_t rows[10000 * 7];
	struct bench b;
	struct ring_writer w;
	struct tracer_totals totals;
	enum entity_kind on = ENTITY_HOST;
	open_bench(&b, *state);
	join(&b, getpid());
	assert_int_equal(
		ring_writer_open(&w, b.dir, (uint32_t)getpid(), (uint32_t)getpid(), "marks"), 0);
	for (int64_t i = 0; i < 10000; i++) { /* twice around */
		step(&w, i, 0);
		if (i % 3000 == 2999)
			tracer_rings.drain(b.tracer);
	}
	w.header->cost_ns = 7;
	ring_writer_close(&w);
	struct rec_reader *r = finish(&b, &totals);
	assert_int_equal(rows_of(r, TRACK_STEP, rows, 10000, &on), 10000);
	assert_int_equal(on, ENTITY_PROCESS);
	for (int64_t i = 0; i < 10000; i++) {
		assert_int_equal(rows[i * 7 + STEP_INDEX], i);
		assert_int_equal(rows[i * 7 + STEP_BATCH], 64);
		assert_true(rows[i * 7 + STEP_INPUT_WAIT] == REC_NONE);
	}
	assert_int_equal(totals.records, 10001);
	assert_int_equal(totals.lost, 0);
	assert_int_equal(totals.job_cost_ns, 7);
	assert_string_equal(rec_get(r, "steps_source"), "marks");
	rec_reader_free(r);
}

static void a_full_ring_counts(void **state)
{
	static int64_t rows[5000 * 7];
	struct bench b;
	struct ring_writer w;
	struct tracer_totals totals;
	const struct rec_notice_info *notices;
	open_bench(&b, *state);
	join(&b, getpid());
	assert_int_equal(ring_writer_open(&w, b.dir, (uint32_t)getpid(), 0, "marks"), 0);
	for (int64_t i = 0; i < WIRE_CAPACITY + 99; i++)
		step(&w, i, 0);
	tracer_rings.drain(b.tracer);
	step(&w, -1, 0); /* there is room again */
	ring_writer_close(&w);
	struct rec_reader *r = finish(&b, &totals);
	assert_int_equal(rows_of(r, TRACK_STEP, rows, 5000, NULL), WIRE_CAPACITY);
	assert_int_equal(totals.lost, 100);
	assert_int_equal(rec_notices(r, &notices), 1);
	assert_string_equal(notices[0].kind, "lost");
	rec_reader_free(r);
}

static void names_facts_and_notices(void **state)
{
	static int64_t rows[16 * 4];
	char longer[301];
	struct bench b;
	struct ring_writer w, other;
	struct tracer_totals totals;
	const struct rec_notice_info *notices;
	open_bench(&b, *state);
	join(&b, getpid());
	join(&b, getppid());
	memset(longer, 'n', sizeof(longer) - 1);
	longer[300] = 0;
	assert_int_equal(ring_writer_open(&w, b.dir, (uint32_t)getpid(), 0, "marks"), 0);
	assert_int_equal(ring_writer_open(&other, b.dir, (uint32_t)getppid(), 0, "marks"), 0);
	ring_writer_text(&w, WIRE_STRING, 5, longer);
	struct wire_record mark = { .t_ns = 1, .kind = WIRE_MARK, .arg = { 5, 42 } };
	ring_writer_put(&w, &mark);
	mark.arg[0] = 6; /* a name never given */
	ring_writer_put(&w, &mark);
	ring_writer_text(&w, WIRE_FACT, 0, "torch=1.13.1");
	ring_writer_text(&w, WIRE_FACT, 0, "rank=0");
	ring_writer_text(&w, WIRE_FACT, 0, "no fact at all");
	ring_writer_text(&w, WIRE_FACT, 0, "bad key!=1");
	ring_writer_text(&w, WIRE_NOTICE, 0, "a\x01\xff\xc3\xa9\xed\xa0\x80z");
	tracer_rings.drain(b.tracer);
	ring_writer_text(&other, WIRE_FACT, 0, "torch=1.13.1");
	ring_writer_text(&other, WIRE_FACT, 0, "rank=1");
	tracer_rings.drain(b.tracer);
	ring_writer_text(&w, WIRE_FACT, 0, "torch=2.0.0");
	ring_writer_close(&w);
	ring_writer_close(&other);
	uint32_t parent = (uint32_t)getppid();
	struct rec_reader *r = finish(&b, &totals);
	assert_int_equal(rows_of(r, TRACK_MARK, rows, 16, NULL), 1);
	assert_int_equal(rows[MARK_VALUE], 42);
	assert_string_equal(rec_string_get(r, (uint32_t)rows[MARK_NAME]), longer);
	assert_int_equal(totals.lost, 3);
	assert_string_equal(rec_get(r, "fact.torch"), "2.0.0");
	assert_string_equal(rec_get(r, "fact.rank"), "0");
	char key[64];
	snprintf(key, sizeof(key), "fact.rank@%u", parent);
	assert_string_equal(rec_get(r, key), "1");
	snprintf(key, sizeof(key), "fact.torch@%u", parent);
	assert_null(rec_get(r, key));
	assert_int_equal(rec_notices(r, &notices), 1);
	assert_string_equal(notices[0].text, "a??\xc3\xa9???z");
	rec_reader_free(r);
}

/* Of two sources of steps the more explicit one counts, from the very first step. */
static void one_source_of_steps(void **state)
{
	static int64_t rows[32 * 7];
	struct bench b;
	struct ring_writer hook, marks;
	open_bench(&b, *state);
	join(&b, getpid());
	assert_int_equal(ring_writer_open(&hook, b.dir, (uint32_t)getpid(), 0, "torch hook"), 0);
	assert_int_equal(ring_writer_open(&marks, b.dir, (uint32_t)getpid(), 0, "marks"), 0);
	for (int i = 0; i < 10; i++) {
		step(&hook, 100 + i, 0);
		step(&hook, 200 + i, 1); /* evaluation is marked by nobody else */
		step(&marks, i, 0);
	}
	ring_writer_close(&hook);
	ring_writer_close(&marks);
	struct tracer_totals totals;
	struct rec_reader *r = finish(&b, &totals);
	size_t n = rows_of(r, TRACK_STEP, rows, 32, NULL);
	assert_int_equal(n, 20);
	for (size_t i = 0; i < n; i++)
		assert_true(rows[i * 7 + STEP_PHASE] == 1 || rows[i * 7 + STEP_INDEX] < 10);
	assert_int_equal(totals.lost, 0);
	assert_string_equal(rec_get(r, "steps_source"), "marks");
	rec_reader_free(r);
}

static void a_ring_of_the_job_itself(void **state)
{
	static int64_t rows[16 * 7];
	struct bench b;
	struct ring_writer w;
	enum entity_kind on = ENTITY_HOST;
	open_bench(&b, *state);
	assert_int_equal(
		ring_writer_open(&w, b.dir, 0, 0, "regex 'step ([0-9]+) and some more words'"), 0);
	step(&w, 3, 0);
	ring_writer_close(&w);
	struct rec_reader *r = finish(&b, NULL);
	assert_int_equal(rows_of(r, TRACK_STEP, rows, 16, &on), 1);
	assert_int_equal(on, ENTITY_JOB);
	assert_string_equal(rec_get(r, "steps_source"),
			    "regex 'step ([0-9]+) and some more words'");
	rec_reader_free(r);
}

/* A producer that lived between two ticks: the job source never saw it. */
static void a_process_nobody_saw(void **state)
{
	static int64_t rows[16 * 7];
	struct bench b;
	enum entity_kind on = ENTITY_HOST;
	open_bench(&b, *state);
	pid_t pid = fork();
	if (!pid) {
		struct ring_writer w;
		for (int i = 0; i < 2; i++) { /* two threads, as it were */
			if (ring_writer_open(&w, b.dir, (uint32_t)getpid(), (uint32_t)getpid(),
					     "m"))
				_exit(1);
			step(&w, i, 0);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tracer_rings.drain(b.tracer);
	char gone[160];
	snprintf(gone, sizeof(gone), "%s/%d.%d.0.ring", b.dir, (int)pid, (int)pid);
	assert_int_not_equal(access(gone, F_OK), 0); /* nothing more can come */
	struct rec_reader *r = finish(&b, NULL);
	assert_int_equal(rows_of(r, TRACK_STEP, rows, 16, &on), 2);
	assert_int_equal(on, ENTITY_PROCESS);
	const struct rec_entity_info *entities;
	size_t processes = 0;
	for (size_t n = rec_entities(r, &entities), i = 0; i < n; i++)
		processes += entities[i].kind == ENTITY_PROCESS && entities[i].key == pid;
	assert_int_equal(processes, 1);
	rec_reader_free(r);
}

/* One that lives, but is not in the job set yet: it gets some ticks to appear. */
static void a_process_not_seen_yet(void **state)
{
	static int64_t rows[16 * 7];
	struct bench b;
	struct ring_writer w;
	open_bench(&b, *state);
	assert_int_equal(ring_writer_open(&w, b.dir, (uint32_t)getpid(), 0, "marks"), 0);
	step(&w, 0, 0);
	tracer_rings.drain(b.tracer);
	uint32_t entity = join(&b, getpid());
	step(&w, 1, 0);
	ring_writer_close(&w);
	struct rec_reader *r = finish(&b, NULL);
	const struct rec_track_info *tracks;
	assert_int_equal(rec_tracks(r, &tracks), 1);
	assert_int_equal(tracks[0].entity, entity);
	assert_int_equal(rows_of(r, TRACK_STEP, rows, 16, NULL), 2);
	rec_reader_free(r);
}

/* ------------------------------------------------------------------------------------ hostility */

static void write_file(const char *dir, const char *name, const void *data, size_t n)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

static void files_that_are_no_rings(void **state)
{
	struct bench b;
	struct tracer_totals totals;
	char path[200];
	struct wire_header h = { .magic = WIRE_MAGIC, .version = WIRE_VERSION + 1 };
	open_bench(&b, *state);
	write_file(b.dir, "1.1.0.ring", "", 0);
	write_file(b.dir, "1.1.1.ring", "hello", 5);
	write_file(b.dir, "1.1.2.ring", &h, sizeof(h));
	h = (struct wire_header){ .magic = WIRE_MAGIC,
				  .version = WIRE_VERSION,
				  .header_bytes = WIRE_HEADER_BYTES,
				  .record_bytes = WIRE_RECORD_BYTES,
				  .capacity = WIRE_CAPACITY,
				  .head = 5 };
	write_file(b.dir, "1.1.3.ring", &h, sizeof(h)); /* shorter than it says */
	h.capacity = 3;
	write_file(b.dir, "1.1.4.ring", &h, sizeof(h));
	write_file(b.dir, "other.ring", &h, sizeof(h));
	snprintf(path, sizeof(path), "%s/1.1.5.ring", b.dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/1.1.6.ring", b.dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/1.1.7.ring", b.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < 3; i++)
		tracer_rings.drain(b.tracer);
	tracer_rings.totals(b.tracer, memset(&totals, 0, sizeof(totals)));
	assert_int_equal(totals.records, 0);
	char command[200];
	snprintf(command, sizeof(command), "rm -r %s/*", b.dir);
	assert_int_equal(system(command), 0);
	rec_reader_free(finish(&b, NULL));
}

/* Cut while it is read, and counters that make no sense: lost, said, and nothing worse. */
static void a_ring_is_damaged_while_in_use(void **state)
{
	static const uint64_t heads[] = { 0, UINT64_MAX, WIRE_CAPACITY * 3 };
	for (size_t i = 0; i < 4; i++) {
		struct bench b;
		struct ring_writer w;
		struct tracer_totals totals;
		const struct rec_notice_info *notices;
		open_bench(&b, *state);
		join(&b, getpid());
		assert_int_equal(ring_writer_open(&w, b.dir, (uint32_t)getpid(), 0, "marks"), 0);
		step(&w, 0, 0);
		tracer_rings.drain(b.tracer);
		if (i < 3)
			w.header->head = heads[i];
		else
			assert_int_equal(truncate(w.path, 100), 0);
		tracer_rings.drain(b.tracer);
		tracer_rings.drain(b.tracer);
		assert_int_equal(unlink(w.path), 0);
		ring_writer_close(&w);
		struct rec_reader *r = finish(&b, &totals);
		assert_int_equal(totals.lost, 1);
		assert_int_equal(rec_notices(r, &notices), 1);
		assert_non_null(strstr(notices[0].text, "damaged"));
		rec_reader_free(r);
		unlink(b.f->path);
	}
}

static void records_that_make_no_sense(void **state)
{
	static int64_t rows[16 * 7];
	struct bench b;
	struct ring_writer w;
	struct tracer_totals totals;
	open_bench(&b, *state);
	join(&b, getpid());
	assert_int_equal(ring_writer_open(&w, b.dir, (uint32_t)getpid(), 0, "marks"), 0);
	uint64_t now = clock_mono_ns();
	struct wire_record bad[] = {
		{ .t_ns = now },
		{ .t_ns = now, .kind = 99 },
		{ .t_ns = now, .kind = UINT16_MAX },
		{ .t_ns = 0, .kind = WIRE_STEP },
		{ .t_ns = now + 60 * S, .kind = WIRE_STEP },
		{ .t_ns = now, .dur_ns = UINT64_MAX, .kind = WIRE_STEP },
		{ .t_ns = now, .dur_ns = 1ULL << 63, .kind = WIRE_GC },
		{ .t_ns = now, .kind = WIRE_STRING, .flags = 41 },
		{ .t_ns = now, .kind = WIRE_STRING, .flags = WIRE_MORE | WIRE_TEXT_BYTES },
	};
	size_t n = sizeof(bad) / sizeof(*bad);
	for (size_t i = 0; i < n; i++)
		ring_writer_put(&w, &bad[i]);
	ring_writer_text(&w, WIRE_FACT, 0, "key=value"); /* in the middle of a string */
	step(&w, 0, 0);
	ring_writer_close(&w);
	struct rec_reader *r = finish(&b, &totals);
	assert_int_equal(rows_of(r, TRACK_STEP, rows, 16, NULL), 1);
	assert_int_equal(totals.lost, n);
	assert_string_equal(rec_get(r, "fact.key"), "value");
	rec_reader_free(r);
}

static void no_directory(void **state)
{
	struct fixture *f = *state;
	void *tracer = NULL;
	struct tracer_env env = { .dir = "" };
	assert_int_equal(tracer_rings.open(&env, &tracer, &f->e), -ENOENT);
	env.dir = "/nonexistent";
	assert_int_equal(tracer_rings.open(&env, &tracer, &f->e), -ENOENT);
	assert_null(tracer);
	tracer_rings.close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_arrives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_ring_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_facts_and_notices, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_source_of_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ring_of_the_job_itself, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_nobody_saw, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_not_seen_yet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_that_are_no_rings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ring_is_damaged_while_in_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_that_make_no_sense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_directory, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
