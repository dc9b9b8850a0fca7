
/* ---- steps: each returns a negative number and sets errno if it fails ---- */

static const char *text_of(const struct step *s, int i) { return text + s->text[i]; }

/* Without a new keyring the session would have the host's. */
static long new_keyring(void)
{
	long n = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return n < 0 && errno == ENOSYS ? 0 : n;
}

/* Makes the kernel kill guests first when the machine is short of memory.
 *
 * Precondition: /proc is mounted. */
static long raise_oom_score(void)
{
	static const char most[] = "1000";
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	long n = file < 0 ? -1 : write(file, most, sizeof(most) - 1);

	if (file >= 0)
		close(file);
	return n;
}

/* Namespaces created from now on belong to this user, and the kernel charges some of their
 * objects to it. setresuid clears the effective capabilities, which capset restores. */
static long set_effective_user(uint32_t uid)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_setresuid, -1, uid, -1) || syscall(SYS_capget, &head, caps))
		return -1;
	caps[0].effective = caps[0].permitted;
	caps[1].effective = caps[1].permitted;
	return syscall(SYS_capset, &head, caps);
}

/* A child executes the remaining steps. It is the host's child (CLONE_PARENT): the host
 * waits for it, and its death signal is tied to the thread that started this program. */
static long clone_child(int cgroup, uint64_t flags)
{
	struct clone_args a = { .flags = flags | CLONE_PARENT };

	if (cgroup >= 0) {
		a.flags |= CLONE_INTO_CGROUP;
		a.cgroup = cgroup;
	}
	long pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid > 0) {
		report(CLONED, pid);
		_exit(0);
	}
	return pid;
}

/* Waits for a reply of the host. Exits if the host is dead. */
static long await_reply(char reply)
{
	char byte;

	read_all(&byte, sizeof(byte));
	errno = EPROTO;
	return byte == reply ? 0 : -1;
}

static long bring_loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long n = s < 0 ? -1 : ioctl(s, SIOCSIFFLAGS, &request);

	if (n && errno == ENOTTY && !ioctl(s, SIOCGIFFLAGS, &request) && request.ifr_flags & IFF_UP)
		n = 0; /* gVisor, where it is always up */
	if (s >= 0)
		close(s);
	return n;
}

/* Without setdomainname the jail would have the host's domain name. */
static long set_names(const char *host)
{
	static const char none[] = "(none)"; /* the kernel's initial value */

	return sethostname(host, strlen(host)) || setdomainname(none, strlen(none)) ? -1 : 0;
}

/* Unmounts the old root: pivot_root(2) explains the two dots. */
static long change_root(const char *dir)
{
	if (chdir(dir) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH))
		return -1;
	return chdir("/");
}

/* Mounts the empty file or folder over an entry of a procfs, unless it is shown. Links are
 * not hidden: they lead to other entries of the jail. */
static long hide_unless(const char *shown, const char *dir, const struct dirent *e, const char *file, const char *folder)
{
	char path[PATH_MAX], *name = path + strlen(dir), *end;

	if (strlen(dir) + strlen(e->d_name) + sizeof("//") > sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	end = stpcpy(stpcpy(stpcpy(path, dir), "/"), e->d_name);
	strcpy(end, "/");
	if (strstr(shown, name) || strstr("/./../", name) || e->d_type == DT_LNK)
		return 0;
	if (!e->d_name[strspn(e->d_name, "0123456789")]) /* a process */
		return 0;
	*end = 0;
	if (mount(e->d_type == DT_DIR ? folder : file, path, NULL, MS_BIND, NULL) == 0)
		return 0;
	return errno == ENOENT && access(path, F_OK) ? 0 : -1; /* its module was unloaded */
}

/* Hides all entries of a procfs except those shown. Kernels differ in their entries. */
static long hide_entries(const char *dir, const char *shown, const char *file, const char *folder)
{
	DIR *entries = opendir(dir);
	struct dirent *e;
	long n = entries ? 0 : -1;

	while (n == 0 && (errno = 0, e = readdir(entries)))
		n = hide_unless(shown, dir, e, file, folder);
	return n || errno ? -1 : closedir(entries);
}

/* Makes the kernel kill this process when the host's thread ends. If the host ends before
 * the signal is set, no signal is sent, and the socket may still be open: the host's
 * threads exit one after the other, and a child that it is just starting has copies of its
 * descriptors. So the host writes a byte after the signal is set. A host that writes it was
 * alive then, and its end sends the signal; otherwise reading the byte ends this process. A
 * change of ids would clear the signal. */
static long die_with_host(int with)
{
	if (prctl(PR_SET_PDEATHSIG, with, 0, 0, 0))
		return -1;
	report(ARMED, 0);
	return await_reply(ALIVE);
}

/* Loads the filter and sends its listener, if it has one, to the host. */
static long enforce_filter(bool with_listener)
{
	long n = load_filter(filter, header.instructions, with_listener);

	if (n < 0 || !with_listener)
		return n;
	report_file(LISTENER, 0, n);
	return close(n);
}

/* Returns an array of the n strings that begin at p, and advances p. */
static char **split(char **p, uint64_t n)
{
	char **strings = n <= header.text ? calloc(n + 1, sizeof(char *)) : NULL;

	for (uint64_t i = 0; strings && i < n; i++) {
		if (*p >= text + header.text)
			return NULL;
		strings[i] = *p;
		*p += strlen(*p) + 1;
	}
	return strings;
}

/* Ends as the child with this wait status did. There is no core file: this process is not
 * dumpable. */
static void end_like(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

static pid_t read_pid(const char *path)
{
	char digits[16] = { 0 };
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = file < 0 ? -1 : read(file, digits, sizeof(digits) - 1);

	if (file >= 0)
		close(file);
	if (n < 0)
		return -1;
	errno = ESRCH;
	return atoi(digits) > 0 ? atoi(digits) : -1;
}

/* Kills the children, and theirs, which become this process's children. The guest may have stopped
 * any of them. list is the open list of them. */
static void kill_children(int list)
{
	char pids[4096];

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		ssize_t n = pread(list, pids, sizeof(pids) - 1, 0);
		while (n > 0 && pids[n - 1] != ' ') /* the last pid may be cut off */
			n--;
		pids[n > 0 ? n : 0] = 0;
		for (char *p = pids, *end; strtol(p, &end, 10) > 0; p = end)
			kill(strtol(p, NULL, 10), SIGKILL);
		usleep(1000);
	}
}

/* Waits for the end of a child. Fails if the host closes the socket first. */
static int await_program(pid_t pid, int *status)
{
	struct pollfd events[] = { { syscall(SYS_pidfd_open, pid, 0), POLLIN, 0 }, { fd, POLLIN, 0 } };

	if (events[0].fd < 0)
		return -1;
	while (!events[0].revents && !events[1].revents)
		if (poll(events, 2, -1) < 0 && errno != EINTR)
			return -1;
	close(events[0].fd);
	errno = EPIPE;
	return events[0].revents ? waitpid(pid, status, 0) : -1;
}

/* Waits for a process that is a child since its parent has ended, and ends as it does. Kills
 * it when the host closes the socket, which the end of the host does. */
static void await_child(pid_t pid, int pidfd)
{
	struct pollfd events[] = { { pidfd, POLLIN, 0 }, { fd, POLLIN, 0 } };
	int status = 0;

	while (!events[0].revents) {
		if (poll(events, 2, -1) < 0 && errno != EINTR)
			break;
		if (events[1].revents) {
			kill(pid, SIGKILL);
			events[1].fd = -1;
		}
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			_exit(126);
	end_like(status);
}

/* Executes a program that starts a process, and waits for both. Returns only if that fails. */
static void supervise_program(const char *pid_file, char **argv)
{
	int status = 0, pidfd;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		environ = NULL;
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0)
			execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || syscall(SYS_close_range, 0, fd - 1, 0) || await_program(pid, &status) < 0)
		return;
	if (status) {
		errno = ECHILD;
		return;
	}
	pid = read_pid(pid_file);
	if (pid < 0 || waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT)) /* not a child */
		return;
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return;
	if (!send_report(CLONED, pid, pidfd))
		kill(pid, SIGKILL);
	await_child(pid, pidfd);
}

/* Executes a program, such as an OCI runtime, that starts a process, writes its pid to a file
 * and ends. Reports the process with its pidfd, and then waits for it in the program's place.
 * The descriptors below the socket are for the program alone. */
static long supervise(const struct step *s)
{
	char *p = text + s->text[0], **argv = split(&p, s->number);
	int list, failed;

	if (!argv || s->number < 2) {
		errno = EINVAL;
		return -1;
	}
	/* A session of its own: the terminal's signals are the host's. */
	if (syscall(SYS_close_range, fd + 1, ~0U, 0) || setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return -1;
	list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	if (list < 0)
		return -1;
	supervise_program(argv[0], argv + 1);
	failed = errno;
	kill_children(list);
	errno = failed;
	return -1;
}

static long execute(const struct step *s)
{
	char *p = text + s->text[0];
	char **argv = split(&p, s->number);

	environ = split(&p, s->value); /* where execvp finds PATH */
	if (!argv || !argv[0] || !environ) {
		errno = EINVAL;
		return -1;
	}
	report(0, 0);
	return execvp(argv[0], argv);
}

/* ---- executing the list ---- */

enum op { /* as in step.go */
	STEP_OOM_SCORE = 1, STEP_KEYRING, STEP_JOIN_CGROUP, STEP_UNSHARE, STEP_EFFECTIVE_USER, STEP_NAMESPACES, STEP_CLONE, STEP_AWAIT_HOST, STEP_USER,
	STEP_HOSTNAME, STEP_LOOPBACK, STEP_MOUNT, STEP_ROOT, STEP_HIDE_ENTRIES, STEP_SESSION, STEP_CLOSE,
	STEP_UMASK, STEP_LIMIT, STEP_BOUNDING_SET, STEP_CAPABILITIES, STEP_CHDIR, STEP_DEATH_SIGNAL, STEP_SIGNALS,
	STEP_NO_NEW_PRIVS, STEP_RULESET, STEP_FILTER, STEP_EXECUTE, STEP_TERMINAL, STEP_SUPERVISE,
};

static long do_step(const struct step *s)
{
	switch (s->op) {
	case STEP_OOM_SCORE:
		return raise_oom_score();
	case STEP_KEYRING:
		return new_keyring();
	case STEP_JOIN_CGROUP: /* 0 is the caller; the file is a cgroup's list of tasks */
		return write(s->number, "0", 1);
	case STEP_UNSHARE:
		return unshare(s->value);
	case STEP_EFFECTIVE_USER:
		return set_effective_user(s->number);
	case STEP_NAMESPACES:
		return setns(s->number, s->value);
	case STEP_CLONE:
		return clone_child(s->number, s->value);
	case STEP_AWAIT_HOST:
		return await_reply(CONTINUE);
	case STEP_USER:
		return set_user(s->number, s->value);
	case STEP_HOSTNAME:
		return set_names(text_of(s, 0));
	case STEP_LOOPBACK:
		return bring_loopback_up();
	case STEP_MOUNT:
		return mount(text_of(s, 0), text_of(s, 1), text_of(s, 2), s->value, text_of(s, 3));
	case STEP_ROOT:
		return change_root(text_of(s, 0));
	case STEP_HIDE_ENTRIES:
		return hide_entries(text_of(s, 0), text_of(s, 1), text_of(s, 2), text_of(s, 3));
	case STEP_SESSION:
		return setsid();
	case STEP_TERMINAL:
		return set_terminal(s->number);
	case STEP_CLOSE:
		return syscall(SYS_close_range, s->number, ~0U, 0);
	case STEP_UMASK:
		umask(s->number);
		return 0;
	case STEP_LIMIT:
		return lower_limit(s->number, s->value);
	case STEP_BOUNDING_SET:
		return empty_bounding_set();
	case STEP_CAPABILITIES:
		return drop_capabilities();
	case STEP_CHDIR:
		return chdir(text_of(s, 0));
	case STEP_DEATH_SIGNAL:
		return die_with_host(s->number);
	case STEP_SIGNALS:
		return reset_signals();
	case STEP_NO_NEW_PRIVS:
		return set_no_new_privs();
	case STEP_RULESET:
		return restrict_self(s->number, s->value);
	case STEP_FILTER:
		return enforce_filter(s->number);
	case STEP_EXECUTE:
		return execute(s);
	case STEP_SUPERVISE:
		return supervise(s);
	}
	errno = EINVAL;
	return -1;
}

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[2], VERSION))
		return 125;
	fd = atoi(argv[1]);
	prctl(PR_SET_NAME, "enter", 0, 0, 0); /* it was executed by a descriptor, whose number would be its name */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return 125;
	read_list();
	for (current = 1; current <= header.steps; current++)
		if (do_step(&list[current - 1]) < 0)
			fail(errno);
	return 125; /* the list has no STEP_EXECUTE */
}
