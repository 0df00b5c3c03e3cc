/* The facts of a run; see facts.h. */
#include "record/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

extern char **environ;

static void json_string(struct buf *b, const char *s)
{
	buf_addc(b, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c < 0x20)
			buf_addf(b, "\\u%04x", c);
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '"');
}

/* As one would type it: quoted only where a shell needs it. */
static void shell_word(struct buf *b, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./=:,+@%";
	if (*s && strspn(s, plain) == strlen(s)) {
		buf_adds(b, s);
		return;
	}
	buf_addc(b, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			buf_adds(b, "'\\''");
		else
			buf_addc(b, *s);
	}
	buf_addc(b, '\'');
}

static int write_command(struct rec_writer *w, char *const *argv)
{
	struct buf json = BUF_INIT, line = BUF_INIT;
	buf_addc(&json, '[');
	for (int i = 0; argv[i]; i++) {
		if (i) {
			buf_addc(&json, ',');
			buf_addc(&line, ' ');
		}
		json_string(&json, argv[i]);
		shell_word(&line, argv[i]);
	}
	buf_addc(&json, ']');
	int rc = rec_set(w, "command", json.data);
	if (!rc)
		rc = rec_set(w, "command_line", line.data);
	buf_free(&json);
	buf_free(&line);
	return rc;
}

/* The text of a one-line file, without its newline. */
static int set_from_file(struct rec_writer *w, const char *key, const char *path)
{
	char text[128];
	if (io_read_text(-1, path, text, sizeof(text)) <= 0)
		return 0;
	text[strcspn(text, "\n")] = 0;
	return rec_set(w, key, text);
}

static int set_cpu_model(struct rec_writer *w)
{
	char text[4096];
	if (io_read_text(-1, "/proc/cpuinfo", text, sizeof(text)) <= 0)
		return 0;
	const char *line = strstr(text, "model name");
	const char *colon = line ? strchr(line, ':') : NULL;
	if (!colon)
		return 0;
	char model[128];
	snprintf(model, sizeof(model), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
	return rec_set(w, "cpu_model", model);
}

/* Our own start time in clock ticks: with the pid it names this process for ever (until reboot). */
static int set_recorder(struct rec_writer *w)
{
	char text[1024];
	if (io_read_text(-1, "/proc/self/stat", text, sizeof(text)) <= 0)
		return 0;
	const char *p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p + 1, ' ');
	}
	if (p)
		rec_setf(w, "recorder_start", "%.*s", (int)strcspn(p + 1, " "), p + 1);
	return rec_setf(w, "recorder_pid", "%d", (int)getpid());
}

/* Variables that decide how a training runs; no others, since environments hold secrets. */
static int write_environment(struct rec_writer *w)
{
	static const char *const kept[] = {
		"CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=",
		"OMP_NUM_THREADS=",      "MKL_NUM_THREADS=",
		"OPENBLAS_NUM_THREADS=", "RANK=",
		"LOCAL_RANK=",           "WORLD_SIZE=",
		"MASTER_ADDR=",          "SLURM_JOB_ID=",
		"SLURM_STEP_ID=",        "SLURM_PROCID=",
		"SLURM_NTASKS=",         "SLURM_NODEID=",
		"SLURM_JOB_NAME=",       "SLURM_CPUS_PER_TASK=",
		"CONDA_DEFAULT_ENV=",    "VIRTUAL_ENV=",
	};
	for (char **env = environ; *env; env++) {
		for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
			size_t n = strlen(kept[i]);
			if (strncmp(*env, kept[i], n))
				continue;
			char key[64];
			snprintf(key, sizeof(key), "env.%.*s", (int)n - 1, kept[i]);
			int rc = rec_set(w, key, *env + n);
			if (rc)
				return rc;
		}
	}
	return 0;
}

int facts_write(struct rec_writer *w, char *const *argv, uint64_t start_mono_ns,
		uint64_t start_real_ns, uint64_t interval_ns)
{
	struct utsname u = { 0 };
	char cwd[4096];
	const char *user = getenv("LOGNAME") ? getenv("LOGNAME") : getenv("USER");
	uname(&u);
	int rc = write_command(w, argv);
	if (rc)
		return rc;
	if (getcwd(cwd, sizeof(cwd)))
		rec_set(w, "cwd", cwd);
	/* Not getpwuid: a name service may take seconds to answer. */
	if (user && *user)
		rec_set(w, "user", user);
	else
		rec_setf(w, "user", "uid %u", (unsigned)getuid());
	rec_set(w, "host", u.nodename);
	rec_setf(w, "kernel", "%s %s %s", u.sysname, u.release, u.machine);
	set_cpu_model(w);
	set_from_file(w, "boot_id", "/proc/sys/kernel/random/boot_id");
	set_recorder(w);
	write_environment(w);
	rec_set(w, "spotter_version", SPOTTER_VERSION);
	rec_setf(w, "start_mono_ns", "%llu", (unsigned long long)start_mono_ns);
	rec_setf(w, "start_real_ns", "%llu", (unsigned long long)start_real_ns);
	rec_setf(w, "interval_ns", "%llu", (unsigned long long)interval_ns);
	return rec_set(w, "state", "running");
}
