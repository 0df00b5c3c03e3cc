/* Readers of one connection; see session.h. */
#include "extension/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define IDLE_MAX 4 /* recordings kept open that nobody reads just now */

struct session {
	sqlite3 *db;
	unsigned refs;
	struct session_run *runs; /* the one used last comes first */
};

struct session *session_new(sqlite3 *db)
{
	struct session *s = calloc(1, sizeof(*s));
	if (s)
		*s = (struct session){ .db = db, .refs = 1 };
	return s;
}

struct session *session_ref(struct session *s)
{
	s->refs++;
	return s;
}

static void run_free(struct session_run *run)
{
	rec_reader_free(run->r);
	free(run->path);
	free(run);
}

void session_unref(void *session)
{
	struct session *s = session;
	if (!s || --s->refs)
		return;
	while (s->runs) {
		struct session_run *next = s->runs->next;
		run_free(s->runs);
		s->runs = next;
	}
	free(s);
}

/* Close what nobody uses: all that show a file which is no longer the one at path, and all but some. */
static void close_idle(struct session *s, const char *path, const struct stat *st)
{
	unsigned idle = 0;
	for (struct session_run **at = &s->runs; *at;) {
		struct session_run *run = *at;
		bool replaced = !strcmp(run->path, path) &&
				(run->device != st->st_dev || run->inode != st->st_ino);
		if (!run->users && (replaced || ++idle > IDLE_MAX)) {
			*at = run->next;
			run_free(run);
		} else {
			at = &run->next;
		}
	}
}

static struct session_run *find(struct session *s, const char *path, const struct stat *st)
{
	for (struct session_run **at = &s->runs; *at; at = &(*at)->next) {
		struct session_run *run = *at;
		if (strcmp(run->path, path) != 0 || run->device != st->st_dev ||
		    run->inode != st->st_ino)
			continue;
		*at = run->next;
		run->next = s->runs;
		s->runs = run;
		return run;
	}
	return NULL;
}

static int add(struct session *s, const char *path, const struct stat *st, struct err *e)
{
	struct session_run *run = calloc(1, sizeof(*run));
	if (run)
		run->path = strdup(path);
	if (!run || !run->path) {
		free(run);
		return err_set(e, ENOMEM, "out of memory");
	}
	int rc = rec_open(path, &run->r, e);
	if (rc) {
		run_free(run);
		return rc;
	}
	run->device = st->st_dev;
	run->inode = st->st_ino;
	run->next = s->runs;
	s->runs = run;
	return 0;
}

int session_enter(struct session *s, const char *path, struct session_run **ret, struct err *e)
{
	struct stat st;
	if (!path)
		path = sqlite3_db_filename(s->db, "main");
	if (!path || !*path)
		return err_set(
			e, EINVAL,
			"no recording is open: begin with 'sqlite3 run.spot', or name one as "
			"in samples('run.spot')");
	if (stat(path, &st))
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	close_idle(s, path, &st);
	struct session_run *run = find(s, path, &st);
	int rc = run ? 0 : add(s, path, &st, e);
	if (!rc && run && !run->users)
		rc = rec_refresh(run->r, e);
	if (rc < 0)
		return rc;
	s->runs->users++;
	*ret = s->runs;
	return 0;
}

void session_leave(struct session *s, struct session_run *run)
{
	if (run)
		run->users--;
}
