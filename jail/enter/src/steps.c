
/* ---- what steps do: each returns a negative number, and errno, if it fails ---- */

static const char *string(const struct step *s, int i) { return text + s->text[i]; }

/* The session keyring would be the host's otherwise. */
static long new_keyring(void)
{
	long n = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return n < 0 && errno == ENOSYS ? 0 : n;
}

/* When the machine is short of memory, the kernel kills guests first.
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

/* Namespaces made from here on are this user's: the kernel charges some of what is
 * in them to whoever made them. The change drops the capabilities in effect. */
static long act_for(uint32_t uid)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_setresuid, -1, uid, -1) || syscall(SYS_capget, &head, caps))
		return -1;
	caps[0].effective = caps[0].permitted;
	caps[1].effective = caps[1].permitted;
	return syscall(SYS_capset, &head, caps);
}

/* The rest is a child's, which is the host's child too: the host waits for it, and
 * what is to happen when the thread that started this program ends happens to it. */
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

/* Waits for one of the host's answers. It ends the process if the host is dead. */
static long await(char answer)
{
	char byte;

	read_all(&byte, sizeof(byte));
	errno = EPROTO;
	return byte == answer ? 0 : -1;
}

static long bring_loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long n = s < 0 ? -1 : ioctl(s, SIOCSIFFLAGS, &request);

	if (s >= 0)
		close(s);
	return n;
}

/* The domain name would be the host's otherwise. */
static long set_names(const char *host)
{
	static const char none[] = "(none)"; /* as the kernel has it at its start */

	return sethostname(host, strlen(host)) || setdomainname(none, strlen(none)) ? -1 : 0;
}

/* Leaves nothing of the old root: pivot_root(2) explains the two dots. */
static long change_root(const char *dir)
{
	if (chdir(dir) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH))
		return -1;
	return chdir("/");
}

/* Mounts an empty file or folder over an entry of a procfs that is to be hidden. Links
 * stay: they lead to what is in the jail. */
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
	return errno == ENOENT && access(path, F_OK) ? 0 : -1; /* its module is gone */
}

/* Hides all entries of a procfs but some. What is in it depends on the kernel. */
static long hide_others(const char *dir, const char *shown, const char *file, const char *folder)
{
	DIR *entries = opendir(dir);
	struct dirent *e;
	long n = entries ? 0 : -1;

	while (n == 0 && (errno = 0, e = readdir(entries)))
		n = hide_unless(shown, dir, e, file, folder);
	return n || errno ? -1 : closedir(entries);
}

/* Asks the kernel to kill this process when the host's thread ends. A host that ends before
 * the signal is set does not cause one, and its socket may still be open then: its
 * threads end one after the other, and a child that it is just starting has a copy of
 * each descriptor. So the host writes a byte once the signal is set. If it was alive to
 * do that, the signal comes at its end; if not, reading that byte ends this process. A
 * change of ids would clear the signal. */
static long die_with_host(int with)
{
	if (prctl(PR_SET_PDEATHSIG, with, 0, 0, 0))
		return -1;
	report(ARMED, 0);
	return await(ALIVE);
}

/* The listener, if the filter is to have one, is the host's. */
static long put_filter_on(bool listens)
{
	long n = load_filter(filter, told.instructions, listens);

	if (n < 0 || !listens)
		return n;
	report_with(LISTENS, 0, n);
	return close(n);
}

/* Takes n strings from p on. */
static char **take(char **p, uint64_t n)
{
	char **strings = n <= told.text ? calloc(n + 1, sizeof(char *)) : NULL;

	for (uint64_t i = 0; strings && i < n; i++) {
		if (*p >= text + told.text)
			return NULL;
		strings[i] = *p;
		*p += strlen(*p) + 1;
	}
	return strings;
}

static long execute(const struct step *s)
{
	char *p = text + s->text[0];
	char **argv = take(&p, s->number);

	environ = take(&p, s->value); /* where execvp finds PATH */
	if (!argv || !argv[0] || !environ) {
		errno = EINVAL;
		return -1;
	}
	report(0, 0);
	return execvp(argv[0], argv);
}
