
/* ---- the way into the jail ---- */

static void join_cgroups(void)
{
	for (uint32_t i = 0; i < q.r.joins; i++)
		must(STEP_CGROUP, write(q.joins[i], "0", 1));
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
	const int all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

	must(STEP_NAMESPACES, unshare(CLONE_NEWCGROUP)); /* begins at the run's cgroup */
	must(STEP_NAMESPACES, setns(pidfd, all));
}

/* libuv makes the lock's pipe anew as it is forked, the main loop's in uv_loop_fork,
 * and those of the loops of other threads, which are not here, never. */
static bool is_renewed(int i)
{
	struct stat s;

	return own[i].kind == PIPE && (fstat(own[i].fd, &s) || s.st_ino != own[i].inode);
}

static int renew(int kind)
{
	switch (kind) {
	case EPOLL:
		return epoll_create1(EPOLL_CLOEXEC);
	case NULL_FILE:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	default: /* an end of a pipe must be one that epoll takes, too */
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
}

/* Leaves of the zygote's descriptors those from 0 on, which the guest's take the place
 * of, and new ones in the place of Node's own; and the run's socket. */
static void renew_descriptors(void)
{
	int top = CONTROL;

	must(STEP_DESCRIPTORS, dup3(run, CONTROL, O_CLOEXEC));
	run = CONTROL;
	close_all(q.joins);
	close_all(ordered);
	for (int i = 0; i < owned; i++) {
		top = own[i].fd > top ? own[i].fd : top;
		if (is_renewed(i))
			continue;
		int fd = renew(own[i].kind);
		must(STEP_DESCRIPTORS, fd);
		must(STEP_DESCRIPTORS, dup3(fd, own[i].fd, O_CLOEXEC));
		close(fd);
	}
	if (q.ruleset >= 0) { /* until there is a program */
		if (q.ruleset != ++top)
			must(STEP_DESCRIPTORS, dup3(q.ruleset, top, O_CLOEXEC));
		q.ruleset = top;
	}
	must(STEP_DESCRIPTORS, syscall(SYS_close_range, top + 1, ~0U, 0));
}

static int sink = -1; /* where the output of a rehearsal goes */

static void open_sink(void)
{
	int ends[2];

	must(STEP_DESCRIPTORS, pipe2(ends, O_CLOEXEC));
	must(STEP_DESCRIPTORS, dup3(ends[1], 1, O_CLOEXEC));
	must(STEP_DESCRIPTORS, dup3(ends[1], 2, O_CLOEXEC));
	close(ends[1]);
	sink = ends[0];
}

static void take_files(void)
{
	for (uint32_t i = 0; i < GUEST_FDS; i++)
		if (i >= q.p.files)
			close(i);
		else /* Node, too, lets its children inherit nothing unasked */
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

/* Returns the filter's listener, or -1 if it is to have none. */
static int enforce_filter(void)
{
	bool listens = q.r.flags & LISTENER;
	long fd = load_filter(q.filter, q.r.instructions, listens);

	must(STEP_SECCOMP, fd);
	return listens ? fd : -1;
}

static void ignore_signal(int s) { (void)s; }

/* Gives Node's process-wide state to this process. */
static void become_node(napi_env env)
{
	struct uv_loop *loop;
	sigset_t none;

	/* Node without the thread that waits for this signal blocks it, for good. */
	signal(SIGUSR1, ignore_signal);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (napi_get_uv_event_loop(env, &loop) || uv_loop_fork(loop))
		bad(STEP_LOOP);
	forget_waiters();
	if (getpid() == zygote) /* any other pid tells OpenSSL that it was forked */
		RAND_poll();
}

/* When Node reached what: microseconds since 1970, then nanoseconds of the monotonic
 * clock, negative for what is to come. */
static double *milestones;
enum { ORIGIN_TIMESTAMP, ORIGIN, ENVIRONMENT, NODE_START, V8_START, LOOP_START, LOOP_EXIT, BOOTSTRAP_COMPLETE, MILESTONES };

static double read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Makes performance and process.uptime count from when the program came, as if Node had
 * started then. The steps of that start share the time since; Node itself notes those
 * that follow. */
static void set_clocks(double came)
{
	double now = read_clock(CLOCK_MONOTONIC), step = (now - came) / 4;

	milestones[ORIGIN_TIMESTAMP] = (read_clock(CLOCK_REALTIME) - (now - came)) / 1000;
	milestones[ORIGIN] = came;
	milestones[NODE_START] = came + step;
	milestones[V8_START] = came + 2 * step;
	milestones[ENVIRONMENT] = came + 3 * step;
	/* Workers have these, too. */
	if (&node_start_time)
		node_start_time = milestones[NODE_START];
	if (&v8_start)
		v8_start = milestones[V8_START];
	if (&process_start)
		process_start = came;
	if (&process_start_timestamp)
		process_start_timestamp = milestones[ORIGIN_TIMESTAMP];
}

static void execute(void)
{
	reset_signals();
	syscall(SYS_close_range, CONTROL + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	execvp(q.argv[0], q.argv); /* which finds PATH in environ */
	fail(STEP_EXEC);
}

/* Goes from the zygote into the jail. */
static void enter(napi_env env, int pidfd)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	take_request();
	join_cgroups();
	enter_namespaces(pidfd);
	renew_descriptors();
	must(STEP_SESSION, setsid());
	lower_limits();
	must(STEP_CAPABILITIES, empty_bounding_set());
	must(STEP_USER, set_user(q.r.uid, q.r.gid));
	must(STEP_CAPABILITIES, drop_capabilities());
	become_node(env);
	if (q.r.parked) {
		open_sink();
		must(STEP_REQUEST, report(0));
	}
}

/* What follows holds the one thread that does it: it must be all there are. Helpers are
 * still asleep, see wake_called; a rehearsal could have started others. /proc tells by a
 * folder's links. */
static void be_alone(void)
{
	struct stat tasks;

	must(STEP_NO_NEW_PRIVS, stat("/proc/self/task", &tasks));
	if (tasks.st_nlink != 3) {
		errno = EBUSY;
		fail(STEP_NO_NEW_PRIVS);
	}
}

/* Goes on, once there is a program, to the last step before the guest's code. */
static void begin_program(void)
{
	take_program();
	double came = read_clock(CLOCK_MONOTONIC);
	if (q.p.script)
		set_arguments();
	take_files();
	if (q.p.terminal)
		must(STEP_TERMINAL, set_terminal(0));
	must(STEP_DIRECTORY, chdir(q.directory));
	environ = q.envp;
	be_alone();
	must(STEP_NO_NEW_PRIVS, set_no_new_privs());
	enforce_ruleset();
	int listener = enforce_filter();
	if (q.r.parked || listener >= 0)
		must(STEP_REQUEST, report_with(0, listener));
	if (listener >= 0)
		close(listener);
	if (!q.p.script)
		execute();
	uv_setup_args(q.p.argc, q.argv); /* where process.title goes */
	set_clocks(came);
	filtered = true;
	wake_called();
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	close(run); /* tells the host */
}

/* ---- the addon ---- */

/* Where Node keeps its exit code. */
static const int32_t *exit_info;
enum { EXITING, EXIT_CODE, HAS_EXIT_CODE, EXIT_FIELDS };

/* Ends the process where Node, with all JavaScript behind it and its threads stopped,
 * starts to free what it has: half of a small run's page faults. */
static void leave(void *unused)
{
	(void)unused;
	if (forked && exit_info[EXITING])
		exit(exit_info[HAS_EXIT_CODE] ? exit_info[EXIT_CODE] : 0);
}

static const char *take_arrays(napi_env env, napi_callback_info info)
{
	napi_value array[2];
	size_t n = 2, fields, times;
	int type;

	if (napi_get_cb_info(env, info, &n, array, NULL, NULL) || n != 2 ||
	    napi_get_typedarray_info(env, array[0], &type, &fields, (void **)&exit_info, NULL, NULL) || fields != EXIT_FIELDS ||
	    napi_get_typedarray_info(env, array[1], &type, &times, (void **)&milestones, NULL, NULL) || times != MILESTONES)
		return "no exit info, or no milestones";
	return napi_add_env_cleanup_hook(env, leave, NULL) ? "no memory" : NULL;
}

static napi_value throw(napi_env env, const char *text)
{
	napi_throw_error(env, NULL, text);
	return NULL;
}

static const char *get_ready(napi_env env, napi_callback_info info)
{
	const char *wrong = take_arrays(env, info);

	if (!wrong)
		wrong = all_asleep() ? list_own() : "a helper thread does not come to rest";
	if (wrong)
		return wrong;
	dl_iterate_phdr(enlarge_code, NULL);
	sort_free_memory();
	zygote = getpid();
	struct answer ready = { .pid = zygote };
	return send(CONTROL, &ready, sizeof(ready), MSG_NOSIGNAL) == sizeof(ready) ? NULL : "no host";
}

/* serve(exit info, milestones): [pid, is it parked], in a child only. */
static napi_value serve(napi_env env, napi_callback_info info)
{
	struct order o;
	const char *wrong = get_ready(env, info);
	napi_value list, item;

	if (wrong)
		return throw(env, wrong);
	do
		if (receive(CONTROL, &o, sizeof(o), ordered) != sizeof(o))
			_exit(0); /* the host closed the socket */
	while ((run = obey(&o)) < 0);

	forked = true;
	enter(env, ordered[1]);
	if (!q.r.parked)
		begin_program();
	if (napi_create_array_with_length(env, 2, &list) || napi_create_int32(env, getpid(), &item) ||
	    napi_set_element(env, list, 0, item) || napi_create_int32(env, q.r.parked, &item) ||
	    napi_set_element(env, list, 1, item))
		return throw(env, "no memory");
	return list;
}

/* receive(): [program, ...arguments]. */
static napi_value take(napi_env env, napi_callback_info info)
{
	napi_value list, item;

	(void)info;
	if (q.r.parked)
		begin_program();
	if (napi_create_array_with_length(env, q.p.argc - q.p.script, &list))
		return throw(env, "no memory");
	for (uint32_t i = q.p.script; i < q.p.argc; i++)
		if (napi_create_string_utf8(env, q.argv[i], SIZE_MAX, &item) ||
		    napi_set_element(env, list, i - q.p.script, item))
			return throw(env, "no memory");
	return list;
}

static napi_value export(napi_env env, napi_value exports)
{
	napi_value f;

	if (napi_create_function(env, "serve", SIZE_MAX, serve, NULL, &f) ||
	    napi_set_named_property(env, exports, "serve", f) ||
	    napi_create_function(env, "receive", SIZE_MAX, take, NULL, &f) ||
	    napi_set_named_property(env, exports, "receive", f))
		return throw(env, "no memory");
	return exports;
}

/*
 * Node finds this as a linked binding. It has no napi_register_module_v1 to find, because
 * that of an object that is preloaded takes the place of an addon's own, where the
 * addon refers to it.
 */
__attribute__((constructor)) static void link_binding(void)
{
	static napi_module binding = {.nm_version = 1, .nm_filename = __FILE__, .nm_register_func = export, .nm_modname = "gaol"};

	napi_module_register(&binding);
}
