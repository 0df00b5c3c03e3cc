/*
 * Functions that glibc grew after 2.28, for the portable program, which is linked to run on that version
 * (tools/old_glibc.py). Only those that the program or a library inside it calls.
 * Not part of other builds.
 */
#undef _FILE_OFFSET_BITS /* would rename stat to stat64: both are defined here */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
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

/* Since 2.31. The older pthread_timedjoin_np knows the real clock only, which may jump. */
int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
			 const struct timespec *deadline)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	for (;;) {
		struct timespec now;
		int rc = pthread_tryjoin_np(thread, result);
		if (rc != EBUSY)
			return rc;
		if (clock_gettime(clock, &now))
			return EINVAL;
		if (now.tv_sec > deadline->tv_sec ||
		    (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec))
			return ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

/* Since 2.32. */
const char *sigabbrev_np(int sig)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP",       [SIGINT] = "INT",       [SIGQUIT] = "QUIT",
		[SIGILL] = "ILL",       [SIGTRAP] = "TRAP",     [SIGABRT] = "ABRT",
		[SIGBUS] = "BUS",       [SIGFPE] = "FPE",       [SIGKILL] = "KILL",
		[SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE",     [SIGALRM] = "ALRM",     [SIGTERM] = "TERM",
		[SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD",     [SIGCONT] = "CONT",
		[SIGSTOP] = "STOP",     [SIGTSTP] = "TSTP",     [SIGTTIN] = "TTIN",
		[SIGTTOU] = "TTOU",     [SIGURG] = "URG",       [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ",     [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF",
		[SIGWINCH] = "WINCH",   [SIGIO] = "POLL",       [SIGPWR] = "PWR",
		[SIGSYS] = "SYS",
	};
	return sig > 0 && sig < (int)(sizeof(names) / sizeof(*names)) ? names[sig] : NULL;
}
