/* Which entity a ring belongs to; see ring_owner.h. */
#include "tracers/ring_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "tracers/wire_decode.h"

static uint64_t namespace_of(pid_t pid)
{
	char path[64] = "/proc/self/ns/pid";
	struct stat st;
	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

void ring_owners_init(struct ring_owners *o, const struct tracer_env *env)
{
	o->env = env;
	o->pid_ns = namespace_of(0);
	map_init(&o->made);
}

void ring_owners_free(struct ring_owners *o)
{
	map_free(&o->made);
}

static bool is_ours(const struct ring_owners *o, const struct ring_file *file)
{
	return !file->pid_ns || !o->pid_ns || file->pid_ns == o->pid_ns;
}

/* The pid that a process has in its innermost namespace; 0 unknown. */
static uint64_t inner_pid(pid_t pid)
{
	char path[64], text[4096];
	uint64_t value, last = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	const char *p = strstr(text, "\nNSpid:");
	if (!p)
		return 0;
	for (p += strlen("\nNSpid:"); *p == '\t' || *p == ' '; p++)
		;
	while (*p != '\n' && io_parse_u64(&p, &value)) {
		last = value;
		p += strspn(p, " \t");
	}
	return last;
}

/* Among the processes of the job, the one that calls itself file->pid in its namespace. */
static pid_t find_foreign(const struct ring_owners *o, const struct ring_file *file)
{
	size_t i = 0;
	for (const struct map_slot *slot; (slot = map_next(&o->env->jobset->pids, &i));) {
		pid_t pid = (pid_t)slot->key;
		if (namespace_of(pid) == file->pid_ns && inner_pid(pid) == file->pid)
			return pid;
	}
	return 0;
}

static uint32_t make_entity(struct ring_owners *o, const struct ring_file *file)
{
	uint64_t key = file->pid ^ file->pid_ns << 32, known;
	if (map_get(&o->made, key, &known))
		return (uint32_t)known;
	char path[64], comm[64] = "";
	uint32_t entity = 0;
	snprintf(path, sizeof(path), "/proc/%u/comm", file->pid);
	if (!is_ours(o, file) || io_read_text(AT_FDCWD, path, comm, sizeof(comm)) <= 0)
		snprintf(comm, sizeof(comm), "pid %u", file->pid);
	comm[strcspn(comm, "\n")] = 0;
	wire_clean_text(comm, strlen(comm));
	if (rec_entity(o->env->w, ENTITY_PROCESS, o->env->job, comm, file->pid, clock_mono_ns(),
		       &entity))
		return o->env->job;
	map_put(&o->made, key, entity);
	return entity;
}

uint32_t ring_owner_entity(struct ring_owners *o, struct ring_owner *owner,
			   const struct ring_file *file, bool must)
{
	uint64_t entity;
	if (!file->pid)
		return o->env->job;
	if (!owner->pid)
		owner->pid = is_ours(o, file) ? (pid_t)file->pid : find_foreign(o, file);
	if (owner->pid && map_get(&o->env->jobset->pids, (uint64_t)owner->pid, &entity) && entity)
		return (uint32_t)entity;
	return must ? make_entity(o, file) : 0;
}

bool ring_owner_ended(struct ring_owners *o, struct ring_owner *owner, const struct ring_file *file)
{
	pid_t pid = is_ours(o, file) ? (pid_t)file->pid : owner->pid;
	if (pid <= 0)
		return false;
	if (kill(pid, 0) && errno == ESRCH)
		return true;
	if (!is_ours(o, file) || !file->tid)
		return false;
	return syscall(SYS_tgkill, pid, (pid_t)file->tid, 0) && errno == ESRCH;
}
