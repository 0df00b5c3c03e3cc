/* The producer's end of a ring; see ring_writer.h. */
#include "tracers/ring_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define RING_BYTES (WIRE_HEADER_BYTES + WIRE_CAPACITY * WIRE_RECORD_BYTES)

static int create(struct ring_writer *w, const char *dir)
{
	for (int n = 0; n < 1000; n++) {
		int len = snprintf(w->path, sizeof(w->path), "%s/%d.%d.%d.ring", dir, (int)getpid(),
				   (int)syscall(SYS_gettid), n);
		if (len < 0 || (size_t)len >= sizeof(w->path))
			return -ENAMETOOLONG;
		int fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static uint64_t own_pid_namespace(void)
{
	struct stat st;
	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

int ring_writer_open(struct ring_writer *w, const char *dir, uint32_t pid, uint32_t tid,
		     const char *source)
{
	char fact[256];
	void *map = MAP_FAILED;
	int fd = create(w, dir);
	if (fd < 0)
		return fd;
	int rc = posix_fallocate(fd, 0, RING_BYTES);
	if (!rc)
		map = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!rc && map == MAP_FAILED)
		rc = errno;
	close(fd);
	if (rc) {
		unlink(w->path);
		return -rc;
	}
	w->header = map;
	w->records = (struct wire_record *)((char *)map + WIRE_HEADER_BYTES);
	w->head = 0;
	w->header->version = WIRE_VERSION;
	w->header->header_bytes = WIRE_HEADER_BYTES;
	w->header->record_bytes = WIRE_RECORD_BYTES;
	w->header->capacity = WIRE_CAPACITY;
	w->header->pid = pid;
	w->header->tid = tid;
	w->header->start_ns = clock_mono_ns();
	w->header->pid_ns = own_pid_namespace();
	__atomic_store_n(&w->header->magic, WIRE_MAGIC, __ATOMIC_RELEASE);
	snprintf(fact, sizeof(fact), "hook=%s", source);
	ring_writer_text(w, WIRE_FACT, 0, fact);
	return 0;
}

void ring_writer_close(struct ring_writer *w)
{
	if (w->header)
		munmap(w->header, RING_BYTES);
	w->header = NULL;
}

/* Is there room for n records? If not, they count as dropped. */
static bool room(struct ring_writer *w, uint64_t n)
{
	uint64_t tail = __atomic_load_n(&w->header->tail, __ATOMIC_ACQUIRE);
	if (tail <= w->head && w->head + n - tail <= WIRE_CAPACITY)
		return true;
	__atomic_store_n(&w->header->dropped, w->header->dropped + n, __ATOMIC_RELAXED);
	return false;
}

static void publish(struct ring_writer *w, uint64_t n)
{
	w->head += n;
	__atomic_store_n(&w->header->head, w->head, __ATOMIC_RELEASE);
}

void ring_writer_put(struct ring_writer *w, const struct wire_record *record)
{
	if (!room(w, 1))
		return;
	w->records[w->head & (WIRE_CAPACITY - 1)] = *record;
	publish(w, 1);
}

void ring_writer_text(struct ring_writer *w, uint16_t kind, uint32_t id, const char *text)
{
	size_t len = strlen(text), pieces = len ? (len + WIRE_TEXT_BYTES - 1) / WIRE_TEXT_BYTES : 1;
	if (pieces > WIRE_CAPACITY || !room(w, pieces))
		return;
	uint64_t now = clock_mono_ns();
	for (size_t i = 0; i < pieces; i++) {
		struct wire_record *r = &w->records[(w->head + i) & (WIRE_CAPACITY - 1)];
		size_t n = len - i * WIRE_TEXT_BYTES;
		bool more = n > WIRE_TEXT_BYTES;
		if (more)
			n = WIRE_TEXT_BYTES;
		*r = (struct wire_record){ .t_ns = now, .kind = kind, .aux = id };
		r->flags = (uint16_t)(n | (more ? WIRE_MORE : 0));
		memcpy(r->arg, text + i * WIRE_TEXT_BYTES, n);
	}
	publish(w, pieces);
}
