/* Findings into the recording they were found in, while it is still open for writing. */
#include <errno.h>
#include <stdlib.h>

#include "report/build.h"

static int store(struct rec_writer *w, const struct findings *all)
{
	struct rec_finding *rows = calloc(all->n ? all->n : 1, sizeof(*rows));
	struct buf *evidence = calloc(all->n ? all->n : 1, sizeof(*evidence));
	int rc = rows && evidence ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < all->n; i++) {
		const struct finding *f = &all->v[i];
		buf_init(&evidence[i]);
		rc = build_evidence_json(f, &evidence[i]);
		rows[i] = (struct rec_finding){
			.id = f->id,
			.severity = severity_name(f->severity),
			.text = f->text,
			.evidence = evidence[i].data,
			.advice = f->advice,
		};
	}
	if (!rc)
		rc = rec_findings(w, rows, all->n);
	for (size_t i = 0; evidence && i < all->n; i++)
		if (evidence[i].cap)
			buf_free(&evidence[i]);
	free(evidence);
	free(rows);
	return rc;
}

int report_store_findings(struct rec_writer *w, const char *path)
{
	struct rec_reader *r;
	struct run_facts f;
	int rc = rec_flush(w, NULL);
	if (!rc)
		rc = rec_open(path, &r, NULL);
	if (rc)
		return rc;
	struct findings *all = calloc(1, sizeof(*all));
	rc = all ? facts_load(r, &f, NULL) : -ENOMEM;
	if (!rc) {
		analyze_run(&f, all);
		rc = store(w, all);
	}
	if (all)
		facts_release(&f);
	free(all);
	rec_reader_free(r);
	return rc;
}
