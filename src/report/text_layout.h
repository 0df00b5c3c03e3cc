/* Layouts of the text renderer that fill files of their own. */
#ifndef SPOTTER_REPORT_TEXT_LAYOUT_H
#define SPOTTER_REPORT_TEXT_LAYOUT_H

#include "report/text_out.h"

void text_verdict(struct pen *p, const struct doc_node *section); /* text_finding.c */
void text_verdict_full(struct pen *p, const struct doc_node *section);
void text_remarks(struct pen *p, const struct doc_node *section);
void text_full(struct pen *p, const struct doc_node *section);
void text_table(struct pen *p, const struct doc_node *section); /* text_table.c */

/* A value with its unit, without the words around it. */
void text_value(const struct doc_node *n, char *into, size_t cap);

#endif
