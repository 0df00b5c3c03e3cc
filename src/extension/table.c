/* What the virtual tables have in common; see table.h. */
#include "extension/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/text.h"

void table_aux_free(void *aux)
{
	struct table_aux *a = aux;
	if (a)
		session_unref(a->session);
	free(a);
}

int table_connect(sqlite3 *db, void *aux, const char *schema, sqlite3_vtab **ret)
{
	int rc = sqlite3_declare_vtab(db, schema);
	if (rc)
		return rc;
	struct table *t = calloc(1, sizeof(*t));
	if (!t)
		return SQLITE_NOMEM;
	t->aux = aux;
	*ret = &t->base;
	return SQLITE_OK;
}

int table_disconnect(sqlite3_vtab *vtab)
{
	free(vtab);
	return SQLITE_OK;
}

int table_error(sqlite3_vtab *vtab, int rc, const struct err *e)
{
	if (rc == -ENOMEM)
		return SQLITE_NOMEM;
	sqlite3_free(vtab->zErrMsg);
	vtab->zErrMsg = sqlite3_mprintf("%s", e->text[0] ? e->text : strerror(-rc));
	return SQLITE_ERROR;
}

void table_result_text(sqlite3_context *ctx, const char *s)
{
	sqlite3_result_text(ctx, s, -1, SQLITE_TRANSIENT);
}

void table_result_time(sqlite3_context *ctx, const struct rec_reader *r, uint64_t t_ns)
{
	struct buf b = BUF_INIT;
	text_time(&b, r, t_ns);
	if (b.len)
		table_result_buf(ctx, &b);
}

void table_result_buf(sqlite3_context *ctx, struct buf *b)
{
	if (b->failed)
		sqlite3_result_error_nomem(ctx);
	else
		sqlite3_result_text(ctx, b->data, (int)b->len, SQLITE_TRANSIENT);
	buf_free(b);
}

void table_result_entity(sqlite3_context *ctx, const struct rec_reader *r, uint32_t entity,
			 int which)
{
	const struct rec_entity_info *info = rec_entity_by_id(r, entity);
	if (which == 2)
		sqlite3_result_int64(ctx, entity);
	else if (!info)
		sqlite3_result_null(ctx);
	else if (which == 0)
		table_result_text(ctx, info->name);
	else if (which == 1)
		table_result_text(ctx, entity_kind_name(info->kind));
	else
		sqlite3_result_int64(ctx, info->key);
}
