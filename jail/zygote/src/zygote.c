
/* ---- preloaded library: other functions of Node that prevent forking ---- */

static struct { void (*prepare)(void), (*parent)(void), (*child)(void); } at_fork[MAX_KNOWN];
static int at_forks;

/* V8 excludes its heap from forks by MADV_DONTFORK. */
int madvise(void *start, size_t size, int advice)
{
	return advice == MADV_DONTFORK ? 0 : syscall(SYS_madvise, start, size, advice);
}

/* V8 asks for each page of its heap at a random address. The kernel instead puts them next to each other,
 * so that a child needs fewer page tables and mappings. Children of one zygote have the same
 * addresses anyway. Code, and large areas for code, stay where V8 needs them, and so do small areas, which
 * are an addon's. */
void *mmap64(void *hint, size_t size, int prot, int flags, int fd, off_t offset)
{
	enum { PAGE_OF_V8 = 256 << 10, WITH_ALIGNMENT = 2 * PAGE_OF_V8 };

	if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && flags & MAP_ANONYMOUS && !(prot & PROT_EXEC) && size >= PAGE_OF_V8 && size <= WITH_ALIGNMENT)
		hint = NULL;
	return (void *)syscall(SYS_mmap, hint, size, prot, flags, fd, offset);
}

/* libuv uses io_uring to change its epoll if it can. A child can't use it: it would share
 * it with the zygote, and the filter denies it. */
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

/* A child calls only exit handlers that were registered after the fork, by addons of the
 * guest. Node's own only free what ends with the process anyway. */
int __cxa_atexit(void (*f)(void *), void *arg, void *object)
{
	REAL(__cxa_atexit, "GLIBC_2.2.5");
	return forked ? real(f, arg, object) : 0;
}

/* fork in the C library calls these handlers, but clone3 does not. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
{
	REAL(__register_atfork, "GLIBC_2.3.2");
	if (at_forks < MAX_KNOWN) {
		at_fork[at_forks].prepare = prepare;
		at_fork[at_forks].parent = parent;
		at_fork[at_forks++].child = child;
	}
	return real(prepare, parent, child, object);
}

/* Runs before Node. */
__attribute__((constructor)) static void init_library(void)
{
	syscall(SYS_close_range, CONTROL + 1, ~0U, 0); /* descriptors that the host left open */
	unsetenv("LD_PRELOAD"); /* not for child processes of runs */
	unsetenv("LD_BIND_NOW");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	reset_signals();
	umask(022);
	syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL); /* instead of the host's */
}

/* ---- the zygote ---- */

/* Descriptors of Node itself. A child replaces them: through a shared epoll or eventfd it
 * could disturb the zygote, and libuv calls addresses that it reads from its pipe for
 * signals. */
static struct { int fd, kind; ino_t inode; } node_fds[MAX_KNOWN];
static int node_fd_count;
enum { EPOLL, EVENT, PIPE, NULL_FILE };

static pid_t zygote; /* its pid in its own pid namespace */
static int order_fds[MAX_FDS]; /* descriptors of the last order */

static const uintptr_t PAGE = 4096, HUGE_PAGE = 2 << 20;
enum { COLLAPSE = 25 /* MADV_COLLAPSE */ };

static int kind_of(int fd, const struct stat *s)
{
	if (S_ISFIFO(s->st_mode))
		return PIPE; /* libuv's for signals: a lock, and one for each loop */
	if (S_ISDIR(s->st_mode))
		return NULL_FILE; /* libuv's spare descriptor: "/", as there is no /dev/null here */
	if (s->st_mode & S_IFMT)
		return -1;
	if (epoll_ctl(fd, EPOLL_CTL_DEL, CONTROL, NULL) < 0 && errno == ENOENT)
		return EPOLL;
	return EVENT;
}

static const char *find_node_fds(void)
{
	for (int fd = CONTROL + 1; fd < 256; fd++) {
		struct stat s;
		if (fstat(fd, &s))
			continue;
		int kind = kind_of(fd, &s);
		if (kind < 0)
			return "a descriptor of an unknown kind is open";
		if (node_fd_count == MAX_KNOWN)
			return "too many descriptors are open";
		node_fds[node_fd_count].fd = fd;
		node_fds[node_fd_count].inode = s.st_ino;
		node_fds[node_fd_count++].kind = kind;
	}
	return NULL;
}

/* Makes the C library sort its free memory now. Otherwise it would do so in each child, which
 * would copy the pages. */
static void sort_free_memory(void)
{
	malloc_trim(0);
	void *volatile room = malloc(64 << 10); /* smaller than the threshold for mmap */
	free(room);
}

/* Memory that is moved to huge pages. */
static struct area { char *from; size_t size; } areas[512];
static int area_count;
static size_t all_areas; /* bytes */

/* Adds memory, except for what the C library and the kernel write to at any time: the main thread's
 * own variables. They may be in the middle of V8's heap. */
static void add_area(uintptr_t from, uintptr_t to)
{
	const uintptr_t own = (uintptr_t)__builtin_thread_pointer(), room = 64 << 10;

	if (from <= own && own < to)
		to = (own - room) & -PAGE;
	if (from >= to || to - from < 8 * PAGE || area_count == sizeof(areas) / sizeof(*areas))
		return;
	areas[area_count++] = (struct area){ (char *)from, to - from };
	all_areas += to - from;
}

/* Finds writable private memory, such as V8's heap, the C library's, and Node's variables, of which most is in use.
 * Memory with flags that would be lost is left out, such as that which is zero in children. */
static void find_areas(FILE *smaps)
{
	unsigned long begin, end, from = 0, to = 0, resident;
	char line[512], rights[5], name[256];
	bool fits = false;

	while (fgets(line, sizeof(line), smaps)) {
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255s", &begin, &end, rights, name) >= 3) {
			from = begin;
			to = end;
			fits = !strcmp(rights, "rw-p") && (!name[0] || !strcmp(name, "[heap]") || strstr(name, "/node"));
		} else if (sscanf(line, "Rss: %lu kB", &resident) == 1)
			fits = fits && resident * 1024 > (to - from) / 2; /* how much varies from start to start */
		else if (fits && !strncmp(line, "VmFlags:", 8) && !strstr(line, " wf") && !strstr(line, " lo") && !strstr(line, " dc") && !strstr(line, " dd"))
			add_area(from, to);
	}
}

/* Moves an area to the memory at copy, and this to the area's address. A thread that writes in between
 * ends the process, which is then replaced: its write would be lost. */
static void move_area(const struct area *a, char *copy)
{
	if (mprotect(a->from, a->size, PROT_READ))
		_exit(1);
	memcpy(copy, a->from, a->size);
	if (mremap(copy, a->size, a->size, MREMAP_MAYMOVE | MREMAP_FIXED, a->from) == MAP_FAILED)
		_exit(1);
}

/* Moves memory that children copy to huge pages, and these back to its addresses in parts: the kernel
 * copies and frees page tables of a huge page at once. It has no effect on kernels before
 * 6.1. smaps is this process's list of mappings. */
static void enlarge_data(int smaps)
{
	FILE *list = fdopen(smaps, "re");

	if (!list)
		return;
	if (sysconf(_SC_PAGESIZE) == (long)PAGE && all_asleep())
		find_areas(list);
	fclose(list);
	sort_free_memory();
	const size_t size = (all_areas + HUGE_PAGE - 1) & -HUGE_PAGE;
	char *room = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || !size)
		return;
	char *copy = (char *)(((uintptr_t)room + HUGE_PAGE - 1) & -HUGE_PAGE);
	if (!madvise(copy, size, MADV_POPULATE_WRITE) && !madvise(copy, size, COLLAPSE))
		for (int i = 0; i < area_count; copy += areas[i++].size)
			move_area(&areas[i], copy);
	munmap(room, size + HUGE_PAGE);
}

/* Copies Node's code to huge pages, which are mapped in a child. Pages of the file would
 * have to be mapped again, with two hundred page faults in a small run. It has no effect on
 * kernels before 6.1. */
static int enlarge_code(struct dl_phdr_info *program, __attribute__((unused)) size_t size_of_info, __attribute__((unused)) void *data)
{
	for (int i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &program->dlpi_phdr[i];
		uintptr_t from = program->dlpi_addr + p->p_vaddr, to = from + p->p_filesz;
		from = (from + HUGE_PAGE - 1) & -HUGE_PAGE;
		to &= -HUGE_PAGE;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || from >= to)
			continue;
		size_t size = to - from;
		char *room = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (room == MAP_FAILED)
			break;
		char *copy = (char *)(((uintptr_t)room + HUGE_PAGE - 1) & -HUGE_PAGE);
		memcpy(copy, (void *)from, size);
		if (!madvise(copy, size, COLLAPSE) && !mprotect(copy, size, PROT_READ | PROT_EXEC))
			mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, from);
		munmap(room, size + HUGE_PAGE);
	}
	return 1; /* stop after the program: its libraries have less code than a huge page */
}

/* Receives data and descriptors. Unused elements of fds are set to -1. */
static ssize_t receive(int from, void *data, size_t size, int fds[MAX_FDS])
{
	union { struct cmsghdr head; char space[CMSG_SPACE(MAX_FDS * sizeof(int))]; } control;
	struct iovec v = { data, size };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	for (int i = 0; i < MAX_FDS; i++)
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

/* As fork, but as a child of the host and, unless cgroup is negative, in that cgroup. */
static pid_t fork_into(int cgroup)
{
	struct clone_args a = { .flags = CLONE_PARENT };
	int *tid = tid_address();

	if (!tid) {
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

static void close_all(const int fds[MAX_FDS])
{
	for (int i = 0; i < MAX_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Executes an order. Returns the run's socket in a child and -1 in the zygote. */
static int execute_order(const struct order *o)
{
	int *fds = order_fds;
	struct reply a = { .serial = o->serial };

	if (o->flags & ENLARGE) {
		enlarge_data(dup(fds[0]));
	} else if (setns(fds[1], CLONE_NEWPID)) { /* applies to children only */
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

