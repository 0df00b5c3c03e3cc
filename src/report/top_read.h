/*
 * Reading the last moments of a recording: the last value of a gauge, the rate of a counter, a short chart. All
 * give NaN where there is nothing, for a rate also where there are not two samples.
 */
#ifndef SPOTTER_REPORT_TOP_READ_H
#define SPOTTER_REPORT_TOP_READ_H

#include "base/map.h"
#include "recording/recording.h"

#define TOP_CHART_PARTS   30
#define TOP_CHART_SECONDS 60

struct top_reader {
	struct rec_reader *r;
	struct map series;    /* entity << 16 | metric -> id of the series */
	uint64_t now;         /* the last moment, on the recording's clock */
	uint64_t window_ns;   /* rates are over this much before */
	double samples_per_s; /* what the recorder writes, about; NaN not known */
	int rc;               /* the first error of reading */
};

/* 0, or -errno. Valid until the reader is refreshed. */
int top_reader_init(struct top_reader *t, struct rec_reader *r);
void top_reader_release(struct top_reader *t);

double top_last(struct top_reader *t, uint32_t entity, enum metric_id metric);
/* The same for what is sampled seldom: not older than a minute. */
double top_recent(struct top_reader *t, uint32_t entity, enum metric_id metric);
double top_rate(struct top_reader *t, uint32_t entity, enum metric_id metric); /* per second */

/* a + b, where one that is absent counts as nothing unless both are. */
double top_sum(double a, double b);

/* The last minute: mean of a gauge, rate per second of a counter, times `scale`; added to what v holds. */
void top_chart(struct top_reader *t, uint32_t entity, enum metric_id metric, double scale,
	       double *v);

#endif
