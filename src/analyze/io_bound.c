/*
 * Found when tasks wait for storage and the job's own reads and writes are what they wait for.
 * The wait itself comes from pressure stall information where the kernel has it, else from iowait.
 */
#include <math.h>

#include "analyze/analysis.h"
#include "analyze/thresholds.h"

static double known(double v)
{
	return isnan(v) ? 0 : v;
}

/*
 * Share of the time that the job waits for storage: what the kernel counts as stalled, or iowait. Short waits escape
 * both; while the disk is busy with the job, the time in which a single-threaded job
 * neither ran nor waited for a core went there too.
 */
static double waiting(const struct run_facts *f, double of_host, const char **ret_source)
{
	const struct facts_io *io = &f->io;
	bool pressure = !isnan(io->pressure_some);
	double counted = pressure ? io->pressure_some : fmin(known(io->iowait), 1);
	double busy = io->disk_busy * fmin(known(of_host), 1), off_core = 1 - f->cpu.demand;
	double escaped = isnan(busy) || isnan(off_core) ? 0 : fmin(busy, off_core);
	*ret_source = !pressure                ? "/proc/stat"
		      : io->pressure_is_cgroup ? "cgroup io.pressure"
					       : "/proc/pressure/io";
	if (escaped <= counted)
		return counted;
	*ret_source = "off its core while the disk was busy";
	return escaped;
}

static bool find(const struct run_facts *f, const struct findings *so_far, struct finding *ret)
{
	(void)so_far;
	const struct facts_io *io = &f->io;
	double own = known(io->disk_read_per_s) + known(io->disk_written_per_s);
	bool bytes = own >= threshold(TH_IO_BYTES);
	bool faults = io->faults_major_per_s >= threshold(TH_IO_FAULTS);
	double of_host = io->host_disk_per_s > 0 ? own / io->host_disk_per_s : NAN;
	bool others = of_host < threshold(TH_IO_OWN) && !io->pressure_is_cgroup;
	const char *source;
	double wait = waiting(f, of_host, &source);
	if (!(bytes || faults) || others || !(wait >= threshold(TH_IO_PRESSURE)))
		return false;
	bool reads = known(io->disk_read_per_s) >= known(io->disk_written_per_s);
	ret->severity = SEVERITY_LIMIT;
	ret->confidence =
		io->pressure_is_cgroup || of_host >= 0.8 ? CONFIDENCE_SURE : CONFIDENCE_LIKELY;
	ret->loss = wait;
	finding_title(ret, reads ? "I/O: the job waits for reads from disk"
				 : "I/O: the job waits for writes to disk");
	finding_text(ret,
		     "%s of the time some task waits for storage, while the job %s %s %s disk.",
		     say(wait, "ratio").s, reads ? "reads" : "writes",
		     say(reads ? io->disk_read_per_s : io->disk_written_per_s, "bytes/s").s,
		     reads ? "from" : "to");
	finding_evidence(ret, "waiting for storage", wait, "ratio", source);
	/* What does not matter here is left out: a log file's bytes, a stray fault. */
	if (reads || io->disk_read_per_s >= threshold(TH_IO_BYTES))
		finding_evidence(ret, "read from storage", io->disk_read_per_s, "bytes/s",
				 "/proc/PID/io");
	if (!reads || io->disk_written_per_s >= threshold(TH_IO_BYTES))
		finding_evidence(ret, "written to storage", io->disk_written_per_s, "bytes/s",
				 "/proc/PID/io");
	if (faults)
		finding_evidence(ret, "major faults", io->faults_major_per_s, "per_s",
				 "/proc/PID/stat");
	finding_evidence(ret, "busiest disk busy", io->disk_busy, "ratio", "/proc/diskstats");
	finding_evidence(ret, "cores idle for I/O", io->iowait, "cores", "/proc/stat");
	finding_evidence(ret, "input wait of step time", f->steps.wait_share, "ratio",
			 rec_get(f->r, "steps_source"));
	finding_advice(ret,
		       reads ? "Keep the data nearer: copy it to local disk or memory (/dev/shm) "
			       "before training, store it in few large files read in order, read "
			       "ahead with more loader workers."
			     : "Write less, less often, or to a faster disk; let a thread do it "
			       "while training goes on.");
	return true;
}

const struct analysis analysis_io_bound = {
	.id = "io-bound",
	.help = "tasks wait for storage because of the job's own reads or writes",
	.find = find,
};
