/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spotter/mark.h: tell spotter what a training program does. A header for C and C++, nothing to link.
 *
 *	#include <spotter/mark.h>
 *
 *	for (int epoch = 0; epoch < epochs; epoch++) {
 *		spotter_epoch(epoch);			an epoch begins
 *		for (...) {
 *			spotter_input_begin();
 *			next_batch();
 *			spotter_input_end();
 *			train();
 *			spotter_step(64);		a step ends: 64 samples
 *		}
 *		spotter_checkpoint_begin();
 *		save();
 *		spotter_checkpoint_end(SPOTTER_NONE);	or the bytes written
 *	}
 *	spotter_epoch_end();
 *
 * Under `spotter run` a mark writes one record of 64 bytes into a ring in shared memory, one ring per thread;
 * elsewhere it is a load and a branch. Marks never print, block or fail, and take no lock; the first mark of a
 * thread makes its ring (some system calls). A forked child gets rings of its own. When the recorder
 * is slower than the marks, records are dropped and counted. Not for signal handlers.
 *
 * A step belongs to the thread that marks it: it begins where that thread's last step ended, or at the
 * epoch's begin, or at the first input_begin; where none of these is known, the step counts, but has no
 * time. Names are copied, and need not outlive the call.
 *
 * Linux 4.14 with gcc or clang, C99 or C++. Elsewhere all functions are empty. Names that begin
 * with spotter__ (two underscores) are not for use. The Python twin is spotter_mark.py.
 */
#ifndef SPOTTER_MARK_H
#define SPOTTER_MARK_H

#include <stdint.h>

#define SPOTTER_NONE INT64_MIN /* a batch, value or size that is not known */

#if defined(__linux__) && defined(__GNUC__)

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__STRICT_ANSI__) && !defined(_GNU_SOURCE) && !defined(_DEFAULT_SOURCE)
#error "spotter/mark.h needs -std=gnu99 or later, or _GNU_SOURCE defined before the first #include"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The layout of inject/wire.h, which is the truth; a test compares the two. */
enum {
	SPOTTER__HEADER_BYTES = 4096,
	SPOTTER__CAPACITY = 4096,
	SPOTTER__TEXT_BYTES = 40,
	SPOTTER__MORE = 0x8000,
	SPOTTER__STEP = 1,
	SPOTTER__EPOCH = 2,
	SPOTTER__CHECKPOINT = 3,
	SPOTTER__RANGE = 5,
	SPOTTER__MARK = 6,
	SPOTTER__STRING = 100,
	SPOTTER__FACT = 101,

	SPOTTER__RANGES = 64,    /* open at a time and thread; deeper ones are left out */
	SPOTTER__NAMES = 256,    /* remembered by address, */
	SPOTTER__HASHES = 1024,  /* and by content */
	SPOTTER__COPY_BYTES = 48 /* of a name, to see that it is still the same */
};

struct spotter__header {
	uint64_t magic;
	uint32_t version, header_bytes, record_bytes, capacity, pid, tid;
	uint64_t start_ns, pid_ns, pad0[2];
	uint64_t head, dropped, cost_ns, pad1[5];
	uint64_t tail, pad2[7];
};

struct spotter__record {
	uint64_t t_ns, dur_ns;
	uint16_t kind, flags;
	uint32_t aux;
	int64_t arg[5];
};

struct spotter__known {
	const char *address;
	uint32_t id;
	char copy[SPOTTER__COPY_BYTES];
};

/* What a thread has; the pages of names are touched only by those who use names. */
struct spotter__thread {
	uint32_t generation; /* of the process, see below */
	uint32_t capacity;   /* of its ring; 0: it has none, everything is dropped */
	struct spotter__header *header;
	struct spotter__record *records;
	uint64_t head, limit; /* written so far; to be written before the tail is looked at again */
	uint64_t begin;       /* of the running step; 0: not known */
	uint64_t input_begin, checkpoint_begin, epoch_begin;
	int64_t index[2], epoch, wait;
	uint64_t depth;
	uint64_t range_begin[SPOTTER__RANGES];
	uint32_t range_name[SPOTTER__RANGES];
	uint32_t names;
	struct spotter__known by_address[SPOTTER__NAMES];
	struct {
		uint64_t hash;
		uint32_t id;
	} by_content[SPOTTER__HASHES];
};

/*
 * One of each per program or shared library, however many files include this. The generation lies
 * in a page that the kernel clears in a forked child: so a thread sees, without a system call, that what
 * it holds is its parent's.
 */
#define SPOTTER__SHARED __attribute__((weak, visibility("hidden")))
SPOTTER__SHARED int spotter__off; /* 1: there is no recorder */
SPOTTER__SHARED uint32_t *spotter__generation;
SPOTTER__SHARED __thread struct spotter__thread *spotter__self;
SPOTTER__SHARED pthread_key_t spotter__key;
SPOTTER__SHARED int spotter__key_made;

#define SPOTTER__COLD static __attribute__((noinline, cold, unused))

/* Older C libraries have these in a library of their own, which need not be there. */
static __typeof__(pthread_key_create) spotter__key_create
	__attribute__((weakref("pthread_key_create")));
static __typeof__(pthread_key_delete) spotter__key_delete
	__attribute__((weakref("pthread_key_delete")));
static __typeof__(pthread_setspecific) spotter__setspecific
	__attribute__((weakref("pthread_setspecific")));

static __inline__ uint64_t spotter__now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Room for n more records? If not, they count as dropped. */
SPOTTER__COLD int spotter__room(struct spotter__thread *t, uint64_t n)
{
	uint64_t tail = __atomic_load_n(&t->header->tail, __ATOMIC_ACQUIRE);
	if (tail <= t->head)
		t->limit = tail + t->capacity;
	if (t->head + n <= t->limit)
		return 1;
	__atomic_store_n(&t->header->dropped, t->header->dropped + n, __ATOMIC_RELAXED);
	return 0;
}

static __inline__ void spotter__put(struct spotter__thread *t, uint16_t kind, uint64_t t_ns,
				    uint64_t dur_ns, int64_t a, int64_t b, int64_t c, int64_t d,
				    int64_t e)
{
	struct spotter__record *r = &t->records[t->head & (SPOTTER__CAPACITY - 1)];
	if (__builtin_expect(t->head >= t->limit, 0) && !spotter__room(t, 1))
		return;
	r->t_ns = t_ns;
	r->dur_ns = dur_ns;
	r->kind = kind;
	r->flags = 0;
	r->aux = 0;
	r->arg[0] = a;
	r->arg[1] = b;
	r->arg[2] = c;
	r->arg[3] = d;
	r->arg[4] = e;
	__atomic_store_n(&t->header->head, ++t->head, __ATOMIC_RELEASE);
}

SPOTTER__COLD void spotter__text(struct spotter__thread *t, uint16_t kind, uint32_t id,
				 const char *text)
{
	uint64_t now = spotter__now();
	size_t n = strnlen(text, 4000),
	       pieces = (n + SPOTTER__TEXT_BYTES - 1) / SPOTTER__TEXT_BYTES;
	if (t->head + pieces > t->limit && !spotter__room(t, pieces))
		return;
	for (size_t i = 0; i < pieces; i++) {
		struct spotter__record *r = &t->records[(t->head + i) & (SPOTTER__CAPACITY - 1)];
		size_t left = n - i * SPOTTER__TEXT_BYTES;
		int more = left > SPOTTER__TEXT_BYTES;
		if (more)
			left = SPOTTER__TEXT_BYTES;
		memset(r, 0, sizeof(*r));
		r->t_ns = now;
		r->kind = kind;
		r->flags = (uint16_t)(left | (more ? (unsigned)SPOTTER__MORE : 0));
		r->aux = id;
		memcpy(r->arg, text + i * SPOTTER__TEXT_BYTES, left);
	}
	t->head += pieces;
	__atomic_store_n(&t->header->head, t->head, __ATOMIC_RELEASE);
}

/* The file of a new ring, of its full size (a hole in a full tmpfs would mean SIGBUS later); -1: none. */
SPOTTER__COLD int spotter__file(size_t size)
{
	const char *dir = getenv("SPOTTER_DIR");
	char path[512];
	if (!dir)
		return -1;
	for (int n = 0; n < 1000; n++) {
		int len = snprintf(path, sizeof(path), "%s/%d.%d.%d.ring", dir, (int)getpid(),
				   (int)syscall(SYS_gettid), n);
		if (len < 0 || (size_t)len >= sizeof(path))
			return -1;
		int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd >= 0 && posix_fallocate(fd, 0, (off_t)size)) {
			unlink(path);
			close(fd);
			return -1;
		}
		return fd;
	}
	return -1;
}

SPOTTER__COLD void spotter__open(struct spotter__thread *t)
{
	size_t size = SPOTTER__HEADER_BYTES + SPOTTER__CAPACITY * sizeof(struct spotter__record);
	struct stat st;
	int fd = spotter__file(size);
	void *map = MAP_FAILED;
	if (fd >= 0)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (fd >= 0)
		close(fd);
	t->capacity = map == MAP_FAILED ? 0 : SPOTTER__CAPACITY;
	if (map == MAP_FAILED) /* never room: everything is dropped */
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		t->header = NULL;
		return;
	}
	t->header = (struct spotter__header *)map;
	t->records = (struct spotter__record *)((char *)map + SPOTTER__HEADER_BYTES);
	t->head = 0;
	t->limit = t->capacity;
	t->header->version = 1;
	t->header->header_bytes = SPOTTER__HEADER_BYTES;
	t->header->record_bytes = sizeof(struct spotter__record);
	t->header->capacity = SPOTTER__CAPACITY;
	t->header->pid = (uint32_t)getpid();
	t->header->tid = (uint32_t)syscall(SYS_gettid);
	t->header->start_ns = spotter__now();
	t->header->pid_ns = stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
	__atomic_store_n(&t->header->magic, 0x474e495254505331ULL, __ATOMIC_RELEASE);
	spotter__text(t, SPOTTER__FACT, 0, "hook=marks");
}

SPOTTER__COLD void spotter__close(struct spotter__thread *t)
{
	if (t->header)
		munmap(t->header,
		       SPOTTER__HEADER_BYTES + SPOTTER__CAPACITY * sizeof(struct spotter__record));
	t->header = NULL;
}

/* At the end of a thread. */
SPOTTER__COLD void spotter__end(void *arg)
{
	struct spotter__thread *t = (struct spotter__thread *)arg;
	spotter__self = NULL;
	spotter__close(t);
	munmap(t, sizeof(*t));
}

/* A shared library is unloaded: its spotter__end must not be called any more. */
static __attribute__((destructor, unused)) void spotter__unload(void)
{
	if (__atomic_exchange_n(&spotter__key_made, 0, __ATOMIC_ACQ_REL) && spotter__key_delete)
		spotter__key_delete(spotter__key);
}

SPOTTER__COLD int spotter__give_up(void)
{
	__atomic_store_n(&spotter__off, 1, __ATOMIC_RELAXED);
	return 0;
}

/* The page of the generation, once per process and its children. 0: there is no recorder. */
SPOTTER__COLD int spotter__start(void)
{
	const char *dir = getenv("SPOTTER_DIR");
	struct stat st;
	uint32_t *none = NULL;
	if (!dir || *dir != '/' || stat(dir, &st) || !S_ISDIR(st.st_mode))
		return spotter__give_up();
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return spotter__give_up();
	if (madvise(page, 4096, 18 /* MADV_WIPEONFORK */)) {
		munmap(page, 4096);
		return spotter__give_up();
	}
	if (!__atomic_compare_exchange_n(&spotter__generation, &none, (uint32_t *)page, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(page, 4096); /* another thread was faster */
	else if (spotter__key_create && spotter__setspecific &&
		 !spotter__key_create(&spotter__key, spotter__end))
		__atomic_store_n(&spotter__key_made, 1, __ATOMIC_RELEASE);
	return 1;
}

/* A thread's memory and ring, cleared where it has them from before a fork; NULL: no memory. */
SPOTTER__COLD struct spotter__thread *spotter__make(struct spotter__thread *t)
{
	if (t) {
		spotter__close(t);
		memset(t, 0, sizeof(*t));
	} else {
		void *p = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		t = (struct spotter__thread *)p;
	}
	t->epoch = t->wait = SPOTTER_NONE;
	spotter__open(t);
	if (t->header)
		return t;
	munmap(t, sizeof(*t));
	return NULL;
}

/* The first mark of a thread, or of a process after fork. NULL: there is no recorder, or no memory. */
SPOTTER__COLD struct spotter__thread *spotter__first(void)
{
	int code = errno; /* the program's */
	struct spotter__thread *t = NULL;
	if (__atomic_load_n(&spotter__generation, __ATOMIC_ACQUIRE) || spotter__start()) {
		uint32_t zero = 0, fresh = (uint32_t)(spotter__now() >> 8) | 1;
		__atomic_compare_exchange_n(spotter__generation, &zero, fresh, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
		t = spotter__self = spotter__make(spotter__self);
	}
	if (t)
		t->generation = __atomic_load_n(spotter__generation, __ATOMIC_RELAXED);
	if (t && __atomic_load_n(&spotter__key_made, __ATOMIC_ACQUIRE))
		spotter__setspecific(spotter__key, t);
	errno = code;
	return t;
}

static __inline__ struct spotter__thread *spotter__get(void)
{
	if (__builtin_expect(__atomic_load_n(&spotter__off, __ATOMIC_RELAXED), 1))
		return NULL;
	struct spotter__thread *t = spotter__self;
	if (__builtin_expect(t && t->generation ==
					     __atomic_load_n(spotter__generation, __ATOMIC_RELAXED),
			     1))
		return t;
	return spotter__first();
}

SPOTTER__COLD uint32_t spotter__new_name(struct spotter__thread *t, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t n = 0;
	for (; n < 4000 && name[n]; n++)
		hash = (hash ^ (unsigned char)name[n]) * 0x100000001b3ULL;
	uint32_t id = t->by_content[hash % SPOTTER__HASHES].id;
	if (!id || t->by_content[hash % SPOTTER__HASHES].hash != hash) {
		if (t->names >= 60000) { /* names made up on the go: the numbers are used again */
			t->names = 0;
			memset(t->by_address, 0, sizeof(t->by_address));
			memset(t->by_content, 0, sizeof(t->by_content));
		}
		id = ++t->names;
		t->by_content[hash % SPOTTER__HASHES].hash = hash;
		t->by_content[hash % SPOTTER__HASHES].id = id;
		spotter__text(t, SPOTTER__STRING, id, n ? name : "?");
	}
	if (n < SPOTTER__COPY_BYTES) {
		struct spotter__known *e = &t->by_address[(uintptr_t)name / 8 % SPOTTER__NAMES];
		e->address = name;
		e->id = id;
		memcpy(e->copy, name, n + 1);
	}
	return id;
}

static __inline__ uint32_t spotter__name(struct spotter__thread *t, const char *name)
{
	const struct spotter__known *e = &t->by_address[(uintptr_t)name / 8 % SPOTTER__NAMES];
	if (e->address == name && !strcmp(e->copy, name))
		return e->id;
	return spotter__new_name(t, name);
}

static __inline__ void spotter__step(int phase, int64_t batch)
{
	struct spotter__thread *t = spotter__get();
	if (!t)
		return;
	uint64_t now = spotter__now(), begin = t->begin ? t->begin : now;
	spotter__put(t, SPOTTER__STEP, begin, now - begin, t->index[phase]++, phase, t->epoch,
		     batch, t->wait);
	t->begin = now;
	if (t->wait != SPOTTER_NONE)
		t->wait = 0;
}

/* ---------------------------------------------------------------------------------- what to use */

/* A training step ends here. batch: its samples. */
static __inline__ void spotter_step(int64_t batch)
{
	spotter__step(0, batch);
}

/* An evaluation step ends here. */
static __inline__ void spotter_eval_step(int64_t batch)
{
	spotter__step(1, batch);
}

/* Waiting for the next batch begins, and ends. */
static __inline__ void spotter_input_begin(void)
{
	struct spotter__thread *t = spotter__get();
	if (!t)
		return;
	t->input_begin = spotter__now();
	if (!t->begin)
		t->begin = t->input_begin;
}

static __inline__ void spotter_input_end(void)
{
	struct spotter__thread *t = spotter__get();
	if (!t || !t->input_begin)
		return;
	t->wait = (t->wait == SPOTTER_NONE ? 0 : t->wait) +
		  (int64_t)(spotter__now() - t->input_begin);
	t->input_begin = 0;
}

/* The last epoch ends. Time until the next epoch or input_begin belongs to no step. */
static __inline__ void spotter_epoch_end(void)
{
	struct spotter__thread *t = spotter__get();
	if (!t)
		return;
	if (t->epoch_begin)
		spotter__put(t, SPOTTER__EPOCH, t->epoch_begin, spotter__now() - t->epoch_begin,
			     t->epoch, 0, SPOTTER_NONE, SPOTTER_NONE, SPOTTER_NONE);
	t->epoch_begin = t->begin = 0;
}

/* An epoch begins; the one before ends. */
static __inline__ void spotter_epoch(int64_t index)
{
	struct spotter__thread *t = spotter__get();
	if (!t)
		return;
	spotter_epoch_end();
	t->epoch = index;
	t->epoch_begin = t->begin = spotter__now();
}

/* A named range begins; ranges nest. */
static __inline__ void spotter_range_push(const char *name)
{
	struct spotter__thread *t = spotter__get();
	if (!t)
		return;
	if (t->depth < SPOTTER__RANGES) {
		t->range_name[t->depth] = spotter__name(t, name);
		t->range_begin[t->depth] = spotter__now();
	}
	t->depth++;
}

/* The innermost range ends. */
static __inline__ void spotter_range_pop(void)
{
	struct spotter__thread *t = spotter__get();
	if (!t || !t->depth || --t->depth >= SPOTTER__RANGES)
		return;
	uint64_t begin = t->range_begin[t->depth];
	spotter__put(t, SPOTTER__RANGE, begin, spotter__now() - begin, t->range_name[t->depth],
		     (int64_t)t->depth, SPOTTER_NONE, SPOTTER_NONE, SPOTTER_NONE);
}

/* A named instant; value is free to use. */
static __inline__ void spotter_mark(const char *name, int64_t value)
{
	struct spotter__thread *t = spotter__get();
	if (!t)
		return;
	uint32_t id = spotter__name(t, name);
	spotter__put(t, SPOTTER__MARK, spotter__now(), 0, id, value, SPOTTER_NONE, SPOTTER_NONE,
		     SPOTTER_NONE);
}

/* Writing a checkpoint begins, and ends; bytes: its size. */
static __inline__ void spotter_checkpoint_begin(void)
{
	struct spotter__thread *t = spotter__get();
	if (t)
		t->checkpoint_begin = spotter__now();
}

static __inline__ void spotter_checkpoint_end(int64_t bytes)
{
	struct spotter__thread *t = spotter__get();
	if (!t || !t->checkpoint_begin)
		return;
	spotter__put(t, SPOTTER__CHECKPOINT, t->checkpoint_begin,
		     spotter__now() - t->checkpoint_begin, bytes, SPOTTER_NONE, SPOTTER_NONE,
		     SPOTTER_NONE, SPOTTER_NONE);
	t->checkpoint_begin = 0;
}

#ifdef __cplusplus
}
#endif

#undef SPOTTER__SHARED
#undef SPOTTER__COLD

#else /* neither Linux nor gcc or clang: nothing */

static inline void spotter_step(int64_t batch)
{
	(void)batch;
}
static inline void spotter_eval_step(int64_t batch)
{
	(void)batch;
}
static inline void spotter_input_begin(void)
{
}
static inline void spotter_input_end(void)
{
}
static inline void spotter_epoch(int64_t index)
{
	(void)index;
}
static inline void spotter_epoch_end(void)
{
}
static inline void spotter_range_push(const char *name)
{
	(void)name;
}
static inline void spotter_range_pop(void)
{
}
static inline void spotter_mark(const char *name, int64_t value)
{
	(void)name;
	(void)value;
}
static inline void spotter_checkpoint_begin(void)
{
}
static inline void spotter_checkpoint_end(int64_t bytes)
{
	(void)bytes;
}

#endif

#endif
