/* Signals; see signals.h. */
#include "record/signals.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int watched[] = {
	SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,  SIGUSR1, SIGUSR2,
	SIGALRM, SIGTSTP, SIGCONT, SIGWINCH, SIGCHLD, SIGURG,
};
#define NWATCHED (sizeof(watched) / sizeof(*watched))

static void watched_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < NWATCHED; i++)
		sigaddset(set, watched[i]);
}

int signals_open(struct signals *s)
{
	sigset_t set;
	watched_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, &s->original))
		return -errno;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd < 0 ? -errno : 0;
}

bool signals_handle(const struct signals *s, pid_t job_pid, const struct jobset *jobset)
{
	struct signalfd_siginfo si;
	if (read(s->fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return false;
	if (si.ssi_signo == SIGCHLD)
		return true;
	/* From the terminal or the kernel: the job has it already. */
	bool sent = si.ssi_code == SI_USER || si.ssi_code == SI_QUEUE || si.ssi_code == SI_TKILL;
	pid_t sender = (pid_t)si.ssi_pid;
	if (sent && job_pid > 0 && sender != getpid() && !jobset_has(jobset, sender))
		kill(job_pid, (int)si.ssi_signo);
	return false;
}

/* Let one signal take its default action on us now. */
static void take_default(int sig)
{
	sigset_t set, old;
	struct sigaction def = { .sa_handler = SIG_DFL }, before;
	sigaction(sig, &def, &before);
	sigemptyset(&set);
	sigaddset(&set, sig);
	/* Raised before it is let through: one that is pending already and this one are then one. */
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	sigaction(sig, &before, NULL);
}

void signals_stop_self(int sig)
{
	take_default(sig);
}

void signals_die(int sig)
{
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	take_default(sig);
}

void signals_close(struct signals *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* ------------------------------------------------------------------------------- our own crash */

static volatile sig_atomic_t guarded_pid;

/* Was that the end of the job? Then end as it did. */
static void end_with_job(void)
{
	int status = 0;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 && pid != (pid_t)guarded_pid)
		;
	if (pid == (pid_t)guarded_pid)
		_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	if (pid < 0)
		_exit(1);
}

/* Only system calls from here on: nothing of this process can be trusted any more. */
static void crashed(int sig)
{
	static const char text[] = "spotter: internal error in the recorder; the job goes on "
				   "unwatched. What was recorded so far is kept.\n";
	(void)sig;
	ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)ignored;
	sigset_t set;
	watched_set(&set);
	for (;;) {
		siginfo_t si;
		end_with_job();
		int got = sigwaitinfo(&set, &si);
		if (got > 0 && got != SIGCHLD && si.si_code == SI_USER)
			kill((pid_t)guarded_pid, got);
	}
}

void signals_guard(pid_t job_pid)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	static char stack[64 * 1024]; /* a stack overflow is a crash too */
	stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = crashed,
				.sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK };
	guarded_pid = (sig_atomic_t)job_pid;
	sigaltstack(&alternative, NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		sigaction(crashes[i], &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}
