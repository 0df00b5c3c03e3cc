/* Option parsing from a table; see opt.h. */
#include "base/opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"

static int set_flag(void *field, const char *value)
{
	*(bool *)field = true;
	return 0;
}

static int set_string(void *field, const char *value)
{
	*(const char **)field = value;
	return 0;
}

static int set_u64(void *field, const char *value)
{
	char *end;
	errno = 0;
	unsigned long long v = strtoull(value, &end, 10);
	if (end == value || *end || *value == '-' || errno)
		return -EINVAL;
	*(uint64_t *)field = v;
	return 0;
}

static int set_duration(void *field, const char *value)
{
	return fmt_parse_duration(value, field);
}

static int set_bytes(void *field, const char *value)
{
	return fmt_parse_bytes(value, field);
}

static const struct {
	int (*set)(void *field, const char *value);
	const char *expects;
} types[] = {
	[OPT_FLAG] = { set_flag, "nothing" },
	[OPT_STRING] = { set_string, "a text" },
	[OPT_U64] = { set_u64, "a whole number" },
	[OPT_DURATION] = { set_duration, "a time such as 10ms, 1s or 2m" },
	[OPT_BYTES] = { set_bytes, "a size such as 500k, 10MB or 1GiB" },
};

static const struct opt *by_name(const struct opt *table, const char *name, size_t len)
{
	for (const struct opt *o = table; o->name; o++)
		if (strlen(o->name) == len && !strncmp(o->name, name, len))
			return o;
	return NULL;
}

static const struct opt *by_letter(const struct opt *table, char letter)
{
	for (const struct opt *o = table; o->name; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

/* The option somebody may have meant: the one that shares the longest beginning with name. */
static const char *nearest(const struct opt *table, const char *name)
{
	const char *best = NULL;
	size_t best_len = 1;
	for (const struct opt *o = table; o->name; o++) {
		size_t n = 0;
		while (o->name[n] && o->name[n] == name[n])
			n++;
		if (n > best_len) {
			best = o->name;
			best_len = n;
		}
	}
	return best;
}

static int store(const struct opt *o, void *into, const char *value, struct err *e)
{
	if (!types[o->type].set((char *)into + o->offset, value))
		return 0;
	return err_set(e, EINVAL, "--%s expects %s, not '%s'", o->name, types[o->type].expects,
		       value);
}

/* One long option at argv[*at]; moves *at over a separate value. */
static int parse_long(const struct opt *table, void *into, int argc, char **argv, int *at,
		      struct err *e)
{
	const char *name = argv[*at] + 2;
	const char *eq = strchr(name, '=');
	const struct opt *o = by_name(table, name, eq ? (size_t)(eq - name) : strlen(name));
	if (!o) {
		const char *near = nearest(table, name);
		return err_set(e, EINVAL, "unknown option %s%s%s", argv[*at],
			       near ? "; did you mean --" : "", near ? near : "");
	}
	if (o->type == OPT_FLAG) {
		if (eq)
			return err_set(e, EINVAL, "--%s takes no value", o->name);
		return store(o, into, "", e);
	}
	if (eq)
		return store(o, into, eq + 1, e);
	if (*at + 1 >= argc)
		return err_set(e, EINVAL, "--%s needs %s", o->name, types[o->type].expects);
	return store(o, into, argv[++*at], e);
}

/* A cluster of letters at argv[*at]: "-vi 1s", "-i1s". */
static int parse_letters(const struct opt *table, void *into, int argc, char **argv, int *at,
			 struct err *e)
{
	for (const char *p = argv[*at] + 1; *p; p++) {
		const struct opt *o = by_letter(table, *p);
		if (!o)
			return err_set(e, EINVAL, "unknown option -%c", *p);
		if (o->type == OPT_FLAG) {
			store(o, into, "", e);
			continue;
		}
		if (p[1])
			return store(o, into, p + 1, e);
		if (*at + 1 >= argc)
			return err_set(e, EINVAL, "-%c needs %s", *p, types[o->type].expects);
		return store(o, into, argv[++*at], e);
	}
	return 0;
}

int opt_parse(const struct opt *table, void *into, int argc, char **argv, bool stop_at_first,
	      int *ret_n, bool *ret_help, struct err *e)
{
	int n = 0;
	bool options = true;
	for (int at = 1; at < argc; at++) {
		char *arg = argv[at];
		int rc = 0;
		if (!options || arg[0] != '-' || !arg[1]) {
			argv[1 + n++] = arg;
			options = options && !stop_at_first;
		} else if (!strcmp(arg, "--")) {
			options = false;
		} else if (!strcmp(arg, "--help") ||
			   (!strcmp(arg, "-h") && !by_letter(table, 'h'))) {
			*ret_help = true;
			return 0;
		} else if (arg[1] == '-') {
			rc = parse_long(table, into, argc, argv, &at, e);
		} else {
			rc = parse_letters(table, into, argc, argv, &at, e);
		}
		if (rc)
			return rc;
	}
	*ret_n = n;
	return 0;
}
