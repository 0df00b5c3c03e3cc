/*
 * Reports of synthetic runs against the texts in tests/fixtures/report/, and the two renderers by themselves.
 * UPDATE_GOLDEN=1 writes the texts anew: look at the difference before you keep it.
 */
#include "synthetic.h"

#include <fcntl.h>
#include <jansson.h>

#include "base/io.h"
#include "report/doc.h"
#include "report/report.h"

/* ---------------------------------------------------------------------------------- golden texts */

static char *report_text(const struct synthetic *s, const struct report_options *o)
{
	char path[128], *text = NULL;
	size_t len = 0;
	struct err e = { 0 };
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(here >= 0);
	synthetic_path(path, sizeof(path));
	synthetic_write(s, path);
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	*strrchr(path, '/') = 0;
	assert_int_equal(chdir(path), 0);
	int rc = report_print(out, "run.spot", o, &e);
	assert_int_equal(fchdir(here), 0);
	close(here);
	path[strlen(path)] = '/';
	if (rc)
		print_message("%s\n", e.text);
	assert_int_equal(rc, 0);
	fclose(out);
	synthetic_remove(path);
	return text;
}

/* What differs from machine to machine: the size of the recording. */
static void normalise(char *text)
{
	char *end = strstr(text, "B recorded"), *p = end;
	while (p && p > text + 2 && strncmp(p - 2, "  ", 2))
		p--;
	if (!p || p <= text + 2)
		return;
	memmove(p + 1, end + 1, strlen(end + 1) + 1);
	*p = 'N';
}

static void compare(const char *name, char *text)
{
	char path[512];
	char *expected = NULL;
	size_t len = 0;
	normalise(text);
	snprintf(path, sizeof(path), "%s/tests/fixtures/report/%s.txt", getenv("SOURCE_ROOT"),
		 name);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	} else {
		if (io_read_all(path, 1 << 20, &expected, &len))
			fail_msg("%s is missing", path);
		assert_string_equal(text, expected);
		free(expected);
	}
	free(text);
}

static void golden(const char *name, const struct synthetic *s, struct report_options o)
{
	if (!o.charset)
		o.charset = REPORT_CHARSET_UTF8;
	if (!o.color)
		o.color = REPORT_COLOR_NEVER;
	if (!o.width)
		o.width = 100;
	compare(name, report_text(s, &o));
}

static struct synthetic slow_loader(void)
{
	struct synthetic s = synthetic_healthy();
	s.seconds = 90;
	s.step_ms = 83;
	s.wait_share = 0.41;
	s.workers = 1;
	s.cores_allowed = 16;
	s.checkpoint_every = 200;
	s.checkpoint_ms = 500;
	s.gc_every = 50;
	s.gc_ms = 4;
	return s;
}

static void golden_healthy(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	golden("healthy", &s, (struct report_options){ .width = 100 });
}

static void golden_widths(void **state)
{
	struct synthetic s = slow_loader();
	(void)state;
	golden("input-60", &s, (struct report_options){ .width = 60 });
	golden("input-80", &s, (struct report_options){ .width = 80 });
	golden("input-120", &s, (struct report_options){ .width = 120 });
}

static void golden_plain(void **state)
{
	struct synthetic s = slow_loader();
	(void)state;
	golden("input-ascii", &s,
	       (struct report_options){ .width = 80, .charset = REPORT_CHARSET_ASCII });
	golden("input-color", &s,
	       (struct report_options){ .width = 100, .color = REPORT_COLOR_ALWAYS });
}

static void golden_all(void **state)
{
	struct synthetic s = slow_loader();
	(void)state;
	golden("all", &s, (struct report_options){ .width = 100, .all = true });
}

static void golden_step(void **state)
{
	struct synthetic s = slow_loader();
	(void)state;
	golden("step", &s, (struct report_options){ .one_step = true, .step = 199 });
}

static void golden_bad_ends(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.exit_code = "3";
	golden("exit-3", &s, (struct report_options){ .width = 100 });
	s.exit_code = NULL;
	s.signal = "9";
	golden("killed", &s, (struct report_options){ .width = 100 });
	s.signal = NULL;
	s.unfinished = true;
	golden("recorder-killed", &s, (struct report_options){ .width = 100 });
}

static void golden_nothing_known(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.step_ms = 0;
	s.no_job_metrics = true;
	golden("nothing-known", &s, (struct report_options){ .width = 100 });
}

static void golden_gpu(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.gpu = 1;
	golden("gpu-idle", &s, (struct report_options){ .width = 100 });
}

static void golden_hostile_command(void **state)
{
	struct synthetic s = synthetic_healthy();
	(void)state;
	s.command =
		"python3 'x\033]0;owned\007\033[2J' \xff\xfe ünï "
		"--a-very-long-option=0123456789012345678901234567890123456789012345678901234567";
	golden("hostile", &s, (struct report_options){ .width = 80 });
}

static void unknown_step(void **state)
{
	struct synthetic s = synthetic_healthy();
	struct report_options o = { .one_step = true, .step = 1000000 };
	struct err e = { 0 };
	char path[128];
	(void)state;
	synthetic_path(path, sizeof(path));
	synthetic_write(&s, path);
	assert_true(report_print(stdout, path, &o, &e) < 0);
	assert_non_null(strstr(e.text, "1000000"));
	synthetic_remove(path);
}

/* --------------------------------------------------------------------------------------- JSON */

/* The keys that others rely on, as doc/report-json.md promises them. */
static void json_keys(void **state)
{
	static const struct {
		const char *section, *key;
	} keys[] = {
		{ "run", "command" },
		{ "run", "exit_code" },
		{ "run", "signal" },
		{ "run", "wall_s" },
		{ "steps", "count" },
		{ "steps", "p50_ms" },
		{ "steps", "p95_ms" },
		{ "steps", "p99_ms" },
		{ "steps", "max_ms" },
		{ "steps", "per_s" },
		{ "input_wait", "share" },
		{ "cpu", "cores_mean" },
		{ "cpu", "cores_allowed" },
		{ "cpu", "user_s" },
		{ "cpu", "system_s" },
		{ "memory", "peak_rss_bytes" },
		{ "memory", "limit_bytes" },
		{ "io", "read_bytes" },
		{ "io", "written_bytes" },
		{ "self", "cpu_s" },
		{ "self", "peak_rss_bytes" },
		{ "self", "recording_bytes" },
		{ "self", "job_overhead_share" },
	};
	static const char *const finding[] = { "id", "severity", "text", "evidence", "advice" };
	struct synthetic s = slow_loader();
	(void)state;
	for (int known = 0; known < 2; known++) {
		if (!known) {
			s.step_ms = 0;
			s.no_job_metrics = true;
		} else {
			s = slow_loader();
		}
		char *text = report_text(&s, &(struct report_options){ .json = true });
		json_t *j = json_loads(text, 0, NULL);
		assert_non_null(j);
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
			json_t *v =
				json_object_get(json_object_get(j, keys[i].section), keys[i].key);
			if (!v)
				fail_msg("%s.%s", keys[i].section, keys[i].key);
			if (known && strcmp(keys[i].key, "signal"))
				assert_false(json_is_null(v));
		}
		json_t *first = json_array_get(json_object_get(j, "findings"), 0);
		for (size_t i = 0; i < sizeof(finding) / sizeof(*finding); i++)
			assert_non_null(json_object_get(first, finding[i]));
		assert_true(json_is_array(json_object_get(j, "missing")));
		if (!known)
			assert_true(json_is_null(
				json_object_get(json_object_get(j, "steps"), "p50_ms")));
		json_decref(j);
		free(text);
	}
}

/* ----------------------------------------------------------------------------------- renderers */

static int widest(const char *text)
{
	int wide = 0, now = 0;
	for (; *text; text++) {
		if (*text == '\n') {
			wide = now > wide ? now : wide;
			now = 0;
		} else if (((unsigned char)*text & 0xc0) != 0x80) {
			now++;
		}
	}
	return wide;
}

static void no_line_is_wider_than_asked(void **state)
{
	struct synthetic runs[] = { slow_loader(), synthetic_healthy() };
	(void)state;
	runs[1].no_job_metrics = true;
	for (size_t i = 0; i < 2; i++) {
		for (int width = 60; width <= 140; width += 8) {
			struct report_options o = { .width = width,
						    .all = width % 16 == 4,
						    .charset = width % 16 == 4
								       ? REPORT_CHARSET_ASCII
								       : REPORT_CHARSET_UTF8 };
			char *text = report_text(&runs[i], &o);
			if (widest(text) > width)
				fail_msg("%d of %d columns:\n%s", widest(text), width, text);
			free(text);
		}
	}
}

static void ascii_is_ascii(void **state)
{
	struct synthetic s = slow_loader();
	(void)state;
	s.command = "python3 train.py --name ünï";
	char *text = report_text(
		&s, &(struct report_options){ .width = 80, .charset = REPORT_CHARSET_ASCII });
	for (char *p = text; *p; p++)
		assert_in_range((unsigned char)*p, 1, 126);
	free(text);
}

static void absent_is_null_and_not_shown(void **state)
{
	struct doc *d = doc_new();
	struct buf text = BUF_INIT, json = BUF_INIT;
	struct doc_text_options o = { .width = 80 };
	struct doc_node *n = doc_section(doc_object(doc_root(d), "cpu"), "CPU", DOC_LINE);
	(void)state;
	doc_show(doc_number(n, "a", NAN, "s"), "a", NULL);
	doc_show(doc_number(n, "b", 1.5, "s"), "b", NULL);
	doc_show(doc_number(n, NULL, 7, "count"), "text only", NULL);
	doc_number(n, "c", 0, "bytes");
	doc_text(d, &o, &text);
	assert_string_equal(text.data, " CPU       b 1.5 s   text only 7\n");
	assert_int_equal(doc_json(d, &json), 0);
	json_t *j = json_loads(json.data, 0, NULL);
	json_t *cpu = json_object_get(j, "cpu");
	assert_true(json_is_null(json_object_get(cpu, "a")));
	assert_int_equal(json_object_size(cpu), 3);
	json_decref(j);
	buf_free(&text);
	buf_free(&json);
	doc_free(d);
}

/* After a failed allocation nodes are NULL: everything must take that. */
static void null_nodes_do_nothing(void **state)
{
	(void)state;
	doc_show(doc_number(NULL, "a", 1, "s"), "a", NULL);
	doc_tone(doc_glue(doc_string(NULL, "a", "b"), NULL, NULL), DOC_BAD);
	doc_section(doc_array(NULL, "a"), "A", DOC_LINE);
	assert_null(doc_stringf(NULL, "a", "%d", 1));
	assert_null(doc_get(NULL, "a"));
	doc_free(NULL);
}

static void findings_are_stored(void **state)
{
	struct synthetic s = slow_loader();
	char path[128];
	struct rec_writer *w;
	struct err e = { 0 };
	uint32_t host, job, process;
	(void)state;
	synthetic_path(path, sizeof(path));
	assert_int_equal(rec_create(path, NULL, &w, &e), 0);
	syn_facts(w, &s);
	rec_entity(w, ENTITY_HOST, 0, "testhost", 0, SYN_T0, &host);
	rec_entity(w, ENTITY_JOB, host, "python3", 4242, SYN_T0, &job);
	rec_entity(w, ENTITY_PROCESS, job, "python3", 4242, SYN_T0, &process);
	syn_ticks(w, &s, host, job, 0);
	syn_steps(w, &s, process);
	assert_int_equal(report_store_findings(w, path), 0);
	assert_int_equal(rec_close(w, &e), 0);

	struct rec_reader *r;
	const struct rec_finding *stored;
	assert_int_equal(rec_open(path, &r, &e), 0);
	assert_true(rec_kept_findings(r, &stored) >= 1);
	assert_string_equal(stored[0].id, "input-bound");
	json_t *evidence = json_loads(stored[0].evidence, 0, NULL);
	assert_true(json_is_array(evidence) && json_array_size(evidence) >= 3);
	json_decref(evidence);
	rec_reader_free(r);
	synthetic_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_is_null_and_not_shown),
		cmocka_unit_test(null_nodes_do_nothing),
		cmocka_unit_test(golden_healthy),
		cmocka_unit_test(golden_widths),
		cmocka_unit_test(golden_plain),
		cmocka_unit_test(golden_all),
		cmocka_unit_test(golden_step),
		cmocka_unit_test(golden_bad_ends),
		cmocka_unit_test(golden_nothing_known),
		cmocka_unit_test(golden_gpu),
		cmocka_unit_test(golden_hostile_command),
		cmocka_unit_test(unknown_step),
		cmocka_unit_test(json_keys),
		cmocka_unit_test(no_line_is_wider_than_asked),
		cmocka_unit_test(ascii_is_ascii),
		cmocka_unit_test(findings_are_stored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
