/* Stands in for the BPF task reader in builds without clang or libbpf. */
#include <errno.h>

#include "sources/tasks.h"

static const char reason[] = "this spotter was built without BPF (clang and libbpf were missing)";

static int probe(const struct tasks_config *config, struct buf *why)
{
	buf_adds(why, reason);
	return -ENOTSUP;
}

static int open_reader(const struct tasks_config *config, void **ret_state, struct err *e)
{
	return err_set(e, ENOTSUP, "%s", reason);
}

static int read_all(void *state, struct task_table *t)
{
	return -ENOTSUP;
}

static void forget(void *state, struct task *task)
{
}

static void close_reader(void *state)
{
}

const struct task_reader task_reader_bpf = {
	.name = "bpf",
	.help = "a BPF task iterator (not built in)",
	.probe = probe,
	.open = open_reader,
	.read = read_all,
	.forget = forget,
	.close = close_reader,
};
