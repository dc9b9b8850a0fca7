
/* ---- child: entering the jail ---- */

static void join_cgroups(void)
{
	for (uint32_t i = 0; i < q.r.joins; i++)
		must(STEP_CGROUP, write(q.joins[i], "0", 1));
}

/* Makes /proc show the run's arguments and environment instead of the zygote's. The kernel
 * needs all fields of the memory layout; the others are read from /proc.
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
	char *p = strrchr(stat, ')'); /* the second field, the name, may contain blanks */
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
	/* A kernel without it shows the zygote's arguments. */
	unsigned size;
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) && !prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0))
		fail(STEP_ARGUMENTS);
}

static void enter_namespaces(int pidfd)
{
	const int all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

	must(STEP_NAMESPACES, unshare(CLONE_NEWCGROUP)); /* begins at the run's cgroup */
	must(STEP_NAMESPACES, setns(pidfd, all));
}

/* libuv renews the lock's pipe itself after a fork, and the main loop's in uv_loop_fork. It
 * does not renew those of loops of other threads. */
static bool is_renewed(int i)
{
	struct stat s;

	return node_fds[i].kind == PIPE && (fstat(node_fds[i].fd, &s) || s.st_ino != node_fds[i].inode);
}

static int renew(int kind)
{
	switch (kind) {
	case EPOLL:
		return epoll_create1(EPOLL_CLOEXEC);
	case NULL_FILE:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	default: /* for an end of a pipe, too: epoll must accept it */
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
}

/* Closes the zygote's descriptors except 0, 1, 2 ..., which the guest's replace, and the
 * run's socket, and replaces Node's own by new ones. */
static void renew_descriptors(void)
{
	int top = CONTROL;

	must(STEP_DESCRIPTORS, dup3(run, CONTROL, O_CLOEXEC));
	run = CONTROL;
	close_all(q.joins);
	close_all(order_fds);
	for (int i = 0; i < node_fd_count; i++) {
		top = node_fds[i].fd > top ? node_fds[i].fd : top;
		if (is_renewed(i))
			continue;
		int fd = renew(node_fds[i].kind);
		must(STEP_DESCRIPTORS, fd);
		must(STEP_DESCRIPTORS, dup3(fd, node_fds[i].fd, O_CLOEXEC));
		close(fd);
	}
	if (q.ruleset >= 0) { /* kept until there is a program */
		if (q.ruleset != ++top)
			must(STEP_DESCRIPTORS, dup3(q.ruleset, top, O_CLOEXEC));
		q.ruleset = top;
	}
	must(STEP_DESCRIPTORS, syscall(SYS_close_range, top + 1, ~0U, 0));
}

static int sink = -1; /* receives the output of a rehearsal */

static void open_sink(void)
{
	int ends[2];

	must(STEP_DESCRIPTORS, pipe2(ends, O_CLOEXEC));
	must(STEP_DESCRIPTORS, dup3(ends[1], 1, O_CLOEXEC));
	must(STEP_DESCRIPTORS, dup3(ends[1], 2, O_CLOEXEC));
	close(ends[1]);
	sink = ends[0];
}

static void install_files(void)
{
	for (uint32_t i = 0; i < GUEST_FDS; i++)
		if (i >= q.p.files)
			close(i);
		else /* Node sets close-on-exec, too */
			must(STEP_DESCRIPTORS, q.p.script ? dup3(q.files[i], i, O_CLOEXEC) : dup2(q.files[i], i));
	close_all(q.files);
	if (sink >= 0)
		close(sink);
}

static void lower_limits(void)
{
	for (uint32_t i = 0; i < q.r.limits; i++)
		must(STEP_LIMIT, lower_limit(q.limits[i].resource, q.limits[i].most));
}

static void enforce_ruleset(void)
{
	if (q.ruleset < 0)
		return;
	must(STEP_LANDLOCK, restrict_self(q.ruleset, q.r.ruleset_flags));
	close(q.ruleset);
}

/* Loads the filter. Returns its listener, or -1 if it has none. */
static int enforce_filter(void)
{
	bool with_listener = q.r.flags & LISTENER;
	long fd = load_filter(q.filter, q.r.instructions, with_listener);

	must(STEP_SECCOMP, fd);
	return with_listener ? fd : -1;
}

static void ignore_signal(int s) { (void)s; }

/* Renews process-wide state of Node. */
static void reset_node(napi_env env)
{
	struct uv_loop *loop;
	sigset_t none;

	/* With --disable-sigusr1 Node blocks this signal. */
	signal(SIGUSR1, ignore_signal);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (napi_get_uv_event_loop(env, &loop) || uv_loop_fork(loop))
		fail_invalid(STEP_LOOP);
	forget_waiters();
	renew_generator();
	if (getpid() == zygote) /* with any other pid OpenSSL detects the fork and reseeds itself */
		RAND_poll();
}

/* Node's milestones: microseconds since 1970, then nanoseconds of the monotonic clock,
 * negative if not reached yet. */
static double *milestones;
enum { ORIGIN_TIMESTAMP, ORIGIN, ENVIRONMENT, NODE_START, V8_START, LOOP_START, LOOP_EXIT, BOOTSTRAP_COMPLETE, MILESTONES };

static double read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Makes performance and process.uptime count from the arrival of the program, as if Node had
 * started then. The milestones of the start are spread over the time since; Node records
 * later ones itself. */
static void set_clocks(double start)
{
	double now = read_clock(CLOCK_MONOTONIC), step = (now - start) / 4;

	milestones[ORIGIN_TIMESTAMP] = (read_clock(CLOCK_REALTIME) - (now - start)) / 1000;
	milestones[ORIGIN] = start;
	milestones[NODE_START] = start + step;
	milestones[V8_START] = start + 2 * step;
	milestones[ENVIRONMENT] = start + 3 * step;
	/* Workers use these variables. */
	if (&node_start_time)
		node_start_time = milestones[NODE_START];
	if (&v8_start)
		v8_start = milestones[V8_START];
	if (&process_start)
		process_start = start;
	if (&process_start_timestamp)
		process_start_timestamp = milestones[ORIGIN_TIMESTAMP];
}

static void execute(void)
{
	reset_signals();
	syscall(SYS_close_range, CONTROL + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	execvp(q.argv[0], q.argv); /* searches PATH in environ */
	fail(STEP_EXEC);
}

/* Enters the jail. */
static void enter(napi_env env, int pidfd)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	read_request();
	join_cgroups();
	enter_namespaces(pidfd);
	renew_descriptors();
	must(STEP_SESSION, setsid());
	lower_limits();
	must(STEP_CAPABILITIES, empty_bounding_set());
	must(STEP_USER, set_user(q.r.uid, q.r.gid));
	must(STEP_CAPABILITIES, drop_capabilities());
	reset_node(env);
	if (q.r.parked) {
		open_sink();
		must(STEP_REQUEST, report(0));
	}
}

/* Fails unless this is the only thread: ruleset and filter apply to the calling thread.
 * Helpers are not revived yet, see revive_pending, but a rehearsal could have started other
 * threads. The link count of the folder is the number of threads plus two. */
static void require_single_thread(void)
{
	struct stat tasks;

	must(STEP_NO_NEW_PRIVS, stat("/proc/self/task", &tasks));
	if (tasks.st_nlink != 3) {
		errno = EBUSY;
		fail(STEP_NO_NEW_PRIVS);
	}
}

/* Reads the program and does the remaining steps before the guest's code runs. */
static void begin_program(void)
{
	read_program();
	double start = read_clock(CLOCK_MONOTONIC);
	if (q.p.script)
		set_arguments();
	install_files();
	if (q.p.terminal)
		must(STEP_TERMINAL, set_terminal(0));
	must(STEP_DIRECTORY, chdir(q.directory));
	environ = q.envp;
	require_single_thread();
	must(STEP_NO_NEW_PRIVS, set_no_new_privs());
	enforce_ruleset();
	int listener = enforce_filter();
	if (q.r.parked || listener >= 0)
		must(STEP_REQUEST, report_fd(0, listener));
	if (listener >= 0)
		close(listener);
	if (!q.p.script)
		execute();
	uv_setup_args(q.p.argc, q.argv); /* for process.title */
	set_clocks(start);
	filtered = true;
	revive_pending();
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	close(run); /* reports to the host */
}
