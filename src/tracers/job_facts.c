/* What the job's processes say about it; see job_facts.h. */
#include "tracers/job_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX  256
#define FACTS_MAX 4096 /* with those of single processes */

void job_facts_init(struct job_facts *f)
{
	memset(f, 0, sizeof(*f));
}

void job_facts_free(struct job_facts *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->facts[i].key);
		free(f->facts[i].value);
	}
	free(f->facts);
	job_facts_init(f);
}

static int own(struct job_facts *f, uint32_t pid, const char *key, const char *value)
{
	if (f->n >= KEYS_MAX)
		return -ENOSPC;
	struct job_fact *facts = realloc(f->facts, (f->n + 1) * sizeof(*facts));
	if (!facts)
		return -ENOMEM;
	f->facts = facts;
	struct job_fact new = { .key = strdup(key), .value = strdup(value), .pid = pid };
	if (!new.key || !new.value) {
		free(new.key);
		free(new.value);
		return -ENOMEM;
	}
	facts[f->n++] = new;
	return 0;
}

int job_facts_set(struct job_facts *f, struct rec_writer *w, uint32_t pid, const char *key,
		  const char *value)
{
	char name[128];
	struct job_fact *fact = NULL;
	if (f->kept >= FACTS_MAX)
		return -ENOSPC;
	for (size_t i = 0; i < f->n && !fact; i++)
		if (!strcmp(f->facts[i].key, key))
			fact = &f->facts[i];
	snprintf(name, sizeof(name), "fact.%s", key);
	if (!fact) {
		int rc = own(f, pid, key, value);
		if (rc)
			return rc;
	} else if (fact->pid == pid) {
		char *copy = strdup(value);
		if (!copy)
			return -ENOMEM;
		free(fact->value);
		fact->value = copy;
	} else if (strcmp(fact->value, value)) {
		snprintf(name, sizeof(name), "fact.%s@%u", key, pid);
	} else {
		return 0;
	}
	f->kept++;
	return rec_set(w, name, value);
}
