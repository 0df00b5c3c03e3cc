/* Where a process's cgroup lies in the file system; see cgroup_path.h. */
#include "sources/cgroup_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A piece of a text. */
struct span {
	const char *s;
	size_t len;
};

static struct span line_at(const char *p)
{
	return (struct span){ p, strcspn(p, "\n") };
}

static const char *after(struct span line)
{
	return line.s + line.len + (line.s[line.len] == '\n');
}

/* Take what stands before the next `sep` (or the end) off the front. */
static struct span take(struct span *line, char sep)
{
	const char *end = memchr(line->s, sep, line->len);
	struct span out = { line->s, end ? (size_t)(end - line->s) : line->len };
	size_t used = out.len + (end != NULL);
	line->s += used;
	line->len -= used;
	return out;
}

static bool is(struct span a, const char *b)
{
	return a.len == strlen(b) && !memcmp(a.s, b, a.len);
}

/* Is word one of the comma-separated list? */
static bool lists(struct span list, const char *word)
{
	while (list.len)
		if (is(take(&list, ','), word))
			return true;
	return false;
}

/*
 * The line of /proc/PID/cgroup for a controller: "4:memory:/path" or, for version 2, "0::/path". The path
 * may hold colons.
 */
static bool find_line(const char *text, const char *controller, int *ret_version,
		      struct span *ret_path)
{
	bool found = false;
	for (const char *p = text; *p; p = after(line_at(p))) {
		struct span line = line_at(p);
		struct span id = take(&line, ':'), list = take(&line, ':');
		bool v2 = is(id, "0") && !list.len;
		if (!line.len || *line.s != '/')
			continue;
		if (v2 && !found) {
			*ret_version = 2;
			*ret_path = line;
			found = true;
		} else if (!v2 && *controller && lists(list, controller)) {
			*ret_version = 1;
			*ret_path = line;
			return true;
		}
	}
	return found;
}

struct mount {
	struct span root, point; /* still with their octal escapes */
};

/* "36 35 98:0 /root /point options optional... - cgroup source superoptions" */
static bool parse_mount(struct span line, int version, const char *controller, struct mount *ret)
{
	for (int i = 0; i < 3; i++)
		take(&line, ' ');
	struct mount m;
	m.root = take(&line, ' ');
	m.point = take(&line, ' ');
	while (line.len && !is(take(&line, ' '), "-"))
		;
	struct span type = take(&line, ' ');
	take(&line, ' ');
	struct span options = take(&line, ' ');
	if (version == 2 ? !is(type, "cgroup2")
			 : !is(type, "cgroup") || !lists(options, controller))
		return false;
	*ret = m;
	return m.root.len && m.point.len;
}

/* Undo \040 and the like; false if it does not fit. */
static bool unescape(struct span in, char *out, size_t cap)
{
	size_t n = 0;
	for (size_t i = 0; i < in.len; i++) {
		unsigned c = (unsigned char)in.s[i];
		if (c == '\\' && i + 3 < in.len) {
			unsigned v = 0, k = 1;
			for (; k <= 3 && in.s[i + k] >= '0' && in.s[i + k] <= '7'; k++)
				v = v * 8 + (unsigned)(in.s[i + k] - '0');
			if (k == 4) {
				c = v & 255;
				i += 3;
			}
		}
		if (n + 1 >= cap || !c)
			return false;
		out[n++] = (char)c;
	}
	out[n] = 0;
	return true;
}

/*
 * What of path lies below root: "/a/b" below "/a" is "/b", below "/" it is "/a/b" itself, "/a" below "/a" is "".
 * NULL if it does not lie there.
 */
static const char *below(const char *path, const char *root)
{
	size_t len = strlen(root);
	if (len == 1)
		return path[1] ? path : "";
	if (strncmp(path, root, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

/* Fill ret from one mount; 0, -EXDEV if the path is not in it, -ENAMETOOLONG. */
static int place_in(const struct mount *m, struct span path_span, int version, const char *sys_root,
		    struct cgroup_place *ret)
{
	char root[PATH_MAX], point[PATH_MAX], path[PATH_MAX];
	if (!unescape(m->root, root, sizeof(root)) || !unescape(m->point, point, sizeof(point)) ||
	    path_span.len >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, path_span.s, path_span.len);
	path[path_span.len] = 0;
	if (!strncmp(path, "/..", 3) && (!path[3] || path[3] == '/'))
		return -EXDEV;
	const char *rest = below(path, root);
	if (!rest || strstr(path, "/../"))
		return -EXDEV;
	bool sys = !strncmp(point, "/sys", 4) && (!point[4] || point[4] == '/');
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof(dir), "%s%s", sys ? sys_root : "", point + (sys ? 4 : 0));
	if (n < 0 || (size_t)n + strlen(rest) >= sizeof(ret->dir))
		return -ENAMETOOLONG;
	ret->version = version;
	ret->mount_len = (size_t)n;
	memcpy(ret->dir, dir, (size_t)n);
	memcpy(ret->dir + n, rest, strlen(rest) + 1);
	memcpy(ret->path, path, path_span.len + 1);
	return 0;
}

int cgroup_place_find(const char *cgroup_text, const char *mountinfo, const char *controller,
		      const char *sys_root, struct cgroup_place *ret)
{
	struct span path;
	int version, rc = -ENOENT;
	if (!find_line(cgroup_text, controller, &version, &path))
		return -ENOENT;
	for (const char *p = mountinfo; *p; p = after(line_at(p))) {
		struct mount m;
		if (!parse_mount(line_at(p), version, controller, &m))
			continue;
		rc = place_in(&m, path, version, sys_root, ret);
		if (!rc)
			break;
	}
	return rc;
}

bool cgroup_place_up(struct cgroup_place *place)
{
	char *slash = strrchr(place->dir + place->mount_len, '/');
	if (!slash)
		return false;
	*slash = 0;
	slash = strrchr(place->path, '/');
	if (slash)
		slash[slash == place->path] = 0; /* "/a" becomes "/", not "" */
	return true;
}
