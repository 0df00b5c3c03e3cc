/*
 * What a mark costs, in ns: with nobody listening, and with a ring that is drained now and then.
 *
 *	cc -O2 -Iinclude bench/mark.c -o mark && ./mark
 *
 * The drain is played by this program: it moves the tail when the ring is half full, outside the time taken.
 */
#include <spotter/mark.h>

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 400
#define CALLS  2000 /* per round: less than a ring holds */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void drain(void)
{
	if (spotter__self)
		spotter__self->header->tail = spotter__self->head;
}

/* Median and 90th percentile over rounds of the mean time of one CALL, a statement. */
#define MEASURE(label, CALL)                                                               \
	do {                                                                               \
		for (int i = 0; i < ROUNDS; i++) {                                         \
			drain();                                                           \
			uint64_t begin = spotter__now();                                   \
			for (int k = 0; k < CALLS; k++) {                                  \
				CALL;                                                      \
				__asm__ volatile("" ::: "memory");                         \
			}                                                                  \
			ns[i] = (double)(spotter__now() - begin) / CALLS;                  \
		}                                                                          \
		qsort(ns, ROUNDS, sizeof(*ns), by_value);                                  \
		printf("%-28s %8.1f %8.1f\n", label, ns[ROUNDS / 2], ns[ROUNDS * 9 / 10]); \
	} while (0)

static void table(const char *title)
{
	static double ns[ROUNDS];
	printf("%-28s %8s %8s\n", title, "p50 ns", "p90 ns");
	MEASURE("  spotter_step", spotter_step(64));
	MEASURE("  spotter_mark", spotter_mark("loss", k));
	MEASURE("  spotter_range_push + pop", (spotter_range_push("forward"), spotter_range_pop()));
	MEASURE("  spotter_input_begin + end", (spotter_input_begin(), spotter_input_end()));
	if (spotter__self && spotter__self->header->dropped)
		printf("dropped: %llu\n", (unsigned long long)spotter__self->header->dropped);
}

int main(void)
{
	static double ns[ROUNDS];
	char dir[] = "/dev/shm/spotter-bench-XXXXXX", command[128];
	unsetenv("SPOTTER_DIR");
	table("nobody listens");
	if (!mkdtemp(dir))
		return 1;
	setenv("SPOTTER_DIR", dir, 1);
	spotter__off = 0;
	table("into a ring");
	printf("%-28s\n", "for comparison");
	MEASURE("  clock_gettime", (void)spotter__now());
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) != 0;
}
