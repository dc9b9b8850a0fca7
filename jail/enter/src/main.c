
/* ---- the list ---- */

enum op {
	STEP_OOM_SCORE = 1, STEP_KEYRING, STEP_JOIN, STEP_UNSHARE, STEP_ACT_FOR, STEP_NAMESPACES, STEP_CLONE, STEP_AWAIT, STEP_BECOME,
	STEP_HOSTNAME, STEP_LOOPBACK, STEP_MOUNT, STEP_ROOT, STEP_HIDE_OTHERS, STEP_SESSION, STEP_CLOSE,
	STEP_UMASK, STEP_LIMIT, STEP_BOUNDING_SET, STEP_CAPABILITIES, STEP_CHDIR, STEP_DEATH_SIGNAL, STEP_SIGNALS,
	STEP_NO_NEW_PRIVS, STEP_RULESET, STEP_FILTER, STEP_EXECUTE, STEP_TERMINAL,
};

static long do_step(const struct step *s)
{
	switch (s->op) {
	case STEP_OOM_SCORE:
		return raise_oom_score();
	case STEP_KEYRING:
		return new_keyring();
	case STEP_JOIN: /* 0 is the writer; what it writes to is a cgroup's list of tasks */
		return write(s->number, "0", 1);
	case STEP_UNSHARE:
		return unshare(s->value);
	case STEP_ACT_FOR:
		return act_for(s->number);
	case STEP_NAMESPACES:
		return setns(s->number, s->value);
	case STEP_CLONE:
		return clone_child(s->number, s->value);
	case STEP_AWAIT:
		return await(MET);
	case STEP_BECOME:
		return set_user(s->number, s->value);
	case STEP_HOSTNAME:
		return set_names(string(s, 0));
	case STEP_LOOPBACK:
		return bring_loopback_up();
	case STEP_MOUNT:
		return mount(string(s, 0), string(s, 1), string(s, 2), s->value, string(s, 3));
	case STEP_ROOT:
		return change_root(string(s, 0));
	case STEP_HIDE_OTHERS:
		return hide_others(string(s, 0), string(s, 1), string(s, 2), string(s, 3));
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
		return chdir(string(s, 0));
	case STEP_DEATH_SIGNAL:
		return die_with_host(s->number);
	case STEP_SIGNALS:
		return reset_signals();
	case STEP_NO_NEW_PRIVS:
		return set_no_new_privs();
	case STEP_RULESET:
		return restrict_self(s->number, s->value);
	case STEP_FILTER:
		return put_filter_on(s->number);
	case STEP_EXECUTE:
		return execute(s);
	}
	errno = EINVAL;
	return -1;
}

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[2], VERSION))
		return 125;
	fd = atoi(argv[1]);
	prctl(PR_SET_NAME, "enter", 0, 0, 0); /* for whoever looks: it was started by a descriptor */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return 125;
	read_list();
	for (current = 1; current <= told.steps; current++)
		if (do_step(&list[current - 1]) < 0)
			fail(errno);
	return 125; /* a list that executes nothing */
}
