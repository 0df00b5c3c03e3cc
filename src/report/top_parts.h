/* The parts of the live view, one file each; private to top*.c. */
#ifndef SPOTTER_REPORT_TOP_PARTS_H
#define SPOTTER_REPORT_TOP_PARTS_H

#include "report/top.h"
#include "report/top_read.h"

struct top {
	struct top_reader t;
	const struct top_options *o;
	const char *path;
	struct doc_node *root;
	uint32_t host, job; /* entities, 0: none */
};

void top_add_head(struct top *top);  /* top.c */
void top_add_steps(struct top *top); /* top_steps.c */
void top_add_host(struct top *top);  /* top_machine.c */
void top_add_job(struct top *top);
void top_add_gpus(struct top *top);
int top_add_processes(struct top *top); /* top_processes.c; 0 or -ENOMEM */

double top_cores(struct top *top, uint32_t entity); /* user and system together */

#endif
