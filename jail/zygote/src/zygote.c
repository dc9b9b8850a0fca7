/*
 * zygote: a warmed-up Node that forks, and what its child does to become a run.
 *
 * One object in two parts. As an LD_PRELOAD library it lets Node be forked. As an
 * N-API addon it has one function, serve(), which waits for requests and returns
 * in the children only.
 *
 *     host -> zygote   struct order, with descriptors:        SOCK_SEQPACKET
 *                      run, pidfd of the jail's pid 1 [, directory of the cgroup]
 *     zygote -> host   struct answer: the child's pid, or which step failed
 *
 *     host -> child    struct request, with descriptors:      SOCK_STREAM, "run"
 *                      0, 1, 2 ... of the guest, then files to join cgroups by;
 *                      limits | filter | text
 *     child -> host    struct failure                         when a step failed
 *                      end of file                            the guest's code runs
 *
 * text is argc + envc + 1 strings, each with its NUL: arguments, variables,
 * working directory. With script = k > 0 the child returns to JavaScript, where
 * arguments from the k-th on are the program's; otherwise it executes the first.
 *
 * The child is the host's own, not the zygote's (CLONE_PARENT): the host waits for
 * it, also when the zygote is gone. It belongs to the jail's pid namespace from
 * the start; the other namespaces it enters by one setns. Until the filter is on
 * it is not dumpable, so that no process of the guest's user can trace it or write
 * to its memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum step {
	STEP_REQUEST = 1, STEP_PID_NAMESPACE, STEP_CLONE, STEP_CGROUP, STEP_ARGUMENTS, STEP_NAMESPACES,
	STEP_OOM_SCORE, STEP_DESCRIPTORS, STEP_SESSION, STEP_LIMIT, STEP_USER, STEP_CAPABILITIES,
	STEP_DIRECTORY, STEP_NO_NEW_PRIVS, STEP_SECCOMP, STEP_LOOP, STEP_EXEC,
};

enum {
	GUEST_FDS = 5,  /* the zygote keeps so many free for the guest's, */
	CONTROL = 5,    /* has its socket here, and Node's own above */
	MOST_FDS = 32,  /* of one message */
	MOST_TEXT = 8 << 20,
	CGROUP = 1,     /* order.flags: the third descriptor is a cgroup to be born in */
};

struct order { uint32_t serial, flags; };
struct answer { uint32_t serial; int32_t pid; uint32_t step, error; };
struct failure { uint32_t step, error; };
struct limit { uint32_t resource, unused; uint64_t most; };
struct request {
	uint32_t script, files, joins, limits, instructions, argc, envc, text, uid, gid;
};

/* ---- Node's side, declared here since an image has no headers ---- */

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef napi_value (*napi_callback)(napi_env, void *);
struct uv_loop;
int napi_create_function(napi_env, const char *, size_t, napi_callback, void *, napi_value *);
int napi_create_array_with_length(napi_env, size_t, napi_value *);
int napi_create_int32(napi_env, int32_t, napi_value *);
int napi_create_string_utf8(napi_env, const char *, size_t, napi_value *);
int napi_set_element(napi_env, napi_value, uint32_t, napi_value);
int napi_throw_error(napi_env, const char *, const char *);
int napi_get_uv_event_loop(napi_env, struct uv_loop **);
int uv_loop_fork(struct uv_loop *);
int RAND_poll(void); /* OpenSSL's */
extern uint64_t _ZN4node11per_process15node_start_timeE __attribute__((weak));
#define node_start_time _ZN4node11per_process15node_start_timeE
extern uint64_t _ZN4node11performance25performance_process_startE __attribute__((weak));
#define performance_start _ZN4node11performance25performance_process_startE

/* ---- the preloaded library ---- */

enum { MOST_KNOWN = 64 };

static bool forked; /* this is a child */

/* What Node's other threads hold. A child doesn't have them: it must neither wait for
 * them nor end what they use. */
static struct { const void *list[MOST_KNOWN]; int n; } threads, waited;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static struct { void (*prepare)(void), (*parent)(void), (*child)(void); } at_fork[MOST_KNOWN];
static int at_forks;

#define REAL(name, version) \
	static __typeof__(name) *real; \
	if (!real && !(real = dlvsym(RTLD_NEXT, #name, version))) \
		real = dlsym(RTLD_NEXT, #name)

static bool is_known(const void *list[], int n, const void *p)
{
	for (int i = 0; i < n; i++)
		if (list[i] == p)
			return true;
	return false;
}

static void know(const void *list[], int *n, const void *p)
{
	pthread_mutex_lock(&known_lock);
	if (!is_known(list, *n, p)) {
		if (*n == MOST_KNOWN)
			abort(); /* no Node that we know comes near */
		list[(*n)++] = p;
	}
	pthread_mutex_unlock(&known_lock);
}

/* V8 keeps its heap from being forked. */
int madvise(void *start, size_t size, int advice)
{
	return advice == MADV_DONTFORK ? 0 : syscall(SYS_madvise, start, size, advice);
}

/* libuv hands changes of its epoll to io_uring, where there is one. A child could not
 * go on with it: it would share it, and the filter denies it. */
long syscall(long number, ...)
{
	REAL(syscall, "GLIBC_2.2.5");
	va_list list;
	long arg[6];

	if (number == SYS_io_uring_setup) {
		errno = ENOSYS;
		return -1;
	}
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	return real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	REAL(pthread_create, "GLIBC_2.34");
	int failed = real(t, attr, run, arg);
	if (!failed && !forked)
		know(threads.list, &threads.n, (void *)*t);
	return failed;
}

int pthread_join(pthread_t t, void **result)
{
	REAL(pthread_join, "GLIBC_2.34");
	return forked && is_known(threads.list, threads.n, (void *)t) ? 0 : real(t, result);
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	REAL(pthread_cond_wait, "GLIBC_2.3.2");
	if (!forked) {
		know(waited.list, &waited.n, c);
		know(waited.list, &waited.n, m);
	}
	return real(c, m);
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	REAL(pthread_cond_timedwait, "GLIBC_2.3.2");
	if (!forked) {
		know(waited.list, &waited.n, c);
		know(waited.list, &waited.n, m);
	}
	return real(c, m, t);
}

/* True once: the address may be another object's later. */
static bool forget(const void *p)
{
	for (int i = 0; forked && i < waited.n; i++)
		if (waited.list[i] == p) {
			waited.list[i] = NULL;
			return true;
		}
	return false;
}

int pthread_cond_destroy(pthread_cond_t *c)
{
	REAL(pthread_cond_destroy, "GLIBC_2.3.2");
	return forget(c) ? 0 : real(c);
}

int pthread_mutex_destroy(pthread_mutex_t *m)
{
	REAL(pthread_mutex_destroy, "GLIBC_2.2.5");
	return forget(m) ? 0 : real(m);
}

/* glibc's fork calls these, and clone3 does not. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
{
	REAL(__register_atfork, "GLIBC_2.3.2");
	if (at_forks < MOST_KNOWN) {
		at_fork[at_forks].prepare = prepare;
		at_fork[at_forks].parent = parent;
		at_fork[at_forks++].child = child;
	}
	return real(prepare, parent, child, object);
}

/* By system calls: the C library keeps two signals to itself. All zero is the
 * kernel's default action, and an empty set. */
static void reset_signals(void)
{
	static const unsigned long zero[8];

	for (int s = 1; s < _NSIG; s++)
		syscall(SYS_rt_sigaction, s, zero, NULL, _NSIG / 8);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, zero, NULL, _NSIG / 8);
}

/* Runs before Node does. */
__attribute__((constructor)) static void begin(void)
{
	syscall(SYS_close_range, CONTROL + 1, ~0U, 0); /* whatever the host leaves open */
	unsetenv("LD_PRELOAD"); /* it is not for the children of runs */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	reset_signals();
	umask(022);
	syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL); /* not the host's */
}

/* ---- the zygote ---- */

/* Descriptors that Node itself has open. A child makes its own: through a shared epoll
 * or eventfd it could disturb the zygote. */
static struct { int fd, kind; } own[MOST_KNOWN];
static int owned;
enum { EPOLL, EVENT, PIPE, NULL_FILE };

static int ordered[MOST_FDS]; /* the descriptors of the last order */

static int kind_of(int fd)
{
	struct stat s;

	if (fstat(fd, &s))
		return -1;
	if (S_ISFIFO(s.st_mode))
		return PIPE; /* libuv's for signals, which it makes anew in a child */
	if (S_ISDIR(s.st_mode))
		return NULL_FILE; /* libuv's spare: here, where there is no /dev/null, it is "/" */
	if (s.st_mode & S_IFMT)
		return -1;
	if (epoll_ctl(fd, EPOLL_CTL_DEL, CONTROL, NULL) < 0 && errno == ENOENT)
		return EPOLL;
	return EVENT;
}

static const char *list_own(void)
{
	for (int fd = CONTROL + 1; fd < 256; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		int kind = kind_of(fd);
		if (kind < 0)
			return "a descriptor of an unknown kind is open";
		if (owned == MOST_KNOWN)
			return "too many descriptors are open";
		own[owned].fd = fd;
		own[owned++].kind = kind;
	}
	return NULL;
}

/* Reads a message's data and descriptors. The rest of fds is -1. */
static ssize_t receive(int from, void *data, size_t size, int fds[MOST_FDS])
{
	union { struct cmsghdr head; char space[CMSG_SPACE(MOST_FDS * sizeof(int))]; } control;
	struct iovec v = { data, size };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	for (int i = 0; i < MOST_FDS; i++)
		fds[i] = -1;
	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return n;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n;
}

/* As fork, but in the cgroup, if there is one, and as a child of the host. */
static pid_t fork_into(int cgroup)
{
	struct clone_args a = { .flags = CLONE_PARENT };
	int *tid = NULL;

	/* The C library keeps its thread's id where the kernel clears it at the end. */
	if (prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) || !tid) {
		errno = ENOSYS;
		return -1;
	}
	a.child_tid = (uintptr_t)tid;
	a.flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	if (cgroup >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = cgroup;
	}
	for (int i = at_forks; i-- > 0;)
		if (at_fork[i].prepare)
			at_fork[i].prepare();
	pid_t pid = syscall(SYS_clone3, &a, sizeof(a));
	int saved = errno;
	for (int i = 0; i < at_forks; i++)
		if (pid == 0 ? at_fork[i].child : at_fork[i].parent)
			(pid == 0 ? at_fork[i].child : at_fork[i].parent)();
	errno = saved;
	return pid;
}

static void close_all(const int fds[MOST_FDS])
{
	for (int i = 0; i < MOST_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Takes one order. Returns the run's socket in a child, -1 in the zygote. */
static int obey(const struct order *o)
{
	int *fds = ordered;
	struct answer a = { .serial = o->serial };

	if (setns(fds[1], CLONE_NEWPID)) { /* for children alone */
		a.step = STEP_PID_NAMESPACE;
	} else {
		a.pid = fork_into(o->flags & CGROUP ? fds[2] : -1);
		if (a.pid == 0)
			return fds[0];
		if (a.pid < 0)
			a.step = STEP_CLONE;
	}
	if (a.step)
		a.error = errno;
	close_all(fds);
	if (send(CONTROL, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
		_exit(0); /* the host is gone */
	return -1;
}

