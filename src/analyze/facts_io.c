/*
 * Facts about I/O: what the job read and wrote, and how long tasks waited for it.
 */
#include <math.h>
#include <string.h>

#include "analyze/facts.h"
#include "base/clock.h"

static double job_rate(const struct run_facts *f, enum metric_id metric)
{
	return facts_over(f->r, f->job, metric, f->w0, f->w1).mean;
}

static double total(const struct run_facts *f, const char *key, enum metric_id metric)
{
	double exact = facts_number(f->r, key);
	return isnan(exact) ? facts_last(f->r, f->job, metric, UINT64_MAX) : exact;
}

static double plus(double sum, double more)
{
	return isnan(more) ? sum : isnan(sum) ? more : sum + more;
}

static void load_disks(struct run_facts *f)
{
	struct facts_io *io = &f->io;
	const struct rec_entity_info *entities;
	size_t n = rec_entities(f->r, &entities);
	for (size_t i = 0; i < n; i++) {
		const struct rec_entity_info *e = &entities[i];
		if (e->kind != ENTITY_DISK)
			continue;
		double read = facts_over(f->r, e, METRIC_DISK_READ, f->w0, f->w1).mean;
		double written = facts_over(f->r, e, METRIC_DISK_WRITTEN, f->w0, f->w1).mean;
		double busy = facts_over(f->r, e, METRIC_DISK_BUSY, f->w0, f->w1).mean / NS_PER_S;
		io->host_disk_per_s = plus(io->host_disk_per_s, plus(read, written));
		if (!isnan(busy) && !(busy < io->disk_busy))
			io->disk_busy = busy;
	}
}

static void load_pressure(struct run_facts *f)
{
	struct facts_io *io = &f->io;
	const struct rec_entity_info *places[] = { rec_entity_first(f->r, ENTITY_CGROUP), f->host };
	for (size_t i = 0; i < 2; i++) {
		double some =
			facts_over(f->r, places[i], METRIC_PRESSURE_IO_SOME, f->w0, f->w1).mean;
		if (isnan(some))
			continue;
		io->pressure_some = some / NS_PER_S;
		io->pressure_full =
			facts_over(f->r, places[i], METRIC_PRESSURE_IO_FULL, f->w0, f->w1).mean /
			NS_PER_S;
		io->pressure_is_cgroup = i == 0;
		return;
	}
}

void facts_load_io(struct run_facts *f)
{
	struct facts_io *io = &f->io;
	io->host_disk_per_s = io->disk_busy = io->pressure_some = io->pressure_full = NAN;
	io->read = total(f, "job.read_bytes", METRIC_IO_READ);
	io->written = total(f, "job.written_bytes", METRIC_IO_WRITTEN);
	io->disk_read = total(f, "job.disk_read_bytes", METRIC_IO_DISK_READ);
	io->disk_written = total(f, "job.disk_written_bytes", METRIC_IO_DISK_WRITTEN);
	io->read_per_s = job_rate(f, METRIC_IO_READ);
	io->written_per_s = job_rate(f, METRIC_IO_WRITTEN);
	io->disk_read_per_s = job_rate(f, METRIC_IO_DISK_READ);
	io->disk_written_per_s = job_rate(f, METRIC_IO_DISK_WRITTEN);
	io->faults_major_per_s = job_rate(f, METRIC_MEMORY_FAULTS_MAJOR);
	io->iowait = facts_over(f->r, f->host, METRIC_CPU_IOWAIT, f->w0, f->w1).mean / NS_PER_S;
	io->blocked = facts_over(f->r, f->host, METRIC_SCHED_BLOCKED, f->w0, f->w1).mean;
	load_disks(f);
	load_pressure(f);
}
