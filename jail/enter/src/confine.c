
/* ---- confinement ----
 *
 * The rights that a process gives up before its program runs. Each function returns a
 * negative number and sets errno if it fails; the entry program and the zygote's child
 * report that in their own ways.
 *
 * User and groups are changed by raw system calls: the C library's functions signal all
 * threads that it knows of, and a zygote's child does not have them. For the same
 * reason everything here confines the calling thread only.
 *
 * Preconditions: the process has one thread; _GNU_SOURCE is defined. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_restrict_self /* headers older than Linux 5.13 */
#define SYS_landlock_restrict_self 446
#endif

enum {
	WAIT_KILLABLE = 1 << 5, /* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: signals do not restart a call */
};

/* Lowers a limit. If the host's own hard limit is lower, that one is kept. */
static long lower_limit(int resource, uint64_t most)
{
	struct rlimit r;

	if (getrlimit(resource, &r))
		return -1;
	if (r.rlim_max > most)
		r.rlim_max = most;
	r.rlim_cur = r.rlim_max;
	return setrlimit(resource, &r);
}

/* Makes an open terminal the session's controlling terminal. */
static long set_terminal(int file) { return ioctl(file, TIOCSCTTY, 0); }

/* Prevents executed programs from gaining capabilities. */
static long empty_bounding_set(void)
{
	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0))
			return -1;
	return 0;
}

/* Sets the real, effective and saved ids and drops all supplementary groups. */
static long set_user(uint32_t uid, uint32_t gid)
{
	if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, gid, gid, gid))
		return -1;
	return syscall(SYS_setresuid, uid, uid, uid);
}

static long drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -1;
	return syscall(SYS_capset, &head, none);
}

/* Resets the signals that the host ignores or blocks. It uses raw system calls because
 * the C library reserves two signals. A zeroed struct is the kernel's default action,
 * and an empty set. */
static long reset_signals(void)
{
	static const unsigned long zero[8];
	const size_t set = _NSIG / 8;

	for (int s = 1; s < _NSIG; s++)
		syscall(SYS_rt_sigaction, s, zero, NULL, set); /* fails for SIGKILL and SIGSTOP */
	return syscall(SYS_rt_sigprocmask, SIG_SETMASK, zero, NULL, set);
}

/* Prevents executed programs from gaining rights that this process does not have. */
static long set_no_new_privs(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

/* Enforces a Landlock ruleset.
 *
 * Precondition: no_new_privs is set, as for load_filter. */
static long restrict_self(int ruleset, uint32_t flags)
{
	return syscall(SYS_landlock_restrict_self, ruleset, flags);
}

/* Loads a system call filter. Returns its listener if with_listener, else 0. */
static long load_filter(struct sock_filter *instructions, uint32_t count, bool with_listener)
{
	struct sock_fprog program = { .len = count, .filter = instructions };
	int flags = with_listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE : 0;
	long n = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	if (n < 0 && errno == EINVAL && with_listener) /* before Linux 5.19 */
		n = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	return n;
}
