/*
 * The inside of the /proc reader: its files (tasks_proc_file.c), how processes are found (tasks_proc_find.c) and
 * how they are read (tasks_proc.c).
 */
#ifndef SPOTTER_SOURCES_TASKS_PROC_H
#define SPOTTER_SOURCES_TASKS_PROC_H

#include "base/map.h"
#include "sources/tasks.h"
#include "sources/tasks_parse.h"

enum { PROC_STAT, PROC_STATM, PROC_IO, PROC_FILES };                    /* of a process */
enum { PROC_SCHEDSTAT, PROC_STATUS, PROC_CHILDREN, PROC_THREAD_FILES }; /* of a thread */

/* task->reader of a process that this reader watches. */
struct proc_task {
	int fd[PROC_FILES]; /* kept descriptors, or -1 */
	unsigned active;    /* passes in a row in which it ran */
	int walks;          /* passes in which its children must still be looked for */
	bool known;         /* was read at least once */
	bool listed;        /* is in proc_reader.list */
};

/* All that must be touched of a process that sleeps. */
struct proc_entry {
	struct task *task;
	uint64_t clock; /* its CPU clock when it was last read: did it run since? */
	pid_t pid;
	uint16_t quiet; /* passes since it last ran, up to a limit */
	bool job;
	bool fresh;  /* not read yet */
	bool behind; /* ran since its expensive files were read */
};

struct pid_list {
	pid_t *pids;
	size_t n, cap;
};

struct proc_reader {
	struct tasks_config config;
	struct proc_entry *list; /* of all processes, in the order of the table */
	size_t n, cap;
	int root;    /* directory /proc */
	int loadavg; /* kept; -1: not there */
	int own_children;
	bool clocks;    /* CPU clocks tell who ran: /proc is the one of our own pid namespace */
	bool children;  /* the kernel lists children; else all of /proc is looked through */
	bool schedstat; /* the kernel counts run delay */
	bool slow;      /* this pass reads the expensive files, too */
	bool full;      /* this pass looks everywhere for new processes */
	bool shed;      /* out of descriptors: give up those that are kept */
	uint32_t slow_every, full_every;
	uint64_t last_pid, previous_pid; /* the newest pid of the host, now and one pass ago */
	int walks;             /* passes in which new processes must still be looked for */
	size_t kept, kept_max; /* descriptors */
	struct map strangers;  /* pids that were found not to be the job's */
	char *big;             /* for files that may be long */
	size_t big_cap;
	struct pid_list found, threads; /* processes to be looked at; threads of one */
	char text[4096];
};

/*
 * Read PID/name (tid 0) or PID/task/TID/name into r->text, from *fd where that is kept, else by its path; with
 * keep the descriptor may then be kept in *fd. Its length or -errno.
 */
ssize_t proc_read(struct proc_reader *r, int *fd, bool keep, pid_t pid, pid_t tid,
		  const char *name);
void proc_close_fd(struct proc_reader *r, int *fd);
void proc_close_thread(struct proc_reader *r, struct task_thread *thread);
void proc_close_task(struct proc_reader *r, struct task *task);
static inline void proc_set(struct task *task, int counter, uint64_t value)
{
	task->own[counter] = value < INT64_MAX ? (int64_t)value : INT64_MAX;
	task->have |= 1u << counter;
	task->fresh |= 1u << counter;
}

/* Read its threads: run delay, and in slow passes context switches and what their status says of the process. */
void proc_read_threads(struct proc_reader *r, struct task_table *t, struct task *task, bool keep);
void proc_take_status(struct task *task, const struct task_status *s);

/* Raise the soft limit of open files and say how many may be kept. */
size_t proc_fd_limit(void);

/* The numbers among the names in directory `path` below /proc, into list. 0 or -errno. */
int proc_list(struct proc_reader *r, const char *path, struct pid_list *list);
/* The children of one thread, added to r->found. 0 or -errno. */
int proc_children(struct proc_reader *r, int *fd, bool keep, pid_t pid, pid_t tid);

/* Find processes that are new in this pass and read them. */
void proc_find(struct proc_reader *r, struct task_table *t);

/* A process seen for the first time: add and read it. NULL: gone already, or not wanted. */
struct task *proc_meet(struct proc_reader *r, struct task_table *t, pid_t pid);

#endif
