/* The inventory of a recording as text; see inventory.h. */
#include "export/inventory.h"

#include <string.h>

#include "base/fmt.h"

#define NOTICES_MAX 20 /* the last ones are shown */

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "";
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* Pad what was added since `from` to a column of `width`, counting characters, not bytes. */
static void pad_from(struct buf *b, size_t from, size_t width, bool right)
{
	size_t shown = 0;
	for (size_t i = from; i < b->len; i++)
		shown += ((unsigned char)b->data[i] & 0xc0) != 0x80;
	size_t missing = shown < width ? width - shown : 0;
	size_t len = b->len - from;
	buf_addn(b, ' ', missing);
	if (right && missing && !b->failed) {
		memmove(b->data + from + missing, b->data + from, len);
		memset(b->data + from, ' ', missing);
	}
}

static void cell(struct buf *b, const char *s, size_t width)
{
	size_t from = b->len;
	buf_adds(b, s);
	pad_from(b, from, width, false);
}

static void count_cell(struct buf *b, double n, size_t width)
{
	size_t from = b->len;
	fmt_count(b, n);
	pad_from(b, from, width, true);
}

static void head(const json_t *doc, struct buf *b)
{
	const json_t *file = json_object_get(doc, "file"), *facts = json_object_get(doc, "facts");
	const json_t *time = json_object_get(doc, "time");
	buf_addf(b, "%s   %s   ", text_of(file, "path"), text_of(facts, "command_line"));
	if (json_is_true(json_object_get(file, "live")))
		buf_adds(b, "running");
	else if (*text_of(facts, "signal") && strcmp(text_of(facts, "signal"), "0") != 0)
		buf_addf(b, "ended by signal %s", text_of(facts, "signal"));
	else if (*text_of(facts, "exit_code"))
		buf_addf(b, "exit %s", text_of(facts, "exit_code"));
	else
		buf_adds(b, "ended without saying how");
	if (json_object_get(time, "begin")) {
		buf_addf(b, "   %.19s UTC   ", text_of(time, "begin"));
		fmt_duration(b, number_of(time, "t1_ns") - number_of(time, "t0_ns"));
	}
	buf_addc(b, '\n');
}

static void size_line(const json_t *doc, struct buf *b)
{
	const json_t *file = json_object_get(doc, "file");
	double samples = 0, events = 0, damaged = number_of(file, "damaged_parts");
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(doc, "metrics"), i, item) samples +=
		number_of(item, "samples");
	json_array_foreach(json_object_get(doc, "tracks"), i, item) events +=
		number_of(item, "events");
	fmt_bytes(b, number_of(file, "bytes"));
	buf_adds(b, ": ");
	fmt_count(b, samples);
	buf_adds(b, " samples, ");
	fmt_count(b, events);
	buf_adds(b, " events");
	if (damaged > 0) {
		buf_adds(b, "; DAMAGED: ");
		fmt_count(b, damaged);
		buf_adds(b, " parts cannot be read");
	}
	buf_addc(b, '\n');
}

static void facts_lines(const json_t *doc, struct buf *b)
{
	const char *key;
	json_t *value;
	buf_adds(b, "\nFACTS\n");
	json_object_foreach(json_object_get(doc, "facts"), key, value)
	{
		buf_adds(b, "  ");
		cell(b, key, 26);
		buf_addf(b, " %s\n", json_string_value(value) ? json_string_value(value) : "");
	}
}

static void entities_line(const json_t *doc, struct buf *b)
{
	const char *key;
	json_t *value;
	buf_adds(b, "\nENTITIES ");
	json_object_foreach(json_object_get(doc, "entities"), key, value)
		buf_addf(b, "  %s %" JSON_INTEGER_FORMAT, key, json_integer_value(value));
	buf_addc(b, '\n');
}

/* "host cpu job" */
static void words(struct buf *b, const json_t *list, const char *between)
{
	size_t i;
	json_t *word;
	json_array_foreach(list, i, word)
		buf_addf(b, "%s%s", i ? between : "", json_string_value(word));
}

static void metrics_table(const json_t *doc, struct buf *b)
{
	size_t i;
	json_t *m;
	const json_t *list = json_object_get(doc, "metrics");
	if (!json_array_size(list))
		return;
	buf_addf(b, "\n%-24s %-8s %-8s %7s %12s %8s  %-24s %s\n", "METRIC", "unit", "kind",
		 "series", "samples", "B/sample", "of", "source");
	json_array_foreach(list, i, m)
	{
		double samples = number_of(m, "samples"), bytes = number_of(m, "bytes");
		buf_adds(b, "  ");
		cell(b, text_of(m, "name"), 23);
		cell(b, text_of(m, "unit"), 9);
		cell(b, text_of(m, "kind"), 8);
		count_cell(b, number_of(m, "series"), 8);
		count_cell(b, samples, 13);
		if (bytes > 0 && samples > 0)
			buf_addf(b, "%9.2f  ", bytes / samples);
		else
			buf_addf(b, "%9s  ", "-");
		size_t from = b->len;
		words(b, json_object_get(m, "entities"), " ");
		pad_from(b, from, 25, false);
		words(b, json_object_get(m, "sources"), ", ");
		buf_addc(b, '\n');
	}
}

static void tracks_table(const json_t *doc, struct buf *b)
{
	size_t i;
	json_t *t;
	const json_t *list = json_object_get(doc, "tracks");
	if (!json_array_size(list))
		return;
	buf_addf(b, "\n%-24s %7s %12s %8s\n", "EVENTS", "tracks", "events", "B/event");
	json_array_foreach(list, i, t)
	{
		double events = number_of(t, "events"), bytes = number_of(t, "bytes");
		buf_adds(b, "  ");
		cell(b, text_of(t, "name"), 22);
		count_cell(b, number_of(t, "tracks"), 8);
		count_cell(b, events, 13);
		if (bytes > 0 && events > 0)
			buf_addf(b, "%9.2f\n", bytes / events);
		else
			buf_addf(b, "%9s\n", "-");
	}
}

static void gaps_lines(const json_t *doc, struct buf *b)
{
	size_t i;
	json_t *gap;
	const json_t *list = json_object_get(doc, "gaps");
	if (!json_array_size(list))
		return;
	buf_adds(b, "\nNOT READ\n");
	json_array_foreach(list, i, gap)
	{
		buf_adds(b, "  ");
		cell(b, text_of(gap, "metric"), 24);
		cell(b, text_of(gap, "reason"), 28);
		buf_adds(b, "  ");
		fmt_duration(b, number_of(gap, "ns"));
		buf_adds(b, " in ");
		fmt_count(b, number_of(gap, "gaps"));
		buf_adds(b, number_of(gap, "gaps") == 1 ? " gap\n" : " gaps\n");
	}
}

static void notices_lines(const json_t *doc, struct buf *b)
{
	const json_t *list = json_object_get(doc, "notices");
	size_t n = json_array_size(list);
	size_t first = n > NOTICES_MAX ? n - NOTICES_MAX : 0;
	if (!n)
		return;
	buf_adds(b, "\nNOTICES\n");
	if (first)
		buf_addf(b, "  (%zu earlier ones: --json)\n", first);
	for (size_t i = first; i < n; i++) {
		const json_t *notice = json_array_get(list, i);
		buf_addf(b, "  %.8s  ", text_of(notice, "time") + 11);
		cell(b, text_of(notice, "kind"), 14);
		buf_addf(b, " %s\n", text_of(notice, "text"));
	}
}

void inventory_text(const json_t *doc, struct buf *b)
{
	head(doc, b);
	size_line(doc, b);
	facts_lines(doc, b);
	entities_line(doc, b);
	metrics_table(doc, b);
	tracks_table(doc, b);
	gaps_lines(doc, b);
	notices_lines(doc, b);
}
