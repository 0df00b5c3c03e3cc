/*
 * An SQLite VFS over the usual one in which the Nth change to a file (write, truncation, sync,
 * deletion) does not happen: it fails, or the process dies there as if killed. Include it in one
 * test file.
 */
#ifndef SPOTTER_TESTS_FAULT_VFS_H
#define SPOTTER_TESTS_FAULT_VFS_H

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

enum fault_kind { FAULT_NONE, FAULT_FULL, FAULT_IO, FAULT_KILL };

static struct {
	enum fault_kind kind;
	long left;    /* changes until it strikes */
	bool forever; /* and all after it, too */
	long struck;
	sqlite3_vfs *real;
} fault;

static void fault_arm(enum fault_kind kind, long n, bool forever)
{
	fault.kind = kind;
	fault.left = n;
	fault.forever = forever;
	fault.struck = 0;
}

/* Is it now? SQLITE_OK if not. */
static int fault_now(void)
{
	if (fault.kind == FAULT_NONE)
		return SQLITE_OK;
	fault.left--;
	if (fault.left > 0 || (fault.left < 0 && !fault.forever))
		return SQLITE_OK;
	fault.struck++;
	if (fault.kind == FAULT_KILL)
		_exit(9);
	return fault.kind == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

struct fault_file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct, in the same memory */
};

static sqlite3_file *fault_real(sqlite3_file *file)
{
	return ((struct fault_file *)file)->real;
}

static int fault_close(sqlite3_file *f)
{
	return fault_real(f)->pMethods->xClose(fault_real(f));
}

static int fault_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	return fault_real(f)->pMethods->xRead(fault_real(f), p, n, at);
}

static int fault_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	bool dies = fault.kind == FAULT_KILL && fault.left == 1;
	if (dies) /* in the middle of it */
		fault_real(f)->pMethods->xWrite(fault_real(f), p, n / 2, at);
	int rc = fault_now();
	return rc != SQLITE_OK ? rc : fault_real(f)->pMethods->xWrite(fault_real(f), p, n, at);
}

static int fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = fault_now();
	return rc != SQLITE_OK ? rc : fault_real(f)->pMethods->xTruncate(fault_real(f), size);
}

static int fault_sync(sqlite3_file *f, int flags)
{
	int rc = fault_now();
	/* The disk itself is not what is tested. */
	return rc != SQLITE_OK ? (rc == SQLITE_FULL ? SQLITE_IOERR_FSYNC : rc) : SQLITE_OK;
}

static int fault_file_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return fault_real(f)->pMethods->xFileSize(fault_real(f), ret);
}

static int fault_lock(sqlite3_file *f, int how)
{
	return fault_real(f)->pMethods->xLock(fault_real(f), how);
}

static int fault_unlock(sqlite3_file *f, int how)
{
	return fault_real(f)->pMethods->xUnlock(fault_real(f), how);
}

static int fault_check_lock(sqlite3_file *f, int *ret)
{
	return fault_real(f)->pMethods->xCheckReservedLock(fault_real(f), ret);
}

static int fault_control(sqlite3_file *f, int op, void *arg)
{
	return fault_real(f)->pMethods->xFileControl(fault_real(f), op, arg);
}

static int fault_sector(sqlite3_file *f)
{
	return fault_real(f)->pMethods->xSectorSize(fault_real(f));
}

static int fault_device(sqlite3_file *f)
{
	return fault_real(f)->pMethods->xDeviceCharacteristics(fault_real(f));
}

static int fault_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
	return fault_real(f)->pMethods->xShmMap(fault_real(f), page, size, extend, ret);
}

static int fault_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return fault_real(f)->pMethods->xShmLock(fault_real(f), offset, n, flags);
}

static void fault_shm_barrier(sqlite3_file *f)
{
	fault_real(f)->pMethods->xShmBarrier(fault_real(f));
}

static int fault_shm_unmap(sqlite3_file *f, int del)
{
	return fault_real(f)->pMethods->xShmUnmap(fault_real(f), del);
}

static const sqlite3_io_methods fault_methods = {
	.iVersion = 2,
	.xClose = fault_close,
	.xRead = fault_read,
	.xWrite = fault_write,
	.xTruncate = fault_truncate,
	.xSync = fault_sync,
	.xFileSize = fault_file_size,
	.xLock = fault_lock,
	.xUnlock = fault_unlock,
	.xCheckReservedLock = fault_check_lock,
	.xFileControl = fault_control,
	.xSectorSize = fault_sector,
	.xDeviceCharacteristics = fault_device,
	.xShmMap = fault_shm_map,
	.xShmLock = fault_shm_lock,
	.xShmBarrier = fault_shm_barrier,
	.xShmUnmap = fault_shm_unmap,
};

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
		      int *ret_flags)
{
	struct fault_file *file = (struct fault_file *)f;
	file->real = (sqlite3_file *)(file + 1);
	file->base.pMethods = NULL;
	int rc = fault.real->xOpen(fault.real, name, file->real, flags, ret_flags);
	if (file->real->pMethods)
		file->base.pMethods = &fault_methods;
	return rc;
}

static int fault_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	int rc = fault_now();
	return rc != SQLITE_OK ? SQLITE_IOERR_DELETE : fault.real->xDelete(fault.real, name, 0);
}

/* Make it the default. */
static int fault_install(void)
{
	static sqlite3_vfs vfs;
	fault.real = sqlite3_vfs_find(NULL);
	vfs = *fault.real;
	vfs.zName = "fault";
	vfs.szOsFile = (int)sizeof(struct fault_file) + fault.real->szOsFile;
	vfs.xOpen = fault_open;
	vfs.xDelete = fault_delete;
	return sqlite3_vfs_register(&vfs, 1);
}

#endif
