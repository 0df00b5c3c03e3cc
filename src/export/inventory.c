/* Counting what a recording holds; see inventory.h. */
#include "export/inventory.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "export/text.h"

/* Every call takes what it is given, and a NULL anywhere (no memory) is noticed at the end. */
static int out_of_memory(struct err *e)
{
	return err_set(e, ENOMEM, "out of memory");
}

static json_t *text_or_bytes(const char *s)
{
	json_t *value = s ? json_string(s) : json_null();
	if (value)
		return value;
	struct buf b = BUF_INIT; /* no UTF-8: as it is exported */
	text_json(&b, s);
	value = json_loads(b.data, JSON_DECODE_ANY, NULL);
	buf_free(&b);
	return value;
}

static json_t *time_text(const struct rec_reader *r, uint64_t t_ns)
{
	struct buf b = BUF_INIT;
	text_time(&b, rec_realtime_ns(r, t_ns));
	json_t *value = json_string(b.data);
	buf_free(&b);
	return value;
}

/* object[key] += n */
static void add_count(json_t *object, const char *key, uint64_t n)
{
	json_int_t before = json_integer_value(json_object_get(object, key));
	json_object_set_new(object, key, json_integer(before + (json_int_t)n));
}

/* A text into a list that is a set. */
static void add_once(json_t *list, const char *s)
{
	size_t i;
	json_t *old;
	if (!s)
		return;
	json_array_foreach(list, i, old) if (!strcmp(json_string_value(old), s)) return;
	json_t *value = text_or_bytes(s);
	if (json_is_string(value))
		json_array_append_new(list, value);
	else
		json_decref(value);
}

/* The object at key, made where it is not there yet. */
static json_t *child(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	if (!value) {
		value = json_object();
		json_object_set_new(object, key, value);
	}
	return value;
}

static json_t *list(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	if (!value) {
		value = json_array();
		json_object_set_new(object, key, value);
	}
	return value;
}

/* The values of an object of objects as a list, each with its key under `name`. */
static json_t *as_list(json_t *object, const char *name)
{
	const char *key;
	json_t *value, *result = json_array();
	json_object_foreach(object, key, value)
	{
		json_object_set_new(value, name, json_string(key));
		json_array_append(result, value);
	}
	json_decref(object);
	return result;
}

static json_t *facts_of(const struct rec_reader *r)
{
	const struct rec_fact *facts;
	size_t n = rec_facts(r, &facts);
	json_t *object = json_object();
	for (size_t i = 0; i < n; i++)
		json_object_set_new(object, facts[i].key, text_or_bytes(facts[i].value));
	return object;
}

static json_t *entities_of(const struct rec_reader *r)
{
	const struct rec_entity_info *all;
	size_t n = rec_entities(r, &all);
	json_t *object = json_object();
	for (size_t i = 0; i < n; i++)
		add_count(object, entity_kind_name(all[i].kind), 1);
	return object;
}

static const char *kind_of_entity(const struct rec_reader *r, uint32_t id)
{
	const struct rec_entity_info *e = rec_entity_by_id(r, id);
	return e ? entity_kind_name(e->kind) : "unknown";
}

static int metrics_of(struct rec_reader *r, json_t **ret, struct err *e)
{
	const struct rec_series_info *all;
	size_t n = rec_serieses(r, &all);
	json_t *object = json_object();
	for (size_t i = 0; i < n; i++) {
		struct rec_size size;
		int rc = rec_series_size(r, all[i].id, &size, e);
		if (rc < 0) {
			json_decref(object);
			return rc;
		}
		json_t *m = child(object, all[i].name);
		json_object_set_new(m, "unit", text_or_bytes(all[i].unit));
		json_object_set_new(
			m, "kind",
			json_string(all[i].kind == METRIC_COUNTER ? "counter" : "gauge"));
		add_count(m, "series", 1);
		add_count(m, "samples", size.n);
		add_count(m, "bytes", size.bytes);
		add_once(list(m, "entities"), kind_of_entity(r, all[i].entity));
		add_once(list(m, "sources"), all[i].source);
	}
	*ret = as_list(object, "name");
	return 0;
}

static int tracks_of(struct rec_reader *r, json_t **ret, struct err *e)
{
	const struct rec_track_info *all;
	size_t n = rec_tracks(r, &all);
	json_t *object = json_object();
	for (size_t i = 0; i < n; i++) {
		struct rec_size size;
		int rc = rec_track_size(r, all[i].id, &size, e);
		if (rc < 0) {
			json_decref(object);
			return rc;
		}
		json_t *t = child(object, all[i].name);
		add_count(t, "tracks", 1);
		add_count(t, "events", size.n);
		add_count(t, "bytes", size.bytes);
	}
	*ret = as_list(object, "name");
	return 0;
}

/* Gaps by metric and reason: thousands of processes without permission are one line. */
static json_t *gaps_of(const struct rec_reader *r)
{
	const struct rec_series_info *series;
	const struct rec_gap_info *all;
	size_t nseries = rec_serieses(r, &series), n = rec_gaps(r, &all);
	json_t *object = json_object();
	struct map names;
	map_init(&names);
	for (size_t i = 0; i < nseries; i++)
		map_put(&names, series[i].id, i);
	for (size_t i = 0; i < n; i++) {
		uint64_t at;
		const char *metric =
			map_get(&names, all[i].series, &at) ? series[at].name : "unknown";
		struct buf key = BUF_INIT;
		buf_addf(&key, "%s\n%s", metric, all[i].reason ? all[i].reason : "");
		json_t *gap = child(object, key.data);
		buf_free(&key);
		uint64_t until = all[i].t1_ns ? all[i].t1_ns : rec_t1(r);
		json_object_set_new(gap, "metric", text_or_bytes(metric));
		json_object_set_new(gap, "reason", text_or_bytes(all[i].reason));
		add_count(gap, "gaps", 1);
		add_count(gap, "ns", until > all[i].t0_ns ? until - all[i].t0_ns : 0);
	}
	map_free(&names);
	json_t *result = as_list(object, "key");
	size_t i;
	json_t *gap;
	json_array_foreach(result, i, gap) json_object_del(gap, "key");
	return result;
}

static json_t *notices_of(const struct rec_reader *r)
{
	const struct rec_notice_info *all;
	size_t n = rec_notices(r, &all);
	json_t *result = json_array();
	for (size_t i = 0; i < n; i++) {
		json_t *notice = json_object();
		json_object_set_new(notice, "time", time_text(r, all[i].t_ns));
		json_object_set_new(notice, "t_ns", json_integer((json_int_t)all[i].t_ns));
		json_object_set_new(notice, "kind", text_or_bytes(all[i].kind));
		json_object_set_new(notice, "text", text_or_bytes(all[i].text));
		json_array_append_new(result, notice);
	}
	return result;
}

static json_t *file_of(const struct rec_reader *r, const char *path)
{
	struct stat st;
	json_t *file = json_object();
	json_object_set_new(file, "path", text_or_bytes(path));
	if (!stat(path, &st))
		json_object_set_new(file, "bytes", json_integer(st.st_size));
	json_object_set_new(file, "live", json_boolean(rec_is_live(r)));
	json_object_set_new(file, "damaged_parts", json_integer((json_int_t)rec_damaged(r)));
	return file;
}

static json_t *time_of(const struct rec_reader *r)
{
	json_t *time = json_object();
	uint64_t t0 = rec_t0(r), t1 = rec_t1(r);
	if (t0) {
		json_object_set_new(time, "begin", time_text(r, t0));
		json_object_set_new(time, "end", time_text(r, t1));
		json_object_set_new(time, "t0_ns", json_integer((json_int_t)t0));
		json_object_set_new(time, "t1_ns", json_integer((json_int_t)t1));
	}
	return time;
}

int inventory_make(struct rec_reader *r, const char *path, json_t **ret, struct err *e)
{
	json_t *metric_list, *track_list;
	int rc = metrics_of(r, &metric_list, e);
	if (rc)
		return rc;
	rc = tracks_of(r, &track_list, e);
	if (rc) {
		json_decref(metric_list);
		return rc;
	}
	const struct rec_finding *findings;
	json_t *doc = json_object();
	json_object_set_new(doc, "facts", facts_of(r));
	json_object_set_new(doc, "time", time_of(r));
	json_object_set_new(doc, "entities", entities_of(r));
	json_object_set_new(doc, "metrics", metric_list);
	json_object_set_new(doc, "tracks", track_list);
	json_object_set_new(doc, "gaps", gaps_of(r));
	json_object_set_new(doc, "notices", notices_of(r));
	json_object_set_new(doc, "findings",
			    json_integer((json_int_t)rec_kept_findings(r, &findings)));
	/* Last: what did not decode is known only now. */
	json_object_set_new(doc, "file", file_of(r, path));
	if (json_object_size(doc) != 9) {
		json_decref(doc);
		return out_of_memory(e);
	}
	*ret = doc;
	return 0;
}
