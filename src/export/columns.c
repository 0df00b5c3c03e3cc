/* Columns of events by name; see columns.h. */
#include "export/columns.h"

#include <stdio.h>
#include <string.h>

#include "export/text.h"

/* Columns whose name in tracks.def leaves something to be said. */
static const struct {
	const char *column, *name;
} renamed[] = {
	{ "input_wait", "input_wait_ns" },
};

/* Numbers that stand for words. */
static const struct {
	const char *column;
	int64_t value;
	const char *word;
} words[] = {
	{ "phase", 0, "train" },
	{ "phase", 1, "evaluation" },
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void name_column(char *name, size_t cap, const char *column, size_t len, const char *track)
{
	snprintf(name, cap, "%.*s", (int)len, column);
	if (!strcmp(name, "index"))
		snprintf(name, cap, "%s", track);
	for (size_t k = 0; k < COUNT(renamed); k++)
		if (!strcmp(name, renamed[k].column))
			snprintf(name, cap, "%s", renamed[k].name);
}

static void name_all(const char *columns, const char *track, int n, struct columns *ret)
{
	ret->n = n < TRACK_COLUMNS_MAX ? n : TRACK_COLUMNS_MAX;
	for (int i = 0; i < ret->n; i++) {
		size_t len = strcspn(columns, " ");
		if (len)
			name_column(ret->names[i], sizeof(ret->names[i]), columns, len, track);
		else
			snprintf(ret->names[i], sizeof(ret->names[i]), "column%d", i);
		columns += len + (columns[len] == ' ');
	}
}

void columns_of_kind(enum track_kind kind, struct columns *ret)
{
	name_all(track_info(kind)->columns, track_info(kind)->name, track_ncolumns(kind), ret);
}

void columns_of(const struct rec_track_info *track, struct columns *ret)
{
	name_all(track->columns, track->name, track->ncolumns, ret);
}

struct cell columns_cell(const struct columns *c, struct rec_reader *r, const int64_t *row, int i)
{
	if (row[i] == REC_NONE)
		return (struct cell){ .type = CELL_NONE };
	if (!strcmp(c->names[i], "name")) {
		const char *s = rec_string_get(r, (uint32_t)row[i]);
		return (struct cell){ .type = s ? CELL_TEXT : CELL_NONE, .s = s };
	}
	for (size_t k = 0; k < COUNT(words); k++)
		if (words[k].value == row[i] && !strcmp(c->names[i], words[k].column))
			return (struct cell){ .type = CELL_TEXT, .s = words[k].word };
	return (struct cell){ .type = CELL_I64, .i = row[i] };
}

void columns_args(struct buf *b, struct rec_reader *r, const struct columns *c, const int64_t *row)
{
	char before = '{';
	for (int i = EV_DUR + 1; i < c->n; i++) {
		struct cell cell = columns_cell(c, r, row, i);
		if (cell.type == CELL_NONE)
			continue;
		buf_addf(b, "%c\"%s\":", before, c->names[i]);
		if (cell.type == CELL_TEXT)
			text_json(b, cell.s);
		else
			text_i64(b, cell.i);
		before = ',';
	}
	buf_adds(b, before == '{' ? "{}" : "}");
}
