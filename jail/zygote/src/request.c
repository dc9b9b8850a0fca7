
/* ---- child: requests and reports ---- */

static int run; /* the child's socket */

/* Sends a report, with a descriptor unless fd is negative. */
static int report_fd(enum step step, int fd)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct report r = { step, step ? errno : 0 };
	struct iovec v = { &r, sizeof(r) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (fd >= 0) {
		control.head = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	return sendmsg(run, &m, MSG_NOSIGNAL) == sizeof(r) ? 0 : -1;
}

static int report(enum step step) { return report_fd(step, -1); }

static void fail(enum step step)
{
	_exit(report(step) ? 127 : 126);
}

static void must(enum step step, int result)
{
	if (result < 0)
		fail(step);
}

static void fail_invalid(enum step step)
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
	int joins[MAX_FDS];
	int ruleset; /* -1: none */
	struct limit limits[RLIM_NLIMITS];
	struct sock_filter filter[BPF_MAXINSNS];
	struct program p;
	int files[MAX_FDS];
	char *text, *environment, *directory;
	char **argv, **envp;
} q;

static void read_head(void *to, size_t size, int fds[MAX_FDS])
{
	ssize_t n = receive(run, to, size, fds);

	if (n == 0)
		_exit(127); /* the host does not need the child any more */
	must(STEP_REQUEST, n);
	read_all((char *)to + n, size - n);
}

static void read_request(void)
{
	struct request *r = &q.r;

	read_head(r, sizeof(*r), q.joins);
	if (r->joins >= MAX_FDS || r->limits > RLIM_NLIMITS || r->instructions > BPF_MAXINSNS)
		fail_invalid(STEP_REQUEST);
	q.ruleset = -1;
	if (r->flags & RULESET) {
		q.ruleset = q.joins[r->joins];
		q.joins[r->joins] = -1;
		if (q.ruleset < 0)
			fail_invalid(STEP_REQUEST);
	}
	read_all(q.limits, r->limits * sizeof(q.limits[0]));
	read_all(q.filter, r->instructions * sizeof(q.filter[0]));
}

/* Splits text into n strings and returns the end of the last. */
static char *split(char *text, char **list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (text >= q.text + q.p.text)
			fail_invalid(STEP_REQUEST);
		list[i] = text;
		text += strlen(text) + 1;
	}
	return text;
}

static void read_program(void)
{
	struct program *p = &q.p;

	read_head(p, sizeof(*p), q.files);
	if (p->files < 3 || p->files > GUEST_FDS || p->text > MAX_TEXT || p->text == 0 || p->argc == 0 ||
	    p->argc > p->text || p->envc > p->text || p->script >= p->argc)
		fail_invalid(STEP_REQUEST);
	for (uint32_t i = 0; i < p->files; i++)
		if (q.files[i] < GUEST_FDS)
			fail_invalid(STEP_REQUEST);
	/* Mapped, not allocated: set_arguments passes it to the kernel. */
	q.text = mmap(NULL, p->text + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q.argv = calloc(p->argc + 1, sizeof(char *));
	q.envp = calloc(p->envc + 1, sizeof(char *));
	if (q.text == MAP_FAILED || !q.argv || !q.envp)
		fail(STEP_REQUEST);
	read_all(q.text, p->text);
	q.environment = split(q.text, q.argv, p->argc);
	q.directory = split(q.environment, q.envp, p->envc);
}
