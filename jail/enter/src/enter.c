/*
 * enter: the last step of a process into the jail.
 *
 *     enter FD DIR PROGRAM [ARG...]
 *
 * By then namespaces, ids, capabilities, no_new_privs and the cgroup are in
 * place. What is left must be done by the process itself, right before its
 * program: its working directory, resource limits, signals, the system call filter and, for the jail's
 * pid 1, the tie to the host's life. FD is one end of a stream socket:
 *
 *     host -> enter   u32 flags | u32 m | m * struct limit
 *                               | u32 n | n * struct sock_filter
 *     enter -> host   u32 step | u32 errno       when a step failed, or
 *                     0        | 0               all is set; then
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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DIE_WITH_HOST = 1 };
enum step { STEP_SETUP = 1, STEP_DEATH_SIGNAL, STEP_SECCOMP, STEP_EXEC, STEP_LIMIT, STEP_CHDIR };

struct limit {
	uint32_t resource;
	uint32_t unused;
	uint64_t most;
};

static int fd;

static void report(uint32_t step, uint32_t err)
{
	uint32_t words[2] = { step, err };

	if (write(fd, words, sizeof(words)) != sizeof(words))
		_exit(127);
}

static void fail(enum step step)
{
	report(step, errno);
	_exit(126);
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

/* Limits only fall: where the host's own is lower, that stays. */
static void set_limit(const struct limit *l)
{
	struct rlimit r;

	if (getrlimit(l->resource, &r))
		fail(STEP_LIMIT);
	if (r.rlim_max > l->most)
		r.rlim_max = l->most;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(l->resource, &r))
		fail(STEP_LIMIT);
}

static uint32_t read_count(uint32_t most)
{
	uint32_t n;

	read_all(&n, sizeof(n));
	if (n > most) {
		errno = EINVAL;
		fail(STEP_SETUP);
	}
	return n;
}

/* A program starts with the signals as a shell would have them, whatever the
 * host ignores or blocks. By system calls: the C library keeps two signals to
 * itself. All zero is the kernel's default action, and an empty set. */
static void reset_signals(void)
{
	static const unsigned long zero[8];
	const size_t set = _NSIG / 8;

	for (int s = 1; s < _NSIG; s++)
		syscall(SYS_rt_sigaction, s, zero, NULL, set);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, zero, NULL, set);
}

int main(int argc, char **argv)
{
	static struct sock_filter filter[BPF_MAXINSNS];
	struct limit limits[RLIM_NLIMITS];
	uint32_t flags, count;

	if (argc < 4)
		return 125;
	fd = atoi(argv[1]);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		return 125;

	if (chdir(argv[2]))
		fail(STEP_CHDIR);
	read_all(&flags, sizeof(flags));
	count = read_count(RLIM_NLIMITS);
	read_all(limits, count * sizeof(limits[0]));
	for (uint32_t i = 0; i < count; i++)
		set_limit(&limits[i]);
	count = read_count(BPF_MAXINSNS);
	read_all(filter, count * sizeof(filter[0]));

	if (flags & DIE_WITH_HOST)
		die_with_host();
	reset_signals();

	struct sock_fprog program = { .len = count, .filter = filter };
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		fail(STEP_SECCOMP);

	report(0, 0);
	execvp(argv[3], argv + 3);
	fail(STEP_EXEC);
}
