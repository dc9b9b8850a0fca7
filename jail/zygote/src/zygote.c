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

/* ---- the child ---- */

static int run; /* its socket */

static void fail(enum step step)
{
	struct failure f = { step, errno };
	ssize_t n = send(run, &f, sizeof(f), MSG_NOSIGNAL);
	_exit(n == sizeof(f) ? 126 : 127);
}

static void must(enum step step, int result)
{
	if (result < 0)
		fail(step);
}

static void bad(enum step step)
{
	errno = EINVAL;
	fail(step);
}

static void read_all(void *to, size_t size)
{
	for (char *p = to; size > 0;) {
		ssize_t n = read(run, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EPIPE;
		if (n <= 0)
			fail(STEP_REQUEST);
		p += n;
		size -= n;
	}
}

static struct {
	struct request r;
	int fds[MOST_FDS];
	struct limit limits[RLIM_NLIMITS];
	struct sock_filter filter[BPF_MAXINSNS];
	char *text, *environment, *directory;
	char **argv, **envp;
} q;

/* Splits text into n strings and returns what follows. */
static char *split(char *text, char **list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (text >= q.text + q.r.text)
			bad(STEP_REQUEST);
		list[i] = text;
		text += strlen(text) + 1;
	}
	return text;
}

static void take_request(void)
{
	ssize_t n = receive(run, &q.r, sizeof(q.r), q.fds);

	must(STEP_REQUEST, n);
	if (n < (ssize_t)sizeof(q.r))
		read_all((char *)&q.r + n, sizeof(q.r) - n);
	struct request *r = &q.r;
	if (r->files < 3 || r->files > GUEST_FDS || r->joins > MOST_FDS - GUEST_FDS || r->limits > RLIM_NLIMITS ||
	    r->instructions > BPF_MAXINSNS || r->text > MOST_TEXT || r->text == 0 || r->argc == 0 ||
	    r->argc > r->text || r->envc > r->text || r->script >= r->argc)
		bad(STEP_REQUEST);
	for (uint32_t i = 0; i < r->files + r->joins; i++)
		if (q.fds[i] < GUEST_FDS)
			bad(STEP_REQUEST);
	read_all(q.limits, r->limits * sizeof(q.limits[0]));
	read_all(q.filter, r->instructions * sizeof(q.filter[0]));
	/* Mapped, not allocated: set_arguments shows it to the kernel. */
	q.text = mmap(NULL, r->text + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q.argv = calloc(r->argc + 1, sizeof(char *));
	q.envp = calloc(r->envc + 1, sizeof(char *));
	if (q.text == MAP_FAILED || !q.argv || !q.envp)
		fail(STEP_REQUEST);
	read_all(q.text, r->text);
	q.environment = split(q.text, q.argv, r->argc);
	q.directory = split(q.environment, q.envp, r->envc);
}

static void join_cgroups(void)
{
	for (uint32_t i = 0; i < q.r.joins; i++)
		must(STEP_CGROUP, write(q.fds[q.r.files + i], "0", 1));
}

/* Has /proc show the run's own arguments and environment, not the zygote's. The
 * kernel takes the layout as a whole; what stays is copied from what it says.
 *
 * Precondition: /proc is the jail's. */
static void set_arguments(void)
{
	enum { START_CODE = 26, END_CODE, START_STACK, START_DATA = 45, END_DATA, START_BRK, FIELDS };
	unsigned long field[FIELDS] = { 0 };
	struct prctl_mm_map map = { .exe_fd = -1 };
	char stat[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, stat, sizeof(stat) - 1);

	must(STEP_ARGUMENTS, n);
	close(fd);
	stat[n] = 0;
	char *p = strrchr(stat, ')'); /* the name, the second field, may have blanks */
	for (int i = 3; p && i < FIELDS; i++)
		if ((p = strchr(p + 1, ' ')))
			field[i] = strtoul(p, NULL, 10);
	map.start_code = field[START_CODE];
	map.end_code = field[END_CODE];
	map.start_stack = field[START_STACK];
	map.start_data = field[START_DATA];
	map.end_data = field[END_DATA];
	map.start_brk = field[START_BRK];
	map.brk = (uintptr_t)sbrk(0);
	map.arg_start = (uintptr_t)q.text;
	map.arg_end = map.env_start = (uintptr_t)q.environment;
	map.env_end = (uintptr_t)q.directory;
	must(STEP_ARGUMENTS, prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0));
}

static void enter_namespaces(int pidfd)
{
	const int all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

	must(STEP_NAMESPACES, setns(pidfd, all));
}

/* A machine short of memory kills guests first. */
static void offer_to_oom_killer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	must(STEP_OOM_SCORE, fd);
	must(STEP_OOM_SCORE, write(fd, "1000", 4));
	close(fd);
}

static int renew(int kind)
{
	switch (kind) {
	case EPOLL:
		return epoll_create1(EPOLL_CLOEXEC);
	case EVENT:
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	default:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

/* Leaves the guest's descriptors, the run's socket and, for JavaScript, new ones in
 * the place of Node's own. */
static void take_descriptors(void)
{
	int top = CONTROL;
	uint32_t n = q.r.files;

	must(STEP_DESCRIPTORS, dup3(run, CONTROL, O_CLOEXEC));
	run = CONTROL;
	for (uint32_t i = 0; i < GUEST_FDS; i++)
		if (i >= n)
			close(i);
		else /* Node, too, lets its children inherit nothing unasked */
			must(STEP_DESCRIPTORS, q.r.script ? dup3(q.fds[i], i, O_CLOEXEC) : dup2(q.fds[i], i));
	if (q.r.script) {
		close_all(q.fds);
		close_all(ordered);
		for (int i = 0; i < owned; i++) {
			top = own[i].fd > top ? own[i].fd : top;
			if (own[i].kind == PIPE)
				continue;
			int fd = renew(own[i].kind);
			must(STEP_DESCRIPTORS, fd);
			must(STEP_DESCRIPTORS, dup3(fd, own[i].fd, O_CLOEXEC));
			close(fd);
		}
	}
	must(STEP_DESCRIPTORS, syscall(SYS_close_range, top + 1, ~0U, 0));
}

/* Limits only fall: where the host's own is lower, that stays. */
static void set_limits(void)
{
	for (uint32_t i = 0; i < q.r.limits; i++) {
		struct rlimit r;
		must(STEP_LIMIT, getrlimit(q.limits[i].resource, &r));
		if (r.rlim_max > q.limits[i].most)
			r.rlim_max = q.limits[i].most;
		r.rlim_cur = r.rlim_max;
		must(STEP_LIMIT, setrlimit(q.limits[i].resource, &r));
	}
}

/* By system calls: the C library would ask all its threads, which are not here. */
static void become_user(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		must(STEP_CAPABILITIES, prctl(PR_CAPBSET_DROP, c, 0, 0, 0));
	must(STEP_USER, syscall(SYS_setgroups, 0, NULL));
	must(STEP_USER, syscall(SYS_setresgid, q.r.gid, q.r.gid, q.r.gid));
	must(STEP_USER, syscall(SYS_setresuid, q.r.uid, q.r.uid, q.r.uid));
	must(STEP_CAPABILITIES, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	must(STEP_CAPABILITIES, syscall(SYS_capset, &head, none));
}

static void put_filter_on(void)
{
	struct sock_fprog program = { .len = q.r.instructions, .filter = q.filter };

	must(STEP_NO_NEW_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(STEP_SECCOMP, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void ignore_signal(int s) { (void)s; }

/* Gives Node's process-wide state to this process. */
static void become_node(napi_env env)
{
	struct uv_loop *loop;
	struct timespec now;
	sigset_t none;

	/* Node without the thread that waits for this signal blocks it, for good. */
	signal(SIGUSR1, ignore_signal);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (napi_get_uv_event_loop(env, &loop) || uv_loop_fork(loop))
		bad(STEP_LOOP);
	environ = q.envp;
	RAND_poll(); /* else children whose pids are alike would share random numbers */
	clock_gettime(CLOCK_MONOTONIC, &now); /* what process.uptime and performance.now count from */
	if (&node_start_time)
		node_start_time = now.tv_sec * 1000000000ULL + now.tv_nsec;
	if (&performance_start)
		performance_start = now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void execute(void)
{
	reset_signals();
	environ = q.envp; /* where execvp finds PATH */
	execvp(q.argv[0], q.argv);
	fail(STEP_EXEC);
}

/* Goes all the way from the zygote into the jail. */
static void enter(napi_env env, int pidfd)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	take_request();
	join_cgroups();
	enter_namespaces(pidfd);
	if (q.r.script)
		set_arguments();
	offer_to_oom_killer();
	take_descriptors();
	must(STEP_SESSION, setsid());
	set_limits();
	become_user();
	must(STEP_DIRECTORY, chdir(q.directory));
	put_filter_on();
	if (!q.r.script)
		execute();
	become_node(env);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	close(run); /* tells the host */
}

/* ---- the addon ---- */

static napi_value throw(napi_env env, const char *text)
{
	napi_throw_error(env, NULL, text);
	return NULL;
}

/* serve(): [pid, program, ...arguments], in a child only. */
static napi_value serve(napi_env env, void *info)
{
	struct order o;
	const char *wrong = list_own();
	napi_value list, item;

	(void)info;
	if (wrong)
		return throw(env, wrong);
	struct answer ready = { .pid = getpid() };
	if (send(CONTROL, &ready, sizeof(ready), MSG_NOSIGNAL) != sizeof(ready))
		return throw(env, "no host");
	do
		if (receive(CONTROL, &o, sizeof(o), ordered) != sizeof(o))
			_exit(0); /* the host closed the socket */
	while ((run = obey(&o)) < 0);

	forked = true;
	enter(env, ordered[1]);
	if (napi_create_array_with_length(env, 1 + q.r.argc - q.r.script, &list) ||
	    napi_create_int32(env, getpid(), &item) || napi_set_element(env, list, 0, item))
		return throw(env, "no memory");
	for (uint32_t i = q.r.script; i < q.r.argc; i++)
		if (napi_create_string_utf8(env, q.argv[i], SIZE_MAX, &item) ||
		    napi_set_element(env, list, 1 + i - q.r.script, item))
			return throw(env, "no memory");
	return list;
}

__attribute__((visibility("default"))) int32_t node_api_module_get_api_version_v1(void) { return 9; }

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value f;

	(void)exports;
	return napi_create_function(env, "serve", SIZE_MAX, serve, NULL, &f) ? NULL : f;
}
