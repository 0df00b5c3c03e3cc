/* The consumer's end of one ring file; see ring_file.h. */
#include "tracers/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool read_header(int fd, struct wire_header *ret)
{
	return pread(fd, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret);
}

static int check_header(int fd, const struct wire_header *h)
{
	struct stat st;
	if (!h->magic)
		return -EAGAIN;
	if (h->magic != WIRE_MAGIC || h->version != WIRE_VERSION ||
	    h->header_bytes != WIRE_HEADER_BYTES || h->record_bytes != WIRE_RECORD_BYTES ||
	    !power_of_two(h->capacity) || h->capacity > WIRE_CAPACITY_MAX)
		return -EBADMSG;
	uint64_t size = WIRE_HEADER_BYTES + (uint64_t)h->capacity * WIRE_RECORD_BYTES;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < size)
		return -EBADMSG;
	return h->tail > h->head || h->head - h->tail > h->capacity ? -EBADMSG : 0;
}

int ring_file_adopt(int fd, struct ring_file *ret)
{
	struct wire_header h;
	struct stat st;
	if (!read_header(fd, &h)) /* still growing, or no file at all */
		return !fstat(fd, &st) && S_ISREG(st.st_mode) ? -EAGAIN : -EBADMSG;
	int rc = check_header(fd, &h);
	if (rc)
		return rc;
	*ret = (struct ring_file){
		.fd = fd,
		.capacity = h.capacity,
		.pid = h.pid,
		.tid = h.tid,
		.start_ns = h.start_ns,
		.pid_ns = h.pid_ns,
		.head = h.tail,
		.tail = h.tail,
	};
	return 0;
}

int ring_file_open(int dirfd, const char *name, struct ring_file *ret)
{
	int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	int rc = ring_file_adopt(fd, ret);
	if (rc)
		close(fd);
	return rc;
}

void ring_file_close(struct ring_file *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

int64_t ring_file_look(struct ring_file *r)
{
	struct wire_header first, second;
	/* The copy out of the page cache need not be atomic; the smaller of two is no promise too much. */
	if (!read_header(r->fd, &first) || !read_header(r->fd, &second))
		return -EBADMSG;
	uint64_t head = first.head < second.head ? first.head : second.head;
	if (head < r->tail || head - r->tail > r->capacity)
		return -EBADMSG;
	r->head = head;
	r->dropped = second.dropped;
	r->cost_ns = second.cost_ns;
	return (int64_t)(head - r->tail);
}

int64_t ring_file_peek(const struct ring_file *r, uint64_t skip, struct wire_record *ret,
		       size_t max)
{
	uint64_t waiting = r->head - r->tail;
	if (skip >= waiting)
		return 0;
	uint64_t n = waiting - skip, at = (r->tail + skip) & (r->capacity - 1);
	if (n > max)
		n = max;
	if (n > r->capacity - at) /* up to the end of the file; the rest comes with the next call */
		n = r->capacity - at;
	ssize_t want = (ssize_t)(n * sizeof(*ret));
	off_t offset = (off_t)(WIRE_HEADER_BYTES + at * WIRE_RECORD_BYTES);
	return pread(r->fd, ret, (size_t)want, offset) == want ? (int64_t)n : -EBADMSG;
}

void ring_file_advance(struct ring_file *r, uint64_t n)
{
	r->tail += n;
	/* Eight aligned bytes in one piece. Where it fails the ring fills up, and its producer counts. */
	ssize_t rc = pwrite(r->fd, &r->tail, sizeof(r->tail), offsetof(struct wire_header, tail));
	(void)rc;
}

#if defined(__x86_64__) || defined(__i386__)
/* Stores are seen in the order in which they were made. */
void ring_file_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}
#else
/* A producer in Python cannot issue a release store: have all running threads pass a barrier. */
void ring_file_order(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}
#endif
