
/* ---- the preloaded library: what else Node must not do ---- */

static struct { void (*prepare)(void), (*parent)(void), (*child)(void); } at_fork[MOST_KNOWN];
static int at_forks;

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

