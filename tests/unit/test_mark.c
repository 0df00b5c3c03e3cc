/*
 * spotter/mark.h: its copy of the wire is the wire; marks of several threads, of a forked child, of a program
 * without a recorder. The rings are read with the recorder's own reader.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <spotter/mark.h>

#include <dirent.h>
#include <sys/wait.h>

#include "tracers/ring_file.h"

#define SAME_FIELD(ours, theirs, field) \
	_Static_assert(offsetof(struct ours, field) == offsetof(struct theirs, field), #field)

_Static_assert(sizeof(struct spotter__header) == sizeof(struct wire_header), "header");
_Static_assert(sizeof(struct spotter__record) == sizeof(struct wire_record), "record");
SAME_FIELD(spotter__header, wire_header, capacity);
SAME_FIELD(spotter__header, wire_header, tid);
SAME_FIELD(spotter__header, wire_header, start_ns);
SAME_FIELD(spotter__header, wire_header, pid_ns);
SAME_FIELD(spotter__header, wire_header, head);
SAME_FIELD(spotter__header, wire_header, dropped);
SAME_FIELD(spotter__header, wire_header, cost_ns);
SAME_FIELD(spotter__header, wire_header, tail);
SAME_FIELD(spotter__record, wire_record, dur_ns);
SAME_FIELD(spotter__record, wire_record, kind);
SAME_FIELD(spotter__record, wire_record, flags);
SAME_FIELD(spotter__record, wire_record, aux);
SAME_FIELD(spotter__record, wire_record, arg);
_Static_assert((int)SPOTTER__STEP == WIRE_STEP && (int)SPOTTER__EPOCH == WIRE_EPOCH &&
		       (int)SPOTTER__CHECKPOINT == WIRE_CHECKPOINT &&
		       (int)SPOTTER__RANGE == WIRE_RANGE && (int)SPOTTER__MARK == WIRE_MARK &&
		       (int)SPOTTER__STRING == WIRE_STRING && (int)SPOTTER__FACT == WIRE_FACT,
	       "kinds");
_Static_assert((int)SPOTTER__HEADER_BYTES == WIRE_HEADER_BYTES &&
		       (int)SPOTTER__CAPACITY == WIRE_CAPACITY &&
		       (int)SPOTTER__TEXT_BYTES == WIRE_TEXT_BYTES &&
		       (int)SPOTTER__MORE == WIRE_MORE && SPOTTER_NONE == WIRE_NONE,
	       "sizes");

static char dir[64];

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/spotter-mark-XXXXXX");
	return mkdtemp(dir) && !setenv("SPOTTER_DIR", dir, 1) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* Run a scenario in a process of its own, with nothing marked before; it must end well. */
static void in_child(void (*scenario)(void))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		scenario();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

struct ring_content {
	struct ring_file file;
	struct wire_record records[WIRE_CAPACITY];
	size_t n;
};

static struct ring_content rings[8];

/* Read all rings of the directory; returns how many there are. */
static size_t read_rings(void)
{
	size_t n = 0;
	DIR *d = opendir(dir);
	for (const struct dirent *entry; (entry = readdir(d));) {
		struct ring_content *c = &rings[n];
		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(ring_file_open(dirfd(d), entry->d_name, &c->file), 0);
		assert_true(ring_file_look(&c->file) >= 0);
		c->n = (size_t)ring_file_peek(&c->file, 0, c->records, WIRE_CAPACITY);
		ring_file_close(&c->file);
		n++;
	}
	closedir(d);
	return n;
}

static size_t count(const struct ring_content *c, unsigned kind)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		n += c->records[i].kind == kind;
	return n;
}

static const struct wire_record *nth(const struct ring_content *c, unsigned kind, size_t n)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->records[i].kind == kind && !n--)
			return &c->records[i];
	fail();
	return NULL;
}

static void some_training(void)
{
	errno = 77;
	for (int epoch = 0; epoch < 2; epoch++) {
		spotter_epoch(epoch);
		for (int i = 0; i < 3; i++) {
			char name[16] = "made up";
			spotter_input_begin();
			spotter_input_end();
			spotter_range_push("forward");
			spotter_range_push(name);
			spotter_range_pop();
			spotter_range_pop();
			spotter_step(16);
		}
		spotter_eval_step(SPOTTER_NONE);
	}
	spotter_checkpoint_begin();
	spotter_checkpoint_end(123);
	spotter_epoch_end();
	spotter_mark("loss", -5);
	spotter_range_pop(); /* more than were pushed */
	spotter_input_end();
	spotter_checkpoint_end(1);
	if (errno != 77)
		_exit(3);
}

static void every_mark(void **state)
{
	in_child(some_training);
	assert_int_equal(read_rings(), 1);
	const struct ring_content *c = rings;
	assert_memory_equal(c->records[0].arg, "hook=marks", 10);
	assert_int_equal(count(c, WIRE_STEP), 8);
	assert_int_equal(count(c, WIRE_EPOCH), 2);
	assert_int_equal(count(c, WIRE_RANGE), 12);
	assert_int_equal(count(c, WIRE_STRING), 3);
	assert_int_equal(count(c, WIRE_MARK), 1);
	assert_int_equal(count(c, WIRE_CHECKPOINT), 1);
	assert_int_equal(nth(c, WIRE_CHECKPOINT, 0)->arg[0], 123);
	assert_int_equal(nth(c, WIRE_MARK, 0)->arg[1], -5);
	const struct wire_record *s = nth(c, WIRE_STEP, 4); /* first of the second epoch */
	assert_int_equal(s->arg[0], 3);
	assert_int_equal(s->arg[1], 0);
	assert_int_equal(s->arg[2], 1);
	assert_int_equal(s->arg[3], 16);
	assert_true(s->arg[4] >= 0 && s->arg[4] <= (int64_t)s->dur_ns && s->dur_ns > 0);
	assert_int_equal(nth(c, WIRE_STEP, 3)->arg[1], 1);
	assert_int_equal(nth(c, WIRE_RANGE, 0)->arg[1], 1);
	assert_int_equal(nth(c, WIRE_RANGE, 1)->arg[1], 0);
	assert_int_equal(nth(c, WIRE_RANGE, 0)->arg[0], nth(c, WIRE_RANGE, 2)->arg[0]);
}

static void no_begin_no_time(void)
{
	spotter_step(1);
	spotter_step(1);
}

static void a_step_without_begin(void **state)
{
	in_child(no_begin_no_time);
	assert_int_equal(read_rings(), 1);
	assert_int_equal(nth(rings, WIRE_STEP, 0)->dur_ns, 0);
	assert_true(nth(rings, WIRE_STEP, 1)->dur_ns > 0);
	assert_true(nth(rings, WIRE_STEP, 1)->arg[4] == WIRE_NONE);
}

static void *mark_some(void *arg)
{
	for (int i = 0; i < *(int *)arg; i++)
		spotter_step(i);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[4];
	int n[4] = { 1, 10, 100, 1000 };
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, mark_some, &n[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void a_ring_per_thread(void **state)
{
	size_t total = 0;
	in_child(run_threads);
	assert_int_equal(read_rings(), 4);
	for (int i = 0; i < 4; i++) {
		size_t n = count(&rings[i], WIRE_STEP);
		assert_true(n == 1 || n == 10 || n == 100 || n == 1000);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(nth(&rings[i], WIRE_STEP, k)->arg[3], (int64_t)k);
		assert_true(rings[i].file.tid != rings[i].file.pid);
		total += n;
	}
	assert_int_equal(total, 1111);
}

static size_t mapped_rings(void)
{
	char line[512];
	size_t n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		n += strstr(line, ".ring") != NULL;
	fclose(f);
	return n;
}

static void run_many_threads(void)
{
	pthread_t thread;
	int one = 1;
	for (int i = 0; i < 60; i++) {
		pthread_create(&thread, NULL, mark_some, &one);
		pthread_join(thread, NULL);
	}
	if (mapped_rings())
		_exit(1);
}

/* The ring of a thread that ended is not kept mapped. */
static void threads_leave_nothing(void **state)
{
	in_child(run_many_threads);
}

static void fork_in_the_middle(void)
{
	int status;
	spotter_epoch(0);
	spotter_step(1);
	spotter_range_push("open");
	pid_t pid = fork();
	for (int i = 0; i < (pid ? 1 : 5); i++)
		spotter_step(2);
	spotter_range_pop(); /* of the parent only */
	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(1);
	spotter_step(3);
}

static void a_forked_child_has_its_own(void **state)
{
	in_child(fork_in_the_middle);
	assert_int_equal(read_rings(), 2);
	const struct ring_content *parent = &rings[0], *child = &rings[1];
	if (parent->file.start_ns > child->file.start_ns)
		parent = &rings[1], child = &rings[0];
	assert_true(parent->file.pid != child->file.pid);
	assert_int_equal(count(parent, WIRE_STEP), 3);
	assert_int_equal(count(parent, WIRE_RANGE), 1);
	assert_int_equal(count(child, WIRE_STEP), 5);
	assert_int_equal(count(child, WIRE_RANGE), 0);
	assert_int_equal(nth(child, WIRE_STEP, 0)->dur_ns, 0); /* its begin is the parent's */
}

static void mark_too_much(void)
{
	for (int i = 0; i < WIRE_CAPACITY + 50; i++)
		spotter_mark("x", i);
}

static void a_full_ring_drops(void **state)
{
	in_child(mark_too_much);
	assert_int_equal(read_rings(), 1);
	assert_int_equal(rings[0].file.head, WIRE_CAPACITY);
	assert_int_equal(rings[0].file.dropped, 52); /* one fact, one name */
}

static void many_names(void)
{
	char name[64];
	for (int i = 0; i < 70000; i++) {
		snprintf(name, sizeof(name), "a name that is made up as the program goes: %d", i);
		spotter_mark(name, i);
		spotter__self->header->tail = spotter__self->head;
	}
	spotter_mark("the same", 1);
	spotter_mark("the same", 2);
	if (spotter__self->names > 60000 || spotter__self->header->dropped)
		_exit(1);
}

static void names_without_end(void **state)
{
	in_child(many_names);
}

static void deep_ranges(void)
{
	for (int i = 0; i < 100; i++)
		spotter_range_push("deep");
	for (int i = 0; i < 100; i++)
		spotter_range_pop();
}

static void ranges_that_are_too_deep(void **state)
{
	in_child(deep_ranges);
	assert_int_equal(read_rings(), 1);
	assert_int_equal(count(rings, WIRE_RANGE), SPOTTER__RANGES);
}

static void without_a_recorder(void)
{
	unsetenv("SPOTTER_DIR");
	some_training();
	if (spotter__self || !spotter__off)
		_exit(1);
}

static void with_a_recorder_that_is_gone(void)
{
	setenv("SPOTTER_DIR", "/nonexistent", 1);
	some_training();
	if (spotter__self || !spotter__off)
		_exit(1);
}

static void directory_goes_between(void)
{
	spotter_step(1);
	setenv("SPOTTER_DIR", "/nonexistent", 1);
	run_threads();
	spotter_step(1);
}

static void nobody_listens(void **state)
{
	in_child(without_a_recorder);
	in_child(with_a_recorder_that_is_gone);
	assert_int_equal(read_rings(), 0);
	in_child(directory_goes_between);
	assert_int_equal(read_rings(), 1);
	assert_int_equal(count(rings, WIRE_STEP), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_mark, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_step_without_begin, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_ring_per_thread, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(threads_leave_nothing, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_forked_child_has_its_own, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_full_ring_drops, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(names_without_end, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(ranges_that_are_too_deep, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(nobody_listens, make_dir, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
