/* Several series of one entity at once; see series.h. */
#include "sources/series.h"

#include <errno.h>

int series_make(struct rec_writer *w, uint32_t entity, const enum metric_id *metrics_wanted,
		size_t n, const char *source, uint32_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		int rc = rec_series(w, entity, metrics_wanted[i], source, &ret[i]);
		if (rc)
			return rc;
	}
	return 0;
}

void series_none(uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ids[i] = SERIES_NONE;
}

void series_gap(struct rec_writer *w, const uint32_t *ids, size_t n, const char *reason)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] != SERIES_NONE)
			rec_gap(w, ids[i], reason);
}

void series_end(struct rec_writer *w, uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] != SERIES_NONE)
			rec_series_end(w, ids[i]);
	series_none(ids, n);
}

const char *series_reason(int negative_errno)
{
	switch (-negative_errno) {
	case EACCES:
	case EPERM:
		return "no permission";
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case ESRCH:
	case EBADF:
		return "not there";
	case EOPNOTSUPP:
	case ENOSYS:
		return "not supported";
	case EINVAL:
	case ENODATA:
		return "the kernel gave no value";
	case EMFILE:
	case ENFILE:
		return "too many open files";
	case ENOMEM:
		return "out of memory";
	case EFBIG:
		return "the file is too long";
	default:
		return "could not be read";
	}
}
