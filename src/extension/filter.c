/* WHERE clauses; see filter.h. */
#include "extension/filter.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define ROWS 1e7 /* what the planner is told of a recording */

/* A plan is text, two letters per argument of xFilter: the column's code and one of these. */
enum { OP_EQ = '=', OP_GT = '>', OP_GE = 'g', OP_LT = '<', OP_LE = 'l' };

static char op_of(int sqlite_op)
{
	switch (sqlite_op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return OP_EQ;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return OP_GT;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return OP_GE;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return OP_LT;
	case SQLITE_INDEX_CONSTRAINT_LE:
		return OP_LE;
	default:
		return 0;
	}
}

static const struct filter_column *find(const struct filter_column *columns, int column)
{
	for (; columns->column >= 0; columns++)
		if (columns->column == column)
			return columns;
	return NULL;
}

static bool helps(sqlite3_index_info *info, int i, const struct filter_column *c)
{
	char op = op_of(info->aConstraint[i].op);
	if (!op || (op != OP_EQ && c->code != FILTER_TIME))
		return false;
	/* Text is compared byte by byte here; another collation is SQLite's business. */
	return c->code == FILTER_TIME || !strcasecmp(sqlite3_vtab_collation(info, i), "BINARY");
}

int filter_plan(sqlite3_index_info *info, const struct filter_column *columns)
{
	int n = 0;
	double rows = ROWS;
	char *plan = sqlite3_malloc(info->nConstraint * 2 + 1);
	if (!plan)
		return SQLITE_NOMEM;
	for (int i = 0; i < info->nConstraint; i++) {
		const struct filter_column *c = find(columns, info->aConstraint[i].iColumn);
		if (!c || !helps(info, i, c))
			continue;
		if (!info->aConstraint[i].usable) {
			if (c->code != FILTER_FILE)
				continue;
			sqlite3_free(plan); /* the recording must be known before it is read */
			return SQLITE_CONSTRAINT;
		}
		char op = op_of(info->aConstraint[i].op);
		plan[n * 2] = (char)c->code;
		plan[n * 2 + 1] = op;
		info->aConstraintUsage[i].argvIndex = ++n;
		info->aConstraintUsage[i].omit = c->code == FILTER_FILE;
		rows *= op == OP_EQ ? c->share : 0.3;
	}
	plan[n * 2] = 0;
	info->idxStr = plan;
	info->needToFreeIdxStr = 1;
	info->orderByConsumed =
		info->nOrderBy == 1 && info->aOrderBy[0].iColumn == 0 && !info->aOrderBy[0].desc;
	info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
	info->estimatedCost = 1000 + rows;
	return SQLITE_OK;
}

/* Bounds by a number that may lie outside of int64_t or between two: rather too wide than too narrow. */
static void bound_real(struct filter *f, char op, double v)
{
	if (isnan(v))
		return;
	if (op != OP_LT && op != OP_LE && v > 0) {
		uint64_t t0 = v < 9.2e18 ? (uint64_t)floor(v) : INT64_MAX;
		f->t0 = t0 > f->t0 ? t0 : f->t0;
	}
	if (op != OP_GT && op != OP_GE && v < 9.2e18) {
		uint64_t t1 = v < 0 ? 0 : (uint64_t)ceil(v) + 1;
		f->t1 = t1 < f->t1 ? t1 : f->t1;
	}
}

static void bound_int(struct filter *f, char op, int64_t v)
{
	bool lower = op == OP_EQ || op == OP_GT || op == OP_GE;
	bool upper = op == OP_EQ || op == OP_LT || op == OP_LE;
	if (v < 0) {
		f->nothing |= upper;
		return;
	}
	uint64_t t0 = (uint64_t)v + (op == OP_GT), t1 = (uint64_t)v + (op != OP_LT);
	if (lower && t0 > f->t0)
		f->t0 = t0;
	if (upper && t1 < f->t1)
		f->t1 = t1;
}

static void read_time(struct filter *f, char op, sqlite3_value *value)
{
	int type = sqlite3_value_numeric_type(value);
	if (type == SQLITE_INTEGER)
		bound_int(f, op, sqlite3_value_int64(value));
	else if (type == SQLITE_FLOAT)
		bound_real(f, op, sqlite3_value_double(value));
}

static void read_int(struct filter *f, sqlite3_value *value, bool *ret_has, int64_t *ret)
{
	if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER)
		return;
	int64_t v = sqlite3_value_int64(value);
	f->nothing |= *ret_has && *ret != v;
	*ret_has = true;
	*ret = v;
}

static void read_text(struct filter *f, sqlite3_value *value, const char **ret)
{
	if (sqlite3_value_type(value) != SQLITE_TEXT)
		return;
	const char *text = (const char *)sqlite3_value_text(value);
	if (text && *ret && strcmp(text, *ret) != 0)
		f->nothing = true;
	*ret = text;
}

static void read_value(struct filter *f, char code, char op, sqlite3_value *value)
{
	switch (code) {
	case FILTER_TIME:
		read_time(f, op, value);
		break;
	case FILTER_METRIC:
		read_text(f, value, &f->metric);
		break;
	case FILTER_TRACK:
		read_text(f, value, &f->track);
		break;
	case FILTER_ENTITY:
		read_text(f, value, &f->entity);
		break;
	case FILTER_KIND:
		read_text(f, value, &f->kind);
		break;
	case FILTER_FILE:
		read_text(f, value, &f->file);
		break;
	case FILTER_ID:
		read_int(f, value, &f->has_id, &f->id);
		break;
	case FILTER_KEY:
		read_int(f, value, &f->has_key, &f->key);
		break;
	}
}

void filter_read(const char *plan, int argc, sqlite3_value **argv, struct filter *ret)
{
	struct filter f = { .t1 = UINT64_MAX };
	for (int i = 0; i < argc && plan; i++) {
		/* Nothing equals NULL, and nothing is more or less. */
		if (sqlite3_value_type(argv[i]) == SQLITE_NULL)
			f.nothing = true;
		else
			read_value(&f, plan[i * 2], plan[i * 2 + 1], argv[i]);
	}
	f.nothing |= f.t0 >= f.t1;
	*ret = f;
}

bool filter_entity(const struct filter *f, const struct rec_reader *r, uint32_t entity)
{
	if (f->has_id && f->id != entity)
		return false;
	if (!f->entity && !f->kind && !f->has_key)
		return true;
	const struct rec_entity_info *info = rec_entity_by_id(r, entity);
	if (!info)
		return false;
	return (!f->entity || !strcmp(f->entity, info->name)) &&
	       (!f->kind || !strcmp(f->kind, entity_kind_name(info->kind))) &&
	       (!f->has_key || f->key == info->key);
}
