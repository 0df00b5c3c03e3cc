/*
 * The pen of the text renderer: columns, wrapping, colours, and what to do where only ASCII is wanted. Text
 * from outside is made harmless: no control characters reach a terminal.
 */
#ifndef SPOTTER_REPORT_TEXT_OUT_H
#define SPOTTER_REPORT_TEXT_OUT_H

#include "report/doc.h"

struct pen {
	struct buf *out;
	int width;
	bool color, ascii;
	int col; /* columns written on this line */
};

int pen_columns(const struct pen *p, const char *s); /* how wide s is when written */

void pen_put(struct pen *p, const char *s); /* as it is, made harmless */
void pen_tone(struct pen *p, enum doc_tone tone, const char *s);
void pen_pad(struct pen *p, int col); /* blanks up to a column; none if beyond */
void pen_end(struct pen *p);          /* end of line, trailing blanks removed */

/* Words, wrapped at the width; further lines begin at `indent`. */
void pen_flow(struct pen *p, enum doc_tone tone, const char *s, int indent);

/* At most `columns` of s, with "..." or an ellipsis if it is longer. */
void pen_clip(struct pen *p, enum doc_tone tone, const char *s, int columns);

#endif
