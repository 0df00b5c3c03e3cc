/* Starting the job; see launch.h. */
#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"

extern char **environ;

/* In the child: never returns. Only what is safe between fork and exec. */
static void become_job(const struct launch *l, char **envp, int failure)
{
	if (l->out >= 0)
		dup2(l->out, STDOUT_FILENO);
	if (l->err >= 0)
		dup2(l->err, STDERR_FILENO);
	sigprocmask(SIG_SETMASK, l->mask, NULL);
	execvpe(l->argv[0], l->argv, envp);
	int code = errno;
	ssize_t n = write(failure, &code, sizeof(code));
	_exit(n == (ssize_t)sizeof(code) ? 127 : 126);
}

/* A copy of our environment with two variables set; strings are kept in *text. NULL without memory. */
static char **job_environment(const struct launch *l, struct buf *text)
{
	size_t n = 0;
	while (environ[n])
		n++;
	char **envp = calloc(n + 3, sizeof(*envp));
	if (!envp)
		return NULL;
	const char *old = getenv("PYTHONPATH");
	size_t second = 0;
	if (*l->dir) {
		buf_addf(text, "SPOTTER_DIR=%s", l->dir);
		buf_addc(text, 0);
		second = text->len;
	}
	if (*l->pythonpath)
		buf_addf(text, "PYTHONPATH=%s%s%s", l->pythonpath, old && *old ? ":" : "",
			 old ? old : "");
	if (text->failed) {
		free(envp);
		return NULL;
	}
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		bool ours = !strncmp(environ[i], "SPOTTER_DIR=", 12) ||
			    (*l->pythonpath && !strncmp(environ[i], "PYTHONPATH=", 11));
		if (!ours)
			envp[k++] = environ[i];
	}
	if (*l->dir)
		envp[k++] = text->data;
	if (*l->pythonpath)
		envp[k++] = text->data + second;
	return envp;
}

static const char *exec_advice(int code)
{
	static const struct {
		int code;
		const char *advice;
	} table[] = {
		{ ENOENT, "command not found; check the name and $PATH" },
		{ EACCES, "not executable; chmod +x it, or name its interpreter: spotter run -- "
			  "python3 FILE" },
		{ ENOEXEC,
		  "not a program and no #! line; name its interpreter: spotter run -- sh FILE" },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].code == code)
			return table[i].advice;
	return strerror(code);
}

/* Wait until exec has closed the pipe (0) or told why it failed (its errno). */
static int exec_result(int fd)
{
	int code = 0;
	ssize_t n;
	do
		n = read(fd, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(code) ? code : 0;
}

int launch_job(const struct launch *l, pid_t *ret_pid, struct err *e)
{
	int pipefd[2] = { -1, -1 }, rc = 0;
	struct buf text = BUF_INIT;
	char **envp = job_environment(l, &text);
	if (!envp) {
		rc = err_set(e, ENOMEM, "no memory for the job's environment");
		goto out;
	}
	if (pipe2(pipefd, O_CLOEXEC)) {
		rc = err_set(e, errno, "cannot start the job: %s", strerror(errno));
		goto out;
	}
	pid_t pid = fork();
	if (pid < 0) {
		rc = err_set(e, errno, "cannot start the job: %s", strerror(errno));
		goto out;
	}
	if (!pid)
		become_job(l, envp, pipefd[1]);
	close(pipefd[1]);
	pipefd[1] = -1;
	int code = exec_result(pipefd[0]);
	if (code) {
		waitpid(pid, NULL, 0);
		rc = err_set(e, code, "%s: %s", l->argv[0], exec_advice(code));
		goto out;
	}
	*ret_pid = pid;
out:
	if (pipefd[0] >= 0)
		close(pipefd[0]);
	if (pipefd[1] >= 0)
		close(pipefd[1]);
	free(envp);
	buf_free(&text);
	return rc;
}
