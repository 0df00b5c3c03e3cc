/*
 * A directory tree in a temporary place that stands for /proc and /sys in tests. Files are rewritten in place,
 * so that descriptors kept by a source see the new text.
 */
#ifndef SPOTTER_TESTS_TREE_H
#define SPOTTER_TESTS_TREE_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
	char root[PATH_MAX / 4];
	char proc[PATH_MAX / 2], sys[PATH_MAX / 2]; /* root + "/proc", root + "/sys" */
};

static inline void tree_dirs(const char *path)
{
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = dir + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(dir, 0755);
		*p = '/';
	}
}

/* path begins with "/proc/" or "/sys/" */
static inline void tree_put(const struct tree *t, const char *path, const char *text)
{
	char full[PATH_MAX];
	snprintf(full, sizeof(full), "%s%s", t->root, path);
	tree_dirs(full);
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		perror(full);
		abort();
	}
	close(fd);
}

static inline void tree_del(const struct tree *t, const char *path)
{
	char full[PATH_MAX];
	snprintf(full, sizeof(full), "%s%s", t->root, path);
	unlink(full);
}

static inline void tree_new(struct tree *t)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(t->root, sizeof(t->root), "%s/spotter-tree-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(t->root) || chmod(t->root, 0755))
		abort();
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->root);
	snprintf(t->sys, sizeof(t->sys), "%s/sys", t->root);
	mkdir(t->proc, 0755);
	mkdir(t->sys, 0755);
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void tree_free(struct tree *t)
{
	nftw(t->root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
