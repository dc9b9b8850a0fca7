
/* ---- what steps do: each returns a negative number, and errno, if it fails ---- */

static const char *string(const struct step *s, int i) { return text + s->text[i]; }

/* The session keyring would be the host's otherwise. */
static long new_keyring(void)
{
	long n = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return n < 0 && errno == ENOSYS ? 0 : n;
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

/* Leaves nothing of the old root: pivot_root(2) explains the two dots. */
static long change_root(const char *dir)
{
	if (chdir(dir) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH))
		return -1;
	return chdir("/");
}

/* Hides a file or a folder, if this kernel has it. */
static long hide(const char *path)
{
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTDIR)
		return -1;
	return mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1");
}

static long make_read_only(const char *path, unsigned long flags)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL))
		return errno == ENOENT ? 0 : -1;
	return mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | flags, NULL);
}

/* Has the kernel kill this process when the host's thread ends. A host that ends before
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
