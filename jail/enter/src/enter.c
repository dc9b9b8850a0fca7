/*
 * enter: the last step of a process into the jail.
 *
 *     enter FD PROGRAM [ARG...]
 *
 * By then namespaces, ids, capabilities, rlimits, no_new_privs and the cgroup
 * are in place. What is left must be done by the process itself, right before
 * its program: the system call filter and, for the jail's pid 1, the tie to
 * the host's life. FD is one end of a stream socket:
 *
 *     host -> enter   u32 flags | u32 n | n * struct sock_filter
 *     enter -> host   u32 step | u32 errno       when a step failed
 *                     end of file                PROGRAM runs
 *
 * The image holds this file with mode 0711. A program that its user may not
 * read is not dumpable, so no other process of the same user can write to its
 * memory through /proc in the moment before the filter is on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DIE_WITH_HOST = 1 };
enum step { STEP_SETUP = 1, STEP_DEATH_SIGNAL, STEP_SECCOMP, STEP_EXEC };

static int fd;

static void fail(enum step step)
{
	uint32_t report[2] = { step, errno };
	ssize_t n = write(fd, report, sizeof(report));
	_exit(n == sizeof(report) ? 126 : 127);
}

static void read_all(void *to, size_t size)
{
	for (char *p = to; size > 0;) {
		ssize_t n = read(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? EPIPE : errno;
			fail(STEP_SETUP);
		}
		p += n;
		size -= n;
	}
}

/* The signal comes when the host's thread ends from now on; the socket tells
 * whether it ended before. */
static void die_with_host(void)
{
	struct pollfd host = { .fd = fd };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		fail(STEP_DEATH_SIGNAL);
	if (poll(&host, 1, 0) < 0 || host.revents)
		_exit(127);
}

/* A program starts with the signals as a shell would have them, whatever the
 * host ignores or blocks. */
static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
	static struct sock_filter filter[BPF_MAXINSNS];
	uint32_t head[2];

	if (argc < 3)
		return 125;
	fd = atoi(argv[1]);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		return 125;

	read_all(head, sizeof(head));
	if (head[1] == 0 || head[1] > BPF_MAXINSNS) {
		errno = EINVAL;
		fail(STEP_SETUP);
	}
	read_all(filter, head[1] * sizeof(filter[0]));

	if (head[0] & DIE_WITH_HOST)
		die_with_host();
	reset_signals();

	struct sock_fprog program = { .len = head[1], .filter = filter };
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		fail(STEP_SECCOMP);

	execvp(argv[2], argv + 2);
	fail(STEP_EXEC);
}
