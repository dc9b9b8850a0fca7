
/* ---- the preloaded library ---- */

enum { MOST_KNOWN = 64 };

static bool forked; /* this is a child */
static bool filtered; /* and a thread that it makes now is under its filter */

/* Node's helper threads, which a child does not have. They sleep when the zygote forks;
 * what they wait by, and where, is noted for the child to wake one there. */
static struct sleeper {
	pthread_t thread;
	pthread_cond_t *wake; /* NULL: it does not sleep */
	bool called;          /* to wake as soon as it can */
	pthread_mutex_t *lock;
	void *place[5]; /* see pthread_cond_wait */
	void *tls;
	int *tid;             /* the C library's, cleared at its end for who joins it */
	char stack[4096] __attribute__((aligned(16))); /* until it is back on its own */
} sleepers[MOST_KNOWN];
static int sleeper_count;
static __thread struct sleeper *self;
static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_t absent[MOST_KNOWN]; /* threads of the zygote that a child lacks */
static int absent_count;

static struct { void (*prepare)(void), (*parent)(void), (*child)(void); } at_fork[MOST_KNOWN];
static int at_forks;

#define REAL(name, version) \
	static __typeof__(name) *real; \
	if (!real && !(real = dlvsym(RTLD_NEXT, #name, version))) \
		real = dlsym(RTLD_NEXT, #name)

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
	if (!failed && !forked) {
		if (absent_count == MOST_KNOWN)
			abort(); /* no Node that we know comes near */
		absent[absent_count++] = *t;
	}
	return failed;
}

static int find_absent(pthread_t t)
{
	int i = forked ? absent_count - 1 : -1;
	while (i >= 0 && absent[i] != t)
		i--;
	return i;
}

int pthread_join(pthread_t t, void **result)
{
	REAL(pthread_join, "GLIBC_2.34");
	return find_absent(t) >= 0 ? 0 : real(t, result);
}

static struct sleeper *new_sleeper(void)
{
	pthread_mutex_lock(&sleepers_lock);
	if (sleeper_count == MOST_KNOWN)
		abort();
	struct sleeper *s = &sleepers[sleeper_count++];
	pthread_mutex_unlock(&sleepers_lock);
	s->thread = pthread_self();
	s->tls = __builtin_thread_pointer();
	prctl(PR_GET_TID_ADDRESS, &s->tid, 0, 0, 0);
	return s;
}

static bool wake_called(void);

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	REAL(pthread_cond_wait, "GLIBC_2.3.2");
	if (forked && wake_called())
		return real(c, m);
	if (forked) { /* for a helper, it may be. A wait may end for nothing */
		pthread_mutex_unlock(m);
		usleep(10000);
		return pthread_mutex_lock(m);
	}
	if (!self)
		self = new_sleeper();
	self->lock = m;
	/* The C library's longjmp would clean up the wait, which this child has forgotten. */
	if (__builtin_setjmp(self->place))
		return pthread_mutex_lock(m);
	__atomic_store_n(&self->wake, c, __ATOMIC_RELEASE);
	int failed = real(c, m);
	__atomic_store_n(&self->wake, NULL, __ATOMIC_RELEASE);
	return failed;
}

/* Waits for the helpers to have nothing to do. */
static bool all_asleep(void)
{
	for (int ms = 0; ms < 5000; ms++) {
		bool awake = false;
		for (int i = 0; i < sleeper_count; i++)
			if (&sleepers[i] != self && !__atomic_load_n(&sleepers[i].wake, __ATOMIC_ACQUIRE))
				awake = true;
		if (!awake)
			return true;
		usleep(1000);
	}
	return false;
}

static int go_on(void *sleeper)
{
	__builtin_longjmp(((struct sleeper *)sleeper)->place, 1);
}

/* Makes the thread again that was s, as the C library would. False: there is no room for
 * one more. */
static bool revive(struct sleeper *s)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	int i = find_absent(s->thread);

	if (clone(go_on, s->stack + sizeof(s->stack), flags, s, s->tid, s->tls, s->tid) < 0)
		return false;
	if (i >= 0)
		absent[i] = 0;
	return true;
}

/* V8 calls helpers when it likes, as to collect garbage, and does their work itself where
 * they do not come: none wakes before the filter is on, which holds no thread older. One
 * that there is no room for is called again with each signal and each wait: false. */
static bool wake_called(void)
{
	bool came = true;

	if (!filtered)
		return true;
	pthread_mutex_lock(&sleepers_lock);
	for (int i = 0; i < sleeper_count; i++) {
		struct sleeper *s = &sleepers[i];
		s->called = s->called && !revive(s);
		came = came && !s->called;
	}
	pthread_mutex_unlock(&sleepers_lock);
	return came;
}

/* In a child, wakes what slept in the zygote: one, or all. A small run wakes none. */
static void wake(pthread_cond_t *c, bool all)
{
	if (!forked)
		return;
	pthread_mutex_lock(&sleepers_lock);
	for (int i = 0; i < sleeper_count; i++) {
		struct sleeper *s = &sleepers[i];
		if (s->wake != c)
			continue;
		s->wake = NULL;
		s->called = true;
		if (!all)
			break;
	}
	pthread_mutex_unlock(&sleepers_lock);
	wake_called();
}

int pthread_cond_signal(pthread_cond_t *c)
{
	REAL(pthread_cond_signal, "GLIBC_2.3.2");
	wake(c, false);
	return real(c);
}

int pthread_cond_broadcast(pthread_cond_t *c)
{
	REAL(pthread_cond_broadcast, "GLIBC_2.3.2");
	wake(c, true);
	return real(c);
}

/* The kernel's waiters are not here: nobody is to count them as waiting. */
static void forget_waiters(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* as libuv has it */
	for (int i = 0; i < sleeper_count; i++)
		if (sleepers[i].wake) {
			pthread_cond_init(sleepers[i].wake, &attr);
			pthread_mutex_init(sleepers[i].lock, NULL);
		}
}

/* What Node takes down at its end goes with the process anyway. A child leaves it, and
 * calls what was registered after the fork, by addons of the guest's, alone. */
int __cxa_atexit(void (*f)(void *), void *arg, void *object)
{
	REAL(__cxa_atexit, "GLIBC_2.2.5");
	return forked ? real(f, arg, object) : 0;
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

/* Runs before Node does. */
__attribute__((constructor)) static void begin(void)
{
	syscall(SYS_close_range, CONTROL + 1, ~0U, 0); /* whatever the host leaves open */
	unsetenv("LD_PRELOAD"); /* they are not for the children of runs */
	unsetenv("LD_BIND_NOW");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	reset_signals();
	umask(022);
	syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL); /* not the host's */
}

/* ---- the zygote ---- */

/* Descriptors that Node itself has open. A child makes its own: through a shared epoll
 * or eventfd it could disturb the zygote, and what libuv reads from a pipe of signals
 * are addresses, which it calls. */
static struct { int fd, kind; ino_t inode; } own[MOST_KNOWN];
static int owned;
enum { EPOLL, EVENT, PIPE, NULL_FILE };

static pid_t zygote; /* its pid, as it sees it */
static int ordered[MOST_FDS]; /* the descriptors of the last order */

static int kind_of(int fd, const struct stat *s)
{
	if (S_ISFIFO(s->st_mode))
		return PIPE; /* libuv's for signals: one lock, and one for each loop */
	if (S_ISDIR(s->st_mode))
		return NULL_FILE; /* libuv's spare: here, where there is no /dev/null, it is "/" */
	if (s->st_mode & S_IFMT)
		return -1;
	if (epoll_ctl(fd, EPOLL_CTL_DEL, CONTROL, NULL) < 0 && errno == ENOENT)
		return EPOLL;
	return EVENT;
}

static const char *list_own(void)
{
	for (int fd = CONTROL + 1; fd < 256; fd++) {
		struct stat s;
		if (fstat(fd, &s))
			continue;
		int kind = kind_of(fd, &s);
		if (kind < 0)
			return "a descriptor of an unknown kind is open";
		if (owned == MOST_KNOWN)
			return "too many descriptors are open";
		own[owned].fd = fd;
		own[owned].inode = s.st_ino;
		own[owned++].kind = kind;
	}
	return NULL;
}

/* Puts Node's code into huge pages, which a child finds mapped: it faults file pages in
 * anew, two hundred times in a small run. Kernels before 6.1 can't, and need not. */
static int enlarge_code(struct dl_phdr_info *program, __attribute__((unused)) size_t size_of_info, __attribute__((unused)) void *data)
{
	enum { HUGE = 2 << 20, COLLAPSE = 25 /* MADV_COLLAPSE */ };

	for (int i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &program->dlpi_phdr[i];
		uintptr_t from = program->dlpi_addr + p->p_vaddr, to = from + p->p_filesz;
		from = (from + HUGE - 1) & -(uintptr_t)HUGE;
		to &= -(uintptr_t)HUGE;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || from >= to)
			continue;
		size_t size = to - from;
		char *room = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (room == MAP_FAILED)
			break;
		char *copy = (char *)(((uintptr_t)room + HUGE - 1) & -(uintptr_t)HUGE);
		memcpy(copy, (void *)from, size);
		if (!madvise(copy, size, COLLAPSE) && !mprotect(copy, size, PROT_READ | PROT_EXEC))
			mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, from);
		munmap(room, size + HUGE);
	}
	return 1; /* the first is the program; its libraries have less code than a huge page */
}

/* The C library sorts what was freed when it next looks for room, which a child would
 * pay for with a copy of each page. */
static void sort_free_memory(void)
{
	malloc_trim(0);
	void *volatile room = malloc(64 << 10); /* smaller than what is mapped by itself */
	free(room);
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

