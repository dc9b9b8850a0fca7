
/* ---- executing the list ---- */

enum op { /* as in step.go */
	STEP_OOM_SCORE = 1, STEP_KEYRING, STEP_JOIN_CGROUP, STEP_UNSHARE, STEP_EFFECTIVE_USER, STEP_NAMESPACES, STEP_CLONE, STEP_AWAIT_HOST, STEP_USER,
	STEP_HOSTNAME, STEP_LOOPBACK, STEP_MOUNT, STEP_ROOT, STEP_HIDE_ENTRIES, STEP_SESSION, STEP_CLOSE,
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
