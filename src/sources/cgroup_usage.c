/* What a cgroup has used; see cgroup_usage.h. */
#include "sources/cgroup_usage.h"

#include <string.h>
#include <unistd.h>

#include "sources/host_parse.h"

static const uint8_t file_of[CGROUP_VALUES] = {
	[CGROUP_USER] = CGROUP_FILE_CPU,
	[CGROUP_SYSTEM] = CGROUP_FILE_CPU_SYSTEM,
	[CGROUP_THROTTLED] = CGROUP_FILE_THROTTLED,
	[CGROUP_USED] = CGROUP_FILE_USED,
	[CGROUP_OOM_KILLS] = CGROUP_FILE_EVENTS,
	[CGROUP_STALL_CPU] = CGROUP_FILE_STALL,
	[CGROUP_STALL_CPU_FULL] = CGROUP_FILE_STALL,
	[CGROUP_STALL_MEMORY] = CGROUP_FILE_STALL + 1,
	[CGROUP_STALL_MEMORY_FULL] = CGROUP_FILE_STALL + 1,
	[CGROUP_STALL_IO] = CGROUP_FILE_STALL + 2,
	[CGROUP_STALL_IO_FULL] = CGROUP_FILE_STALL + 2,
};

/* Has the job a cgroup of its own (not the root's) for this controller? */
static bool is_own(const struct cgroup_place *place)
{
	return place->version && !cgroup_is_root(place);
}

static void open_cpu(struct cgroup_usage *u, const struct cgroup_where *where)
{
	const struct cgroup_place *acct = &where->places[CGROUP_CPUACCT];
	struct kfile *user = &u->files[CGROUP_FILE_CPU];
	if (!is_own(acct))
		return;
	u->cpu_version1 = acct->version == 1;
	if (acct->version == 2) {
		kfile_open(user, acct->dir, "/cpu.stat");
	} else if (!kfile_open(user, acct->dir, "/cpuacct.usage_user")) {
		kfile_open(&u->files[CGROUP_FILE_CPU_SYSTEM], acct->dir, "/cpuacct.usage_sys");
	} else {
		u->cpu_in_ticks = true;
		kfile_open(user, acct->dir, "/cpuacct.stat");
	}
}

/* The directory to read in: where the limit is set, or the job's own cgroup; "" if it has none. */
static const char *choose(const char *limit_dir, const struct cgroup_place *place)
{
	if (*limit_dir)
		return limit_dir;
	return is_own(place) ? place->dir : "";
}

/* Open file in dir instead of what is open, where dir is not *current. Was there a change? */
static bool move_to(struct kfile *f, char *current, const char *dir, const char *file)
{
	if (!strcmp(current, dir))
		return false;
	kfile_close(f);
	if (*dir)
		kfile_open(f, dir, file);
	memmove(current, dir, strlen(dir) + 1);
	return true;
}

void cgroup_usage_follow(struct cgroup_usage *u, const struct cgroup_where *where,
			 const struct cgroup_limits *limits)
{
	const struct cgroup_place *cpu = &where->places[CGROUP_CPU];
	const struct cgroup_place *memory = &where->places[CGROUP_MEMORY];
	const char *memory_dir = choose(limits->memory_dir, memory);
	bool v1 = memory->version == 1;
	u->throttled_version1 = cpu->version == 1;
	if (move_to(&u->files[CGROUP_FILE_THROTTLED], u->throttled_dir,
		    choose(limits->quota_dir, cpu), "/cpu.stat"))
		u->throttled.have_last = false;
	if (!move_to(&u->files[CGROUP_FILE_USED], u->memory_dir, memory_dir,
		     v1 ? "/memory.usage_in_bytes" : "/memory.current"))
		return;
	struct kfile *events = &u->files[CGROUP_FILE_EVENTS];
	kfile_close(events);
	u->oom_kills.have_last = false;
	if (v1 && is_own(memory)) /* not hierarchical there: the kill is counted at the victim's */
		kfile_open(events, memory->dir, "/memory.oom_control");
	else if (!v1 && *memory_dir)
		kfile_open(events, memory_dir, "/memory.events");
}

void cgroup_usage_open(struct cgroup_usage *u, const struct cgroup_where *where,
		       const struct cgroup_limits *limits)
{
	static const char *const stalls[] = { "/cpu.pressure", "/memory.pressure", "/io.pressure" };
	const struct cgroup_place *unified = &where->places[CGROUP_UNIFIED];
	long hz = sysconf(_SC_CLK_TCK);
	memset(u, 0, sizeof(*u));
	for (int i = 0; i < CGROUP_FILES; i++)
		u->files[i].fd = -1;
	u->tick_ns = 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
	open_cpu(u, where);
	cgroup_usage_follow(u, where, limits);
	for (int i = 0; i < 3 && is_own(unified); i++)
		kfile_open(&u->files[CGROUP_FILE_STALL + i], unified->dir, stalls[i]);
}

void cgroup_usage_close(struct cgroup_usage *u)
{
	for (int i = 0; i < CGROUP_FILES; i++)
		kfile_close(&u->files[i]);
	u->throttled_dir[0] = u->memory_dir[0] = 0;
}

bool cgroup_usage_has(const struct cgroup_usage *u, enum cgroup_value value)
{
	bool both_in_one = value == CGROUP_SYSTEM && (!u->cpu_version1 || u->cpu_in_ticks);
	return u->files[both_in_one ? CGROUP_FILE_CPU : file_of[value]].fd >= 0;
}

static void set(struct cgroup_values *out, enum cgroup_value value, uint64_t v, uint64_t factor)
{
	out->have[value] = true;
	out->v[value] = host_scale(v, factor);
}

static void set_key(struct cgroup_values *out, enum cgroup_value value, const struct host_key *key,
		    uint64_t factor)
{
	if (key->have)
		set(out, value, key->value, factor);
}

static void read_cpu(struct cgroup_usage *u, struct cgroup_values *out)
{
	uint64_t v;
	struct kfile *f = &u->files[CGROUP_FILE_CPU];
	if (u->cpu_version1 && !u->cpu_in_ticks) {
		if (!kfile_read_u64(f, &v))
			set(out, CGROUP_USER, v, 1);
		if (!kfile_read_u64(&u->files[CGROUP_FILE_CPU_SYSTEM], &v))
			set(out, CGROUP_SYSTEM, v, 1);
		return;
	}
	struct host_key usec[] = { { .key = "user_usec" }, { .key = "system_usec" } };
	struct host_key ticks[] = { { .key = "user" }, { .key = "system" } };
	struct host_key *keys = u->cpu_in_ticks ? ticks : usec;
	uint64_t factor = u->cpu_in_ticks ? u->tick_ns : 1000;
	if (kfile_read(f) < 0)
		return;
	host_parse_keys(f->text, keys, 2);
	set_key(out, CGROUP_USER, &keys[0], factor);
	set_key(out, CGROUP_SYSTEM, &keys[1], factor);
}

static uint64_t advance(struct cgroup_counter *c, uint64_t now)
{
	if (c->have_last && now > c->last)
		c->sum += now - c->last;
	else if (!c->have_last && !c->sum)
		c->sum = now;
	c->have_last = true;
	c->last = now;
	return c->sum;
}

/* One key of a file as a counter. */
static void read_counter(struct kfile *f, const char *name, struct cgroup_counter *c,
			 enum cgroup_value value, uint64_t factor, struct cgroup_values *out)
{
	struct host_key key = { .key = name };
	if (kfile_read(f) < 0)
		return;
	host_parse_keys(f->text, &key, 1);
	if (key.have)
		set(out, value, advance(c, key.value), factor);
}

static void read_stall(struct kfile *f, enum cgroup_value some, struct cgroup_values *out)
{
	uint64_t us;
	if (kfile_read(f) < 0)
		return;
	if (host_parse_pressure(f->text, "some", &us))
		set(out, some, us, 1000);
	if (host_parse_pressure(f->text, "full", &us))
		set(out, some + 1, us, 1000);
}

void cgroup_usage_read(struct cgroup_usage *u, struct cgroup_values *ret)
{
	uint64_t bytes;
	memset(ret, 0, sizeof(*ret));
	read_cpu(u, ret);
	read_counter(&u->files[CGROUP_FILE_THROTTLED],
		     u->throttled_version1 ? "throttled_time" : "throttled_usec", &u->throttled,
		     CGROUP_THROTTLED, u->throttled_version1 ? 1 : 1000, ret);
	if (!kfile_read_u64(&u->files[CGROUP_FILE_USED], &bytes))
		set(ret, CGROUP_USED, bytes, 1);
	read_counter(&u->files[CGROUP_FILE_EVENTS], "oom_kill", &u->oom_kills, CGROUP_OOM_KILLS, 1,
		     ret);
	for (int i = 0; i < 3; i++)
		read_stall(&u->files[CGROUP_FILE_STALL + i], CGROUP_STALL_CPU + 2 * i, ret);
}
