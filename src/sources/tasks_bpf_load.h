/*
 * Loading the BPF task iterator. Private to tasks_bpf.c.
 */
#ifndef SPOTTER_SOURCES_TASKS_BPF_LOAD_H
#define SPOTTER_SOURCES_TASKS_BPF_LOAD_H

#include "base/err.h"
#include "sources/tasks.h"

struct tasks_bpf_fds {
	int link;    /* of the iterator: what it is created from */
	int members; /* map */
	int pass;    /* map with one struct task_iter_pass, to be mapped */
};

/*
 * Load and attach the iterator for this config, in a child process: reading the kernel's type information
 * takes 20 MB for a moment, which this process shall not have to carry. The descriptors are the caller's.
 * 0 or -errno with words; at most some seconds.
 * ret_cpu_ns: what the child used, on failure as well.
 */
int tasks_bpf_load(const struct tasks_config *config, struct tasks_bpf_fds *ret,
		   uint64_t *ret_cpu_ns, struct err *e);
void tasks_bpf_close(struct tasks_bpf_fds *fds); /* those that are not -1 */

#endif
