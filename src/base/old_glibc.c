/*
 * Functions that glibc grew after 2.28, for the portable program, which is linked to run on that version
 * (tools/old_glibc.py). Only those that the program or a library inside it calls; each is one system call.
 * Not part of other builds.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Before 2.33 these were inline functions over a versioned call. The kernel's struct is glibc's on 64 bits. */
int stat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int lstat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return stat(path, (struct stat *)st);
}

int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return lstat(path, (struct stat *)st);
}

int fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *)st);
}

int fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return fstatat(dir, path, (struct stat *)st, flags);
}
