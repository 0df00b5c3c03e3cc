/* Buffered output; see out.h. */
#include "export/out.h"

#include <errno.h>

#include "base/io.h"

#define ENOUGH 65536

void out_init(struct out *o, int fd)
{
	*o = (struct out){ .fd = fd };
	buf_init(&o->text);
}

void out_release(struct out *o)
{
	buf_free(&o->text);
}

int out_flush(struct out *o)
{
	if (!o->rc && o->text.failed)
		o->rc = -ENOMEM;
	if (!o->rc)
		o->rc = io_write_all(o->fd, o->text.data, o->text.len);
	if (!o->rc)
		o->bytes += o->text.len;
	buf_clear(&o->text);
	return o->rc;
}

int out_step(struct out *o)
{
	if (o->text.len < ENOUGH && !o->text.failed)
		return o->rc;
	return out_flush(o);
}
