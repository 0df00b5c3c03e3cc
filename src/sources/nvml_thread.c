/* NVML on a thread of its own; see nvml_thread.h. */
#include "sources/nvml_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define LEAD_MIN_NS   (20 * NS_PER_MS)  /* read this long before a tick, if readings are quick */
#define PERIOD_MIN_NS (100 * NS_PER_MS) /* between readings */

struct nvml_thread {
	pthread_t thread;
	pthread_mutex_t
		lock; /* all below; the thread holds it to hand over and to wait, never in a call */
	pthread_cond_t wake, ended;
	bool stop, done;
	bool left; /* nobody waits for it any more: it frees itself */
	uint64_t tick_ns, interval_ns, took_ns;
	struct nvml_view view;
	struct nvml_values *front, *back; /* view.values; what is being filled */
	struct nvml_lib lib;              /* the thread's alone, as is back */
};

uint64_t nvml_next_read_ns(uint64_t now_ns, uint64_t tick_ns, uint64_t interval_ns,
			   uint64_t took_ns)
{
	uint64_t period = interval_ns ? interval_ns : NS_PER_S;
	if (period < PERIOD_MIN_NS)
		period *= (PERIOD_MIN_NS + period - 1) / period;
	uint64_t lead = took_ns * 2 > LEAD_MIN_NS ? took_ns * 2 : LEAD_MIN_NS;
	if (lead > period / 2)
		lead = period / 2;
	if (!tick_ns || tick_ns > now_ns)
		return now_ns + period;
	uint64_t next = tick_ns + period;
	if (next < now_ns + lead) /* the tick that comes next, or the one after it */
		next += (now_ns + lead - next + period - 1) / period * period;
	return next - lead;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Wait under the lock until then; false if told to stop. */
static bool wait_until(struct nvml_thread *t, uint64_t then_ns)
{
	struct timespec ts = timespec_of(then_ns);
	while (!t->stop && clock_mono_ns() < then_ns)
		pthread_cond_timedwait(&t->wake, &t->lock, &ts);
	return !t->stop;
}

static void begin(struct nvml_thread *t)
{
	struct nvml_gpu gpus[NVML_GPUS_MAX];
	unsigned n = 0;
	char driver[sizeof(t->view.driver)] = "";
	nvml_return rc = nvml_lib_start(&t->lib, gpus, &n);
	if (rc != NVML_OK || !t->lib.driver_version ||
	    t->lib.driver_version(driver, sizeof(driver) - 1))
		driver[0] = 0;
	pthread_mutex_lock(&t->lock);
	t->view.state = rc == NVML_OK ? NVML_RUNNING : NVML_FAILED;
	t->view.failure = rc;
	t->view.ngpus = n;
	memcpy(t->view.gpus, gpus, n * sizeof(gpus[0]));
	memcpy(t->view.driver, driver, sizeof(driver));
	pthread_mutex_unlock(&t->lock);
}

static void read_all(struct nvml_thread *t)
{
	uint64_t before = clock_mono_ns();
	for (unsigned i = 0; i < t->view.ngpus; i++) /* ngpus changes no more */
		nvml_lib_read(&t->lib, &t->view.gpus[i], &t->back[i]);
	pthread_mutex_lock(&t->lock);
	struct nvml_values *read = t->back;
	t->back = t->front;
	t->front = read;
	t->view.values = read;
	t->view.seq++;
	t->view.read_ns = before;
	t->took_ns = clock_mono_ns() - before;
	pthread_mutex_unlock(&t->lock);
}

static void free_thread(struct nvml_thread *t)
{
	nvml_lib_close(&t->lib);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	pthread_cond_destroy(&t->ended);
	free(t->front);
	free(t->back);
	free(t);
}

static void *thread_main(void *arg)
{
	struct nvml_thread *t = arg;
	begin(t);
	bool go = t->view.state == NVML_RUNNING && t->view.ngpus; /* written by this thread alone */
	while (go) {
		read_all(t);
		pthread_mutex_lock(&t->lock);
		go = wait_until(t, nvml_next_read_ns(clock_mono_ns(), t->tick_ns, t->interval_ns,
						     t->took_ns));
		pthread_mutex_unlock(&t->lock);
	}
	if (t->view.state == NVML_RUNNING && t->lib.shutdown)
		t->lib.shutdown();
	pthread_mutex_lock(&t->lock);
	bool left = t->left;
	t->done = true;
	pthread_cond_signal(&t->ended);
	pthread_mutex_unlock(&t->lock);
	if (left)
		free_thread(t);
	return NULL;
}

/* Signals are the recorder's business: none is delivered to this thread. */
static int launch(struct nvml_thread *t)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&t->thread, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		pthread_setname_np(t->thread, "spotter-nvml");
	return -rc;
}

int nvml_thread_start(const struct nvml_lib *lib, uint64_t interval_ns, struct nvml_thread **ret)
{
	struct nvml_thread *t = calloc(1, sizeof(*t));
	pthread_condattr_t monotonic;
	if (!t) {
		struct nvml_lib unused = *lib;
		nvml_lib_close(&unused);
		return -ENOMEM;
	}
	t->lib = *lib;
	t->interval_ns = interval_ns;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &monotonic);
	pthread_cond_init(&t->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	t->front = calloc(NVML_GPUS_MAX, sizeof(*t->front));
	t->back = calloc(NVML_GPUS_MAX, sizeof(*t->back));
	int rc = t->front && t->back ? launch(t) : -ENOMEM;
	if (rc) {
		free_thread(t);
		return rc;
	}
	*ret = t;
	return 0;
}

const struct nvml_view *nvml_thread_look(struct nvml_thread *t, uint64_t tick_ns)
{
	pthread_mutex_lock(&t->lock);
	t->tick_ns = tick_ns;
	return &t->view;
}

void nvml_thread_unlook(struct nvml_thread *t)
{
	pthread_mutex_unlock(&t->lock);
}

bool nvml_thread_stop(struct nvml_thread *t, uint64_t wait_ns)
{
	if (!t)
		return true;
	uint64_t until = clock_mono_ns() + wait_ns;
	struct timespec ts = timespec_of(until);
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	while (!t->done && clock_mono_ns() < until)
		pthread_cond_timedwait(&t->ended, &t->lock, &ts);
	bool left = t->left = !t->done;
	if (left)
		pthread_detach(t->thread);
	pthread_mutex_unlock(&t->lock);
	if (left)
		return false;
	pthread_join(t->thread, NULL);
	free_thread(t);
	return true;
}
