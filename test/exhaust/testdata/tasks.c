/* Processes, threads, and memory that depends on them. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int processes(void)
{
	return steps ? 0 : 1; /* the process itself, which main.c starts */
}

static int zombies(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : 1;
}

static int sessions(void) { return steps ? 0 : setsid() < 0 ? -1 : 1; }

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int threads(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	errno = pthread_create(&t, &a, wait_for_ever, NULL);
	return errno ? -1 : 1;
}

static int timers(void)
{
	timer_t t;

	return timer_create(CLOCK_MONOTONIC, NULL, &t) ? -1 : 1;
}

static int signals(void)
{
	sigset_t all;

	if (steps == 0) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
	}
	return sigqueue(getpid(), SIGRTMIN + steps % 30, (union sigval){ 0 }) ? -1 : 1;
}

static int interval_timers(void)
{
	const struct itimerval far = { .it_value.tv_sec = 1000000 };

	if (steps)
		return 0;
	setitimer(ITIMER_REAL, &far, NULL);
	setitimer(ITIMER_VIRTUAL, &far, NULL);
	return setitimer(ITIMER_PROF, &far, NULL) ? -1 : 3;
}

static int io_contexts(void)
{
	return steps ? 0 : syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 4) ? -1 : 1;
}

static int affinities(void)
{
	static unsigned char all[8192];

	memset(all, 255, sizeof(all));
	return steps ? 0 : syscall(SYS_sched_setaffinity, 0, sizeof(all), all) ? -1 : 1;
}

static int credentials(void)
{
	return steps ? 0 : setreuid(-1, getuid()) || prctl(PR_SET_DUMPABLE, 0) ? -1 : 1;
}

/* Nested domains, each with the rules of those below. */
static int domains(void)
{
	int fd = ruleset(2000), result = fd < 0 ? -1 : syscall(SYS_landlock_restrict_self, fd, 0);

	close(fd);
	return result ? -1 : 1;
}

/* Filters of 4,096 instructions. Threads would share them. */
static int filters(void)
{
	static struct sock_filter code[4096];
	struct sock_fprog program = { 4096, code };

	for (int i = 0; i < 4095; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, i);
	code[4095] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -1 : 1;
}

static int filters_prctl(void)
{
	static struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -1 : 1;
}

/* Threads that sleep in a system call keep what it has copied. */
static int sleeping(void *(*call)(void *))
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	errno = pthread_create(&t, &a, call, NULL);
	return errno ? -1 : 1;
}

static struct pollfd watched[1024];

static void *poll_all(void *unused)
{
	poll(watched, 1024, -1);
	return unused;
}

static int polls(void)
{
	static int ends[2];

	if (!ends[1]) {
		if (pipe(ends))
			return -1;
		for (int i = 0; i < 1024; i++)
			watched[i] = (struct pollfd){ ends[0], POLLIN, 0 };
	}
	return sleeping(poll_all);
}

static int empty[2];
static struct iovec vectors[1024];

static void *read_all(void *unused)
{
	readv(empty[0], vectors, 1024);
	return unused;
}

static int vectored(void)
{
	static char byte;

	if (!empty[1]) {
		if (pipe(empty))
			return -1;
		for (int i = 0; i < 1024; i++)
			vectors[i] = (struct iovec){ &byte, 1 };
	}
	return sleeping(read_all);
}

/* Locks with priorities, for which the kernel keeps a state while others wait. */
static uint32_t words[1 << 16];

static void *wait_all(void *unused)
{
	static int n;

	syscall(SYS_futex, &words[__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED)], FUTEX_LOCK_PI, 0, NULL);
	return unused;
}

static int priority_locks(void)
{
	words[steps] = gettid();
	return sleeping(wait_all);
}

/* The arguments of a waiting program. */
static int arguments(void)
{
	static char text[65536], *argv[16], script[] = "read x <&9";
	int ends[2];

	if (steps)
		return 0;
	memset(text, 'x', sizeof(text) - 1);
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = script;
	for (int i = 3; i < 15; i++)
		argv[i] = text;
	if (fork())
		return 1;
	if (!pipe(ends) && dup2(ends[0], 9) == 9)
		execv("/bin/sh", argv);
	_exit(1);
}

const struct mode task_modes[] = {
	{ "processes", SPREAD, processes },
	{ "threads", SINGLE, threads },
	{ "zombies", SINGLE, zombies },
	{ "sessions", SPREAD, sessions },
	{ "POSIX timers", SPREAD, timers },
	{ "queued signals", SPREAD, signals },
	{ "interval timers", SPREAD, interval_timers },
	{ "I/O contexts", SPREAD, io_contexts },
	{ "affinities", SPREAD, affinities },
	{ "credentials", SPREAD, credentials },
	{ "landlock domains", SPREAD, domains },
	{ "seccomp filters", SPREAD, filters },
	{ "seccomp filters by prctl", SPREAD, filters_prctl },
	{ "poll", SINGLE, polls },
	{ "readv", SINGLE, vectored },
	{ "PI futexes", SINGLE, priority_locks },
	{ "arguments", SPREAD, arguments },
	{ 0 },
};
