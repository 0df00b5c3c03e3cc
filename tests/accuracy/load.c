/*
 * Loads of known size. Each does exactly what its arguments say, measures by itself what it used, and prints that
 * as one line of JSON. Linked statically, so that no loader reads anything before main.
 *
 *	load burn CORES SECONDS	   so much CPU time, by the clocks of its threads
 *	load memory MB SECONDS	   allocates, touches and holds
 *	load io MB		   writes a file in blocks, and reads it back
 *	load children N MS	   N children, one after the other, that burn so long each
 *	load generations MS	   child, grandchild and an orphan of a session of its own, burning each
 *	load threads N MS	   N threads, one after the other, that burn so long each
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 100000

static uint64_t *shared; /* CPU time that the children measured of themselves, ns */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void burn_until(clockid_t id, uint64_t ns)
{
	volatile unsigned x = 0;
	while (clock_ns(id) < ns)
		for (unsigned i = 0; i < 2000; i++)
			x += i;
	(void)x;
}

static void *burn_thread(void *arg)
{
	burn_until(CLOCK_THREAD_CPUTIME_ID, *(uint64_t *)arg);
	return NULL;
}

/* In a child: burn, say how much was used, end. */
static _Noreturn void burn_and_exit(uint64_t ns)
{
	burn_until(CLOCK_PROCESS_CPUTIME_ID, ns);
	__atomic_add_fetch(shared, clock_ns(CLOCK_PROCESS_CPUTIME_ID), __ATOMIC_SEQ_CST);
	_exit(0);
}

static uint64_t rusage_ns(int who)
{
	struct rusage ru;
	getrusage(who, &ru);
	return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000u;
}

/* clocks: what was burnt, as measured by those who did; cpu: what the kernel says of all that was waited for. */
static void say_cpu(void)
{
	printf("{\"clocks_s\": %.6f, \"cpu_s\": %.6f}\n",
	       (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) + *shared) / 1e9,
	       (double)(rusage_ns(RUSAGE_SELF) + rusage_ns(RUSAGE_CHILDREN)) / 1e9);
}

static void burn(double cores, double seconds)
{
	enum { MOST = 64 };
	pthread_t thread[MOST];
	uint64_t ns[MOST];
	int n = 0;
	for (; cores > 0 && n < MOST; cores -= 1, n++) {
		ns[n] = (uint64_t)((cores < 1 ? cores : 1) * seconds * 1e9);
		pthread_create(&thread[n], NULL, burn_thread, &ns[n]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	say_cpu();
}

static void memory(size_t bytes, double seconds)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		abort();
	memset(p, 1, bytes);
	usleep((useconds_t)(seconds * 1e6));
	printf("{\"memory_bytes\": %zu}\n", bytes);
}

/* Bytes read before main (the kernel reads the program's headers) and by this function itself. */
static size_t read_before(void)
{
	char text[512];
	int fd = open("/proc/self/io", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		abort();
	text[n] = 0;
	close(fd);
	return strtoul(strstr(text, "rchar:") + 6, NULL, 10) + (size_t)n;
}

/* The line that says how much was written is written, too: it has the same length whatever it says. */
static void io(size_t bytes)
{
	static char block[BLOCK];
	char path[] = "load-XXXXXX", line[128];
	size_t before = read_before();
	int fd = mkstemp(path);
	if (fd < 0)
		abort();
	unlink(path);
	for (size_t n = 0; n < bytes; n += BLOCK)
		if (write(fd, block, BLOCK) != BLOCK)
			abort();
	for (size_t n = 0; n < bytes; n += BLOCK)
		if (pread(fd, block, BLOCK, (off_t)n) != BLOCK)
			abort();
	const char *format = "{\"read_bytes\": %zu, \"written_bytes\": %12zu}\n";
	int len = snprintf(line, sizeof(line), format, before + bytes, bytes);
	len = snprintf(line, sizeof(line), format, before + bytes, bytes + (size_t)len);
	usleep(200000);
	if (write(STDOUT_FILENO, line, (size_t)len) != len)
		abort();
}

static void children(int n, uint64_t ns)
{
	for (int i = 0; i < n; i++) {
		if (!fork())
			burn_and_exit(ns);
		wait(NULL);
	}
	say_cpu();
}

static void generations(uint64_t ns)
{
	int ends[2];
	char c;
	if (pipe(ends))
		abort();
	if (!fork()) {
		if (!fork()) {
			setsid();
			if (!fork())
				burn_and_exit(ns); /* nobody of us waits for it */
			burn_and_exit(ns);
		}
		wait(NULL);
		burn_and_exit(ns);
	}
	close(ends[1]);
	if (read(ends[0], &c, 1) < 0) /* until the last of them has ended */
		abort();
	wait(NULL);
	say_cpu();
}

static void threads(int n, uint64_t ns)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, burn_thread, &ns);
		pthread_join(thread, NULL);
	}
	say_cpu();
}

int main(int argc, char **argv)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *what = argc > 1 ? argv[1] : "";
	double a = argc > 2 ? atof(argv[2]) : 0, b = argc > 3 ? atof(argv[3]) : 0;
	if (shared == MAP_FAILED)
		return 1;
	if (!strcmp(what, "burn"))
		burn(a, b);
	else if (!strcmp(what, "memory"))
		memory((size_t)(a * 1e6), b);
	else if (!strcmp(what, "io"))
		io((size_t)(a * 1e6));
	else if (!strcmp(what, "children"))
		children((int)a, (uint64_t)(b * 1e6));
	else if (!strcmp(what, "generations"))
		generations((uint64_t)(a * 1e6));
	else if (!strcmp(what, "threads"))
		threads((int)a, (uint64_t)(b * 1e6));
	else
		return 2;
	return 0;
}
