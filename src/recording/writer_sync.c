/*
 * Bringing what is in the WAL to the disk, in a thread of its own: a disk that is busy with the
 * job's checkpoints may take seconds for an fsync, and the recorder must not wait for it. Every few
 * seconds the log is synced, so that a power cut costs no more than that; when it has grown it is
 * copied into the file and begun anew. The thread starts when there is first something to do for
 * it: short runs have none. Where it cannot start, the writer does it itself.
 */
#include "recording/writer.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define WAL_PAGES 512 /* of 4 KiB: how long the log may grow before it is begun anew */
#define SPARE     20  /* a slow disk is kept busy for 1/20 of the time at most */
#define ROUNDS    4   /* the writer may add something while the log is copied */
#define BUSY_MS   1000

enum { ASK_SYNC = 1, ASK_CHECKPOINT = 2, ASK_STOP = 4 };

static void sync_log(struct writer_sync *s, const char *path)
{
	char wal[PATH_MAX + 16];
	snprintf(wal, sizeof(wal), "%s-wal", path);
	if (s->fd < 0) /* stays the same file as long as somebody has the recording open */
		s->fd = open(wal, O_RDONLY | O_CLOEXEC);
	if (s->fd >= 0)
		fdatasync(s->fd);
}

/*
 * Copy the log into the file; true if all of it is there now. The next transaction then begins the
 * log anew, and syncs it: let it be one of ours.
 */
static bool checkpoint(sqlite3 *db)
{
	int pages = -1, done = -1;
	for (int i = 0; i < ROUNDS; i++) {
		int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
						   &done);
		if (rc != SQLITE_OK)
			return false;
		if (pages == done)
			return true;
	}
	return false;
}

static void restart_log(struct writer_sync *s, const char *path)
{
	if (!s->db) {
		if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				    NULL) != SQLITE_OK ||
		    db_exec(s->db, "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0;"
				   "PRAGMA cache_size=-64") != SQLITE_OK) {
			sqlite3_close(s->db);
			s->db = NULL;
			return;
		}
		sqlite3_busy_timeout(s->db, BUSY_MS);
	}
	if (checkpoint(s->db))
		db_exec(s->db, "UPDATE run SET value=value WHERE key='journal'");
}

static void *work(void *arg)
{
	struct rec_writer *w = arg;
	struct writer_sync *s = &w->sync;
	unsigned asked = 0;
	while (!(asked & ASK_STOP)) {
		pthread_mutex_lock(&s->lock);
		s->busy = false;
		while (!s->asked)
			pthread_cond_wait(&s->wake, &s->lock);
		asked = s->asked;
		s->asked = 0;
		s->busy = true;
		pthread_mutex_unlock(&s->lock);
		uint64_t start = clock_mono_ns();
		if (asked & ASK_CHECKPOINT)
			restart_log(s, w->path);
		else if (asked & ASK_SYNC)
			sync_log(s, w->path);
		uint64_t end = clock_mono_ns();
		pthread_mutex_lock(&s->lock);
		s->spare_until_ns = end + (end - start) * SPARE;
		pthread_mutex_unlock(&s->lock);
	}
	sqlite3_close(s->db);
	if (s->fd >= 0)
		close(s->fd);
	return NULL;
}

/* The thread takes no signals: they are the recorder's. */
static bool start(struct rec_writer *w)
{
	struct writer_sync *s = &w->sync;
	sigset_t all, before;
	if (s->running || w->opt.one_thread)
		return s->running;
	s->fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->running = !pthread_create(&s->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->opt.one_thread = !s->running;
	return s->running;
}

/* Without a thread: here and now. */
static void sync_here(struct rec_writer *w)
{
	uint64_t begin = clock_mono_ns();
	checkpoint(w->db);
	uint64_t end = clock_mono_ns();
	w->sync.spare_until_ns = end + (end - begin) * SPARE;
}

/* False while the last one is still under way, or the disk is to be spared. */
static bool ask(struct writer_sync *s, unsigned what, uint64_t now)
{
	pthread_mutex_lock(&s->lock);
	bool free = !s->busy && !s->asked && now >= s->spare_until_ns;
	if (free) {
		s->asked = what;
		pthread_cond_signal(&s->wake);
	}
	pthread_mutex_unlock(&s->lock);
	return free;
}

void sync_wal(struct rec_writer *w)
{
	struct writer_sync *s = &w->sync;
	uint64_t now = clock_mono_ns();
	if (w->wal_pages < s->copied_at) /* the log began anew */
		s->copied_at = 0;
	bool grown = w->wal_pages - s->copied_at >= WAL_PAGES;
	if (!w->wal || !w->wal_pages || (now < s->next_ns && !grown))
		return;
	if (start(w) ? !ask(s, grown ? ASK_CHECKPOINT : ASK_SYNC, now) : now < s->spare_until_ns)
		return;
	if (!s->running)
		sync_here(w);
	if (grown)
		s->copied_at = w->wal_pages;
	s->next_ns = now + w->opt.sync_every_s * NS_PER_S;
}

void sync_stop(struct rec_writer *w)
{
	struct writer_sync *s = &w->sync;
	if (!s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->asked |= ASK_STOP;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->wake);
	s->running = false;
}
