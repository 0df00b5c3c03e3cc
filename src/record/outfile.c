/* Where a recording goes; see outfile.h. */
#include "record/outfile.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/recording.h"

enum existing { NOTHING, LIVE, FINISHED, FOREIGN };

static enum existing what_is_at(const char *path)
{
	struct stat st;
	struct rec_reader *r = NULL;
	if (lstat(path, &st))
		return NOTHING;
	if (rec_open(path, &r, NULL))
		return FOREIGN;
	enum existing what = rec_is_live(r) ? LIVE : FINISHED;
	rec_reader_free(r);
	return what;
}

/* A finished recording steps aside; anything else stays, and creating the new one will say so. */
static void keep_old(const char *path)
{
	char old[OUTFILE_MAX + 8];
	if (what_is_at(path) != FINISHED)
		return;
	snprintf(old, sizeof(old), "%s.old", path);
	if (rename(path, old))
		return;
	static const char *const beside[] = { "-wal", "-shm", "-journal" };
	for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
		char from[OUTFILE_MAX + 16], to[OUTFILE_MAX + 24];
		snprintf(from, sizeof(from), "%s%s", path, beside[i]);
		snprintf(to, sizeof(to), "%s%s", old, beside[i]);
		unlink(to);
		rename(from, to);
	}
}

void outfile_choose(const char *requested, char ret[OUTFILE_MAX])
{
	snprintf(ret, OUTFILE_MAX, "%s", requested ? requested : "run.spot");
	for (int i = 2; !requested && i < 1000 && what_is_at(ret) == LIVE; i++)
		snprintf(ret, OUTFILE_MAX, "run.%d.spot", i);
	keep_old(ret);
}
