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
