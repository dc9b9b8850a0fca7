
/* ---- preloaded library: Node's helper threads ---- */

enum { MAX_KNOWN = 64 };

static bool forked;   /* this process is a child */
static bool filtered; /* its filter is loaded, so new threads have it */

#define REAL(name, version) \
	static __typeof__(name) *real; \
	if (!real && !(real = dlvsym(RTLD_NEXT, #name, version))) \
		real = dlsym(RTLD_NEXT, #name)

/* A helper thread of the zygote, which a child does not have. When the zygote forks it
 * sleeps on a condition variable or in its own event loop. What wakes it and where it
 * sleeps is recorded, so that a child can continue it there. */
static struct sleeper {
	pthread_t thread;
	const void *wake; /* the condition variable, or loop_key of the loop's epoll; NULL: awake */
	bool pending;     /* to be revived as soon as possible */
	pthread_mutex_t *lock; /* of the condition variable; NULL: it sleeps in an event loop */
	int epoll;             /* of the event loop */
	void *context[5];      /* of __builtin_setjmp, see pthread_cond_wait */
	void *tls;
	int *tid; /* in the C library, cleared when the thread ends, for pthread_join */
	char name[16];
	char stack[4096] __attribute__((aligned(16))); /* until it continues on its own */
} sleepers[MAX_KNOWN];
static int sleeper_count;
static __thread struct sleeper *self;
static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_t absent[MAX_KNOWN]; /* threads of the zygote, which children lack */
static int absent_count;

/* Descriptors that the zygote's event loops watch. A child's epolls are new and empty. */
static struct { int epoll, fd; struct epoll_event event; } watched[MAX_KNOWN];
static int watched_count;

static const void *loop_key(int epoll) { return (void *)(intptr_t)epoll; }

static int find_absent(pthread_t t)
{
	int i = absent_count - 1;
	while (i >= 0 && absent[i] != t)
		i--;
	return i;
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	REAL(pthread_create, "GLIBC_2.34");
	int failed = real(t, attr, run, arg);
	if (!failed && !forked) {
		if (absent_count == MAX_KNOWN)
			abort(); /* known versions of Node have far fewer */
		absent[absent_count++] = *t;
	}
	return failed;
}

int pthread_join(pthread_t t, void **result)
{
	REAL(pthread_join, "GLIBC_2.34");
	int i = find_absent(t);

	if (i >= 0 && forked)
		return 0;
	if (i >= 0)
		absent[i] = absent[--absent_count];
	return real(t, result);
}

/* Returns where the C library keeps the calling thread's id, which the kernel clears when the thread ends, or NULL. On
 * kernels without PR_GET_TID_ADDRESS it is found in struct pthread: of the fields with that value, the one that
 * determines the thread's clock. */
static int *tid_address(void)
{
	enum { LENGTH = 1024 }; /* of the beginning of struct pthread, with some room */
	static size_t found;    /* the offset, for all threads */
	int *tid = NULL;
	clockid_t before, after;

	if (!prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) && tid)
		return tid;
	size_t at = __atomic_load_n(&found, __ATOMIC_RELAXED);
	for (size_t i = 0; !at && i < LENGTH; i += sizeof(int)) {
		tid = (int *)((char *)pthread_self() + i);
		if (*tid != gettid() || pthread_getcpuclockid(pthread_self(), &before))
			continue;
		++*tid;
		if (!pthread_getcpuclockid(pthread_self(), &after) && after != before)
			at = i;
		--*tid;
	}
	__atomic_store_n(&found, at, __ATOMIC_RELAXED);
	return at ? (int *)((char *)pthread_self() + at) : NULL;
}

static struct sleeper *new_sleeper(void)
{
	pthread_mutex_lock(&sleepers_lock);
	if (sleeper_count == MAX_KNOWN)
		abort();
	struct sleeper *s = &sleepers[sleeper_count++];
	pthread_mutex_unlock(&sleepers_lock);
	s->thread = pthread_self();
	s->tls = __builtin_thread_pointer();
	s->tid = tid_address();
	prctl(PR_GET_NAME, s->name, 0, 0, 0);
	return s;
}

static bool revive_pending(void);

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	REAL(pthread_cond_wait, "GLIBC_2.3.2");
	if (forked && revive_pending())
		return real(c, m);
	if (forked) { /* it may wait for a helper that could not be revived: wake up spuriously */
		pthread_mutex_unlock(m);
		usleep(10000);
		return pthread_mutex_lock(m);
	}
	if (!self)
		self = new_sleeper();
	self->lock = m;
	/* The C library's longjmp would clean up the wait, which is unknown in the child. */
	if (__builtin_setjmp(self->context))
		return pthread_mutex_lock(m);
	__atomic_store_n(&self->wake, c, __ATOMIC_RELEASE);
	int failed = real(c, m);
	__atomic_store_n(&self->wake, NULL, __ATOMIC_RELEASE);
	return failed;
}

/* A thread with an event loop runs V8's delayed tasks. A task that is pending when the
 * zygote forks is also run in the child. */
int epoll_pwait(int epoll, struct epoll_event *events, int count, int timeout, const sigset_t *mask)
{
	REAL(epoll_pwait, "GLIBC_2.6");
	if (forked)
		return real(epoll, events, count, timeout, mask);
	if (!self)
		self = new_sleeper();
	self->lock = NULL;
	self->epoll = epoll;
	self->pending = timeout >= 0;
	if (__builtin_setjmp(self->context))
		return real(epoll, events, count, timeout, mask);
	__atomic_store_n(&self->wake, loop_key(epoll), __ATOMIC_RELEASE);
	int n = real(epoll, events, count, timeout, mask);
	__atomic_store_n(&self->wake, NULL, __ATOMIC_RELEASE);
	self->pending = false;
	return n;
}

static int find_watched(int epoll, int fd)
{
	int i = watched_count - 1;
	while (i >= 0 && (watched[i].epoll != epoll || watched[i].fd != fd))
		i--;
	return i;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	REAL(epoll_ctl, "GLIBC_2.3.2");
	int failed = real(epoll, op, fd, event);

	if (failed || forked)
		return failed;
	pthread_mutex_lock(&sleepers_lock);
	int i = find_watched(epoll, fd);
	if (i < 0 && (i = watched_count++) == MAX_KNOWN)
		abort();
	if (op == EPOLL_CTL_DEL)
		watched[i] = watched[--watched_count];
	else
		watched[i] = (__typeof__(watched[0])){ epoll, fd, *event };
	pthread_mutex_unlock(&sleepers_lock);
	return 0;
}

static bool is_asleep(pthread_t t)
{
	for (int i = 0; i < sleeper_count; i++)
		if (sleepers[i].thread == t)
			return __atomic_load_n(&sleepers[i].wake, __ATOMIC_ACQUIRE);
	return false;
}

/* Waits until all helpers sleep. It fails if one sleeps elsewhere, where a child could not
 * revive it. */
static bool all_asleep(void)
{
	for (int ms = 0; ms < 5000; ms++) {
		int i = 0;
		while (i < absent_count && is_asleep(absent[i]))
			i++;
		if (i == absent_count)
			return true;
		usleep(1000);
	}
	return false;
}

static int continue_sleeper(void *sleeper)
{
	struct sleeper *s = sleeper;

	prctl(PR_SET_NAME, s->name, 0, 0, 0);
	__builtin_longjmp(s->context, 1);
}

static void renew_watches(int epoll)
{
	for (int i = 0; i < watched_count; i++)
		if (watched[i].epoll == epoll)
			epoll_ctl(epoll, EPOLL_CTL_ADD, watched[i].fd, &watched[i].event);
}

/* Creates the thread s again, as the C library would. Returns false if the cgroup has no
 * room for another thread. */
static bool revive(struct sleeper *s)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	int i = find_absent(s->thread);

	if (!s->lock)
		renew_watches(s->epoll);
	if (clone(continue_sleeper, s->stack + sizeof(s->stack), flags, s, s->tid, s->tls, s->tid) < 0)
		return false;
	if (i >= 0)
		absent[i] = 0;
	return true;
}

/* Revives pending helpers. Returns false if there is no room for one, which is retried with
 * each signal and each wait.
 *
 * V8 wakes helpers at any time, such as to collect garbage, and does their work itself if
 * they do not run. None is revived before the filter is loaded, because existing threads
 * would not have it. */
static bool revive_pending(void)
{
	bool all = true;

	if (!filtered)
		return true;
	pthread_mutex_lock(&sleepers_lock);
	for (int i = 0; i < sleeper_count; i++) {
		struct sleeper *s = &sleepers[i];
		s->pending = s->pending && !revive(s);
		all = all && !s->pending;
	}
	pthread_mutex_unlock(&sleepers_lock);
	return all;
}

/* In a child, wakes one helper or all helpers that slept in the zygote. */
static void wake(const void *key, bool all)
{
	if (!forked)
		return;
	pthread_mutex_lock(&sleepers_lock);
	for (int i = 0; i < sleeper_count; i++) {
		struct sleeper *s = &sleepers[i];
		if (s->wake != key)
			continue;
		s->wake = NULL;
		s->pending = true;
		if (!all)
			break;
	}
	pthread_mutex_unlock(&sleepers_lock);
	revive_pending();
}

int pthread_cond_signal(pthread_cond_t *c)
{
	REAL(pthread_cond_signal, "GLIBC_2.3.2");
	wake(c, false);
	return real(c);
}

int pthread_cond_broadcast(pthread_cond_t *c)
{
	REAL(pthread_cond_broadcast, "GLIBC_2.3.2");
	wake(c, true);
	return real(c);
}

/* A write to an eventfd wakes the event loop that watches it. */
ssize_t write(int fd, const void *data, size_t size)
{
	REAL(write, "GLIBC_2.2.5");
	for (int i = 0; forked && i < watched_count; i++)
		if (watched[i].fd == fd)
			wake(loop_key(watched[i].epoll), false);
	return real(fd, data, size);
}

/* Resets condition variables, which count waiters that do not exist in the child. */
static void forget_waiters(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* as in libuv */
	for (int i = 0; i < sleeper_count; i++)
		if (sleepers[i].wake && sleepers[i].lock) {
			pthread_cond_init((pthread_cond_t *)sleepers[i].wake, &attr);
			pthread_mutex_init(sleepers[i].lock, NULL);
		}
}
