
/* ---- the preloaded library: Node's helper threads ---- */

enum { MOST_KNOWN = 64 };

static bool forked; /* this is a child */
static bool filtered; /* and a thread that it makes now is under its filter */

#define REAL(name, version) \
	static __typeof__(name) *real; \
	if (!real && !(real = dlvsym(RTLD_NEXT, #name, version))) \
		real = dlsym(RTLD_NEXT, #name)

/* A helper thread, which a child does not have. It sleeps when the zygote forks, on a
 * condition variable or in an event loop of its own. What wakes it, and where it sleeps,
 * is noted for the child to continue it there. */
static struct sleeper {
	pthread_t thread;
	const void *wake; /* the condition variable, or loop_key of the loop's epoll; NULL: it is awake */
	bool called;      /* to be revived as soon as possible */
	pthread_mutex_t *lock; /* the condition variable's; NULL: it sleeps in an event loop */
	int epoll;             /* the event loop's */
	void *place[5]; /* see pthread_cond_wait */
	void *tls;
	int *tid; /* the C library's, cleared at the thread's end for pthread_join */
	char name[16];
	char stack[4096] __attribute__((aligned(16))); /* until it is back on its own */
} sleepers[MOST_KNOWN];
static int sleeper_count;
static __thread struct sleeper *self;
static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_t absent[MOST_KNOWN]; /* threads of the zygote that a child lacks */
static int absent_count;

/* What event loops of the zygote wait for. A child's epolls are new and empty. */
static struct { int epoll, fd; struct epoll_event event; } watched[MOST_KNOWN];
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
		if (absent_count == MOST_KNOWN)
			abort(); /* no Node that we know comes near */
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

static struct sleeper *new_sleeper(void)
{
	pthread_mutex_lock(&sleepers_lock);
	if (sleeper_count == MOST_KNOWN)
		abort();
	struct sleeper *s = &sleepers[sleeper_count++];
	pthread_mutex_unlock(&sleepers_lock);
	s->thread = pthread_self();
	s->tls = __builtin_thread_pointer();
	prctl(PR_GET_TID_ADDRESS, &s->tid, 0, 0, 0);
	prctl(PR_GET_NAME, s->name, 0, 0, 0);
	return s;
}

static bool wake_called(void);

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	REAL(pthread_cond_wait, "GLIBC_2.3.2");
	if (forked && wake_called())
		return real(c, m);
	if (forked) { /* for a helper, it may be. A wait may end for nothing */
		pthread_mutex_unlock(m);
		usleep(10000);
		return pthread_mutex_lock(m);
	}
	if (!self)
		self = new_sleeper();
	self->lock = m;
	/* The C library's longjmp would clean up the wait, which this child has forgotten. */
	if (__builtin_setjmp(self->place))
		return pthread_mutex_lock(m);
	__atomic_store_n(&self->wake, c, __ATOMIC_RELEASE);
	int failed = real(c, m);
	__atomic_store_n(&self->wake, NULL, __ATOMIC_RELEASE);
	return failed;
}

/* V8's delayed tasks have a thread with an event loop. A task that is pending when the
 * zygote forks is due in the child, too. */
int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
	REAL(epoll_pwait, "GLIBC_2.6");
	if (forked)
		return real(epoll, events, most, timeout, mask);
	if (!self)
		self = new_sleeper();
	self->lock = NULL;
	self->epoll = epoll;
	self->called = timeout >= 0;
	if (__builtin_setjmp(self->place))
		return real(epoll, events, most, timeout, mask);
	__atomic_store_n(&self->wake, loop_key(epoll), __ATOMIC_RELEASE);
	int n = real(epoll, events, most, timeout, mask);
	__atomic_store_n(&self->wake, NULL, __ATOMIC_RELEASE);
	self->called = false;
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
	if (i < 0 && (i = watched_count++) == MOST_KNOWN)
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

/* Waits for the helpers to have nothing to do. One that sleeps elsewhere, which a child
 * could not revive, never has. */
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

static int go_on(void *sleeper)
{
	struct sleeper *s = sleeper;

	prctl(PR_SET_NAME, s->name, 0, 0, 0);
	__builtin_longjmp(s->place, 1);
}

static void watch_again(int epoll)
{
	for (int i = 0; i < watched_count; i++)
		if (watched[i].epoll == epoll)
			epoll_ctl(epoll, EPOLL_CTL_ADD, watched[i].fd, &watched[i].event);
}

/* Makes the thread again that was s, as the C library would. False: there is no room for
 * one more. */
static bool revive(struct sleeper *s)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	int i = find_absent(s->thread);

	if (!s->lock)
		watch_again(s->epoll);
	if (clone(go_on, s->stack + sizeof(s->stack), flags, s, s->tid, s->tls, s->tid) < 0)
		return false;
	if (i >= 0)
		absent[i] = 0;
	return true;
}

/* V8 calls helpers when it likes, as to collect garbage, and does their work itself where
 * they do not come: none wakes before the filter is on, which holds no thread older. One
 * that there is no room for is called again with each signal and each wait: false. */
static bool wake_called(void)
{
	bool came = true;

	if (!filtered)
		return true;
	pthread_mutex_lock(&sleepers_lock);
	for (int i = 0; i < sleeper_count; i++) {
		struct sleeper *s = &sleepers[i];
		s->called = s->called && !revive(s);
		came = came && !s->called;
	}
	pthread_mutex_unlock(&sleepers_lock);
	return came;
}

/* In a child, wakes what slept in the zygote: one, or all. A small run wakes none. */
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
		s->called = true;
		if (!all)
			break;
	}
	pthread_mutex_unlock(&sleepers_lock);
	wake_called();
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

/* Other threads wake an event loop by a write to its eventfd. */
ssize_t write(int fd, const void *data, size_t size)
{
	REAL(write, "GLIBC_2.2.5");
	for (int i = 0; forked && i < watched_count; i++)
		if (watched[i].fd == fd)
			wake(loop_key(watched[i].epoll), false);
	return real(fd, data, size);
}

/* The kernel's waiters are not here: nobody is to count them as waiting. */
static void forget_waiters(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* as libuv has it */
	for (int i = 0; i < sleeper_count; i++)
		if (sleepers[i].wake && sleepers[i].lock) {
			pthread_cond_init((pthread_cond_t *)sleepers[i].wake, &attr);
			pthread_mutex_init(sleepers[i].lock, NULL);
		}
}
