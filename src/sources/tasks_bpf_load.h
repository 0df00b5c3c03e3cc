/*
 * Loading the BPF task iterator. Private to tasks_bpf.c.
 */
#ifndef SPOTTER_SOURCES_TASKS_BPF_LOAD_H
#define SPOTTER_SOURCES_TASKS_BPF_LOAD_H

#include "base/err.h"
#include "sources/tasks.h"

/*
 * Load and attach the iterator for this config, in a child process: reading the kernel's type information
 * takes 20 MB for a moment, which this process shall not have to carry. The descriptors of the link and of the map
 * of members are the caller's. 0 or -errno with words; at most some seconds.
 */
int tasks_bpf_load(const struct tasks_config *config, int *ret_link, int *ret_members,
		   struct err *e);

#endif
