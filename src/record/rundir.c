/* The directory a run shares with its job; see rundir.h. */
#include "record/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "record/embed.h"

#define PREFIX "spotter-"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	int rc = type == FTW_DP ? rmdir(path) : unlink(path);
	return rc && errno != ENOENT ? -1 : 0;
}

void rundir_remove(const char *path)
{
	if (*path)
		nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Was this directory made by a recorder of ours that is dead? */
static bool is_stale(const char *base, const char *name)
{
	unsigned uid;
	int pid;
	struct stat st;
	char path[RUNDIR_MAX + 64];
	if (sscanf(name, PREFIX "%u-%d-", &uid, &pid) != 2 || uid != getuid() || pid <= 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", base, name);
	if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
		return false;
	return kill(pid, 0) && errno == ESRCH;
}

static void remove_stale(const char *base)
{
	DIR *d = opendir(base);
	if (!d)
		return;
	for (const struct dirent *ent; (ent = readdir(d));) {
		if (strncmp(ent->d_name, PREFIX, sizeof(PREFIX) - 1) ||
		    !is_stale(base, ent->d_name))
			continue;
		char path[RUNDIR_MAX + 64];
		snprintf(path, sizeof(path), "%s/%s", base, ent->d_name);
		rundir_remove(path);
	}
	closedir(d);
}

/* Write one embedded file below dir, making the folders on the way. */
static int unpack(const char *dir, const struct embedded_file *f)
{
	char path[RUNDIR_MAX + 128];
	snprintf(path, sizeof(path), "%s/%s", dir, f->path);
	for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int rc = io_write_all(fd, f->data, f->len);
	close(fd);
	return rc;
}

static int create_in(const char *base, char ret[RUNDIR_MAX])
{
	char path[RUNDIR_MAX];
	int n = snprintf(path, sizeof(path), "%s/" PREFIX "%u-%d-XXXXXX", base, (unsigned)getuid(),
			 (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	remove_stale(base);
	if (!mkdtemp(path))
		return -errno;
	for (const struct embedded_file *f = embedded_files; f->path; f++) {
		int rc = unpack(path, f);
		if (rc) {
			rundir_remove(path);
			return rc;
		}
	}
	memcpy(ret, path, sizeof(path));
	return 0;
}

int rundir_create(char ret[RUNDIR_MAX], struct err *e)
{
	const char *bases[] = { "/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };
	int rc = -ENOENT;
	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		if (!bases[i] || bases[i][0] != '/')
			continue;
		rc = create_in(bases[i], ret);
		if (!rc)
			return 0;
	}
	return err_set(e, -rc,
		       "no directory to share with the job (/dev/shm, $XDG_RUNTIME_DIR, /tmp): %s; "
		       "steps will not be seen",
		       strerror(-rc));
}
