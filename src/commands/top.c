/* spotter top: the live view of a run, refreshed from its recording. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "commands/command.h"
#include "report/report.h"
#include "report/top.h"

#define ROWS_DEFAULT 20 /* processes, where no terminal's height says how many */
#define HEADER_LINES 14 /* about: what stands above the processes */

struct options {
	const char *sort;
	uint64_t interval_ns, width;
	bool once, json, ascii, no_color;
};

static const struct options defaults = { .sort = "cpu", .interval_ns = NS_PER_S };

static const struct opt options[] = {
	OPT(options, interval_ns, "interval", 'i', OPT_DURATION, "TIME",
	    "between refreshes (default: 1 s; what is recorded does not change)"),
	OPT(options, once, "once", '1', OPT_FLAG, NULL, "print it once and leave"),
	OPT(options, sort, "sort", 's', OPT_STRING, "KEY", "processes by cpu (default), rss or io"),
	OPT(options, json, "json", 0, OPT_FLAG, NULL, "a JSON object per refresh"),
	OPT(options, width, "width", 'w', OPT_U64, "COLUMNS",
	    "width of the text (default: of the terminal, else 100)"),
	OPT(options, ascii, "ascii", 0, OPT_FLAG, NULL,
	    "no characters beyond ASCII (default where the locale is not UTF-8)"),
	OPT(options, no_color, "no-color", 0, OPT_FLAG, NULL, "no colours"),
	OPT_END,
};

static bool parse_sort(const char *text, enum top_sort *ret)
{
	static const char *const names[] = {
		[TOP_SORT_CPU] = "cpu",
		[TOP_SORT_RSS] = "rss",
		[TOP_SORT_IO] = "io",
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], text)) {
			*ret = (enum top_sort)i;
			return true;
		}
	return false;
}

/* ------------------------------------------------------------------------- finding the recording */

/* When the file or its -wal was written last; 0 if it is not there. */
static uint64_t written_at(const char *path)
{
	static const char *const ends[] = { "", "-wal" };
	char name[PATH_MAX];
	uint64_t last = 0;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct stat st;
		if (snprintf(name, sizeof(name), "%s%s", path, ends[i]) >= (int)sizeof(name) ||
		    stat(name, &st))
			continue;
		uint64_t t = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
		last = t > last ? t : last;
	}
	return last;
}

static bool is_live(const char *path)
{
	struct rec_reader *r;
	if (rec_open(path, &r, NULL))
		return false;
	bool live = rec_is_live(r);
	rec_reader_free(r);
	return live;
}

/* The recording in this folder that grows, the one written last if there are several. */
static bool find_live(char *ret, size_t cap)
{
	DIR *dir = opendir(".");
	struct dirent *d;
	uint64_t best = 0;
	while (dir && (d = readdir(dir))) {
		size_t n = strlen(d->d_name);
		if (n < 6 || n >= cap || strcmp(d->d_name + n - 5, ".spot") != 0)
			continue;
		uint64_t t = written_at(d->d_name);
		if (t <= best || !is_live(d->d_name))
			continue;
		best = t;
		memcpy(ret, d->d_name, n + 1);
	}
	if (dir)
		closedir(dir);
	return best > 0;
}

/* --------------------------------------------------------------------------------------- terminal */

/* What was changed on the terminal, and the way signals come. */
struct terminal {
	bool is_terminal; /* standard output is one: redraw in place */
	bool keys;        /* standard input is one, and ours: q leaves */
	struct termios before;
	int signals; /* signalfd */
	int lines;
};

static void terminal_enter(struct terminal *t)
{
	if (t->is_terminal && io_write_all(STDOUT_FILENO, "\033[?25l\033[H\033[J", 12))
		t->is_terminal = false;
	if (!t->keys)
		return;
	struct termios raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void terminal_leave(const struct terminal *t)
{
	if (t->is_terminal)
		io_write_all(STDOUT_FILENO, "\033[?25h", 6);
	if (t->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static void terminal_init(struct terminal *t, const struct options *o)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	*t = (struct terminal){ .signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) };
	t->is_terminal = isatty(STDOUT_FILENO) && !o->json && !o->once;
	/* In the background the terminal is somebody else's. */
	t->keys = t->is_terminal && !tcgetattr(STDIN_FILENO, &t->before) &&
		  tcgetpgrp(STDIN_FILENO) == getpgrp();
	terminal_enter(t);
}

static void terminal_release(struct terminal *t)
{
	terminal_leave(t);
	if (t->signals >= 0)
		close(t->signals);
}

static int terminal_lines(const struct terminal *t)
{
	struct winsize size;
	if (!t->is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		return 0;
	return size.ws_row;
}

/* Stop as Ctrl-Z asks, with the terminal as it was found. */
static void stop(struct terminal *t)
{
	terminal_leave(t);
	raise(SIGSTOP);
	terminal_enter(t);
}

enum wake { WAKE_TIME, WAKE_REDRAW, WAKE_LEAVE };

static enum wake read_signals(struct terminal *t)
{
	struct signalfd_siginfo info;
	enum wake wake = WAKE_TIME;
	while (read(t->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			stop(t);
		else if (info.ssi_signo != SIGWINCH)
			return WAKE_LEAVE;
		wake = WAKE_REDRAW;
	}
	return wake;
}

/* Until it is time, a key or a signal. */
static enum wake wait_until(struct terminal *t, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = clock_mono_ns();
		if (now >= until_ns)
			return WAKE_TIME;
		uint64_t ms = (until_ns - now) / NS_PER_MS + 1;
		struct pollfd fds[] = { { .fd = t->signals, .events = POLLIN },
					{ .fd = t->keys ? STDIN_FILENO : -1, .events = POLLIN } };
		if (poll(fds, 2, ms < 60000 ? (int)ms : 60000) <= 0)
			continue;
		if (fds[0].revents) {
			enum wake wake = read_signals(t);
			if (wake != WAKE_TIME)
				return wake;
		}
		char key = 0;
		if (fds[1].revents && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q'))
			return WAKE_LEAVE;
	}
}

/* ----------------------------------------------------------------------------------------- output */

/* The text with the end of each line cleared, cut to the height, and nothing left below. */
static void in_place(const char *text, int lines, struct buf *out)
{
	buf_adds(out, "\033[H");
	for (int line = 1; *text && line < lines; line++) {
		size_t n = strcspn(text, "\n");
		buf_add(out, text, n);
		buf_adds(out, "\033[K\n");
		text += n + (text[n] == '\n');
	}
	buf_adds(out, "\033[J");
}

static int show(const struct doc *doc, const struct options *o, const struct terminal *t)
{
	struct report_options look = {
		.width = (int)(o->width < 1000 ? o->width : 1000),
		.color = o->no_color ? REPORT_COLOR_NEVER : REPORT_COLOR_AUTO,
		.charset = o->ascii ? REPORT_CHARSET_ASCII : REPORT_CHARSET_AUTO
	};
	struct doc_text_options layout = report_layout(stdout, &look);
	struct buf text = BUF_INIT, screen = BUF_INIT;
	int rc = 0, lines = terminal_lines(t);
	if (o->json)
		rc = doc_json(doc, &text);
	else
		doc_text(doc, &layout, &text);
	if (t->is_terminal)
		in_place(text.data, lines ? lines : INT_MAX, &screen);
	const struct buf *b = t->is_terminal ? &screen : &text;
	if (!rc)
		rc = b->failed ? -ENOMEM : io_write_all(STDOUT_FILENO, b->data, b->len);
	if (!rc && !t->is_terminal && !o->json && !o->once)
		rc = io_write_all(STDOUT_FILENO, "\n", 1);
	buf_free(&text);
	buf_free(&screen);
	return rc;
}

static int refresh(struct rec_reader *r, const char *run, const struct options *o,
		   struct top_options *view, const struct terminal *t, struct err *e)
{
	struct doc *doc;
	int lines = terminal_lines(t);
	view->rows = o->json                    ? 0
		     : lines > HEADER_LINES + 3 ? (size_t)(lines - HEADER_LINES)
						: ROWS_DEFAULT;
	int rc = rec_refresh(r, e);
	if (rc < 0)
		return rc;
	rc = top_build(r, run, view, &doc, e);
	if (rc)
		return rc;
	rc = show(doc, o, t);
	doc_free(doc);
	if (rc)
		err_set(e, -rc, "%s", strerror(-rc));
	return rc;
}

/* Refresh until the run has ended, whose last moments then stay on the screen, or somebody wants to leave. */
static int watch(struct rec_reader *r, const char *run, const struct options *o,
		 struct top_options *view, struct err *e)
{
	struct terminal t;
	uint64_t next = clock_mono_ns();
	enum wake wake = WAKE_TIME;
	int rc = 0;
	terminal_init(&t, o);
	do {
		bool live = rec_is_live(r);
		rc = refresh(r, run, o, view, &t, e);
		if (rc || o->once || !live)
			break;
		if (wake == WAKE_TIME)
			next += o->interval_ns;
		if (next < clock_mono_ns())
			next = clock_mono_ns(); /* late: do not hurry to catch up */
		wake = wait_until(&t, next);
	} while (wake != WAKE_LEAVE);
	terminal_release(&t);
	return rc == -EPIPE ? 0 : rc;
}

static int run_top(const void *opts, int n, char **argv)
{
	const struct options *o = opts;
	struct top_options view = { 0 };
	struct err e = { 0 };
	struct rec_reader *r;
	char found[NAME_MAX + 1];
	const char *run = n ? argv[0] : found;
	if (n > 1) {
		log_error("top watches one recording, not %d", n);
		return EXIT_USAGE;
	}
	if (!parse_sort(o->sort, &view.sort)) {
		log_error("--sort is cpu, rss or io, not '%s'", o->sort);
		return EXIT_USAGE;
	}
	if (o->interval_ns < 10 * NS_PER_MS) {
		log_error("--interval is at least 10 ms");
		return EXIT_USAGE;
	}
	if (!n && !find_live(found, sizeof(found))) {
		log_error("no run is being recorded in this folder. Start one with 'spotter run -- "
			  "COMMAND', or name a recording: 'spotter top RUN.spot'");
		return 1;
	}
	if (rec_open(run, &r, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	int rc = watch(r, run, o, &view, &e);
	if (rc)
		log_error("%s: %s", run, e.text);
	rec_reader_free(r);
	return rc ? 1 : 0;
}

extern const struct command command_top;
const struct command command_top = {
	.name = "top",
	.summary = "watch a run while it goes on",
	.usage = "[options] [RUN]",
	.text = "Shows what a run does now, refreshed from its recording: steps per second and how "
		"much of them waits for data, cores and memory used of those allowed, I/O, GPUs, "
		"and the job's processes, the busiest first. RUN is the recording (default: the "
		"one in this folder that grows). 'q' or Ctrl-C leaves; the run does not notice.\n"
		"\n"
		"On a terminal the view is redrawn in place; elsewhere a block is printed per "
		"refresh. It ends by itself when the run does. Of a run that has ended, its last "
		"moments are shown.\n"
		"\n"
		"Rates are over the last three samples, or two seconds if that is longer; steps "
		"are "
		"over ten seconds; spark lines over the last minute. \"-\" is what is not known.\n",
	.examples = "spotter top\n"
		    "    the run that is recorded in this folder\n"
		    "spotter top /scratch/run.spot --sort io --interval 5s\n"
		    "    another one, with the processes that read and write the most first\n"
		    "spotter top --once --json | jq .cpu.cores_used\n"
		    "    one number, for a script\n",
	.options = options,
	.options_size = sizeof(struct options),
	.defaults = &defaults,
	.files = "*.spot",
	.run = run_top,
};
