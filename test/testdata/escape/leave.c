/*
 * leave: leaves processes and threads behind that are hard to kill.
 *
 *     leave        prints how many kinds are up, then ends
 *
 * All of them ignore signals and hold every inherited descriptor.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int up[2];

static void say_up(void)
{
	if (write(up[1], "x", 1) != 1)
		_exit(1);
}

static void daemonised(void)
{
	setsid();
	if (fork())
		_exit(0);
	say_up();
	for (;;)
		pause();
}

static void stopped(void)
{
	say_up();
	for (;;)
		raise(SIGSTOP);
}

/* The parent of a vfork sleeps where no signal but SIGKILL wakes it. */
static void in_vfork(void)
{
	if (vfork() == 0) {
		say_up();
		for (;;)
			pause();
	}
	_exit(0);
}

static void *spin(void *unused)
{
	(void)unused;
	for (;;)
		sched_yield();
}

/* The first thread ends and others continue: the process is a zombie that runs. */
static void headless(void)
{
	pthread_t t;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&t, NULL, spin, NULL))
			_exit(1);
	say_up();
	syscall(SYS_exit, 0);
}

/* Replaces itself by a new process all the time. */
static void fleeting(void)
{
	say_up();
	for (;;) {
		pid_t child = fork();
		if (child > 0)
			_exit(0);
		struct timespec moment = { 0, 100000 };
		nanosleep(&moment, NULL);
	}
}

/* Has more and more zombies that it never reaps. */
static void with_zombies(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 5; i++)
		if (fork() == 0)
			_exit(0);
	say_up();
	for (;;)
		pause();
}

static void slow(void)
{
	setpriority(PRIO_PROCESS, 0, 19);
	struct sched_param none = { 0 };
	sched_setscheduler(0, SCHED_IDLE, &none);
	say_up();
	for (;;)
		;
}

/* Has to free a lot of memory when it exits. */
static void large(void)
{
	size_t size = 32 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; p != MAP_FAILED && i < size; i += 4096)
		p[i] = 1;
	say_up();
	for (;;)
		pause();
}

int main(void)
{
	void (*const kinds[])(void) = { daemonised, stopped, in_vfork, headless, fleeting, with_zombies, slow, large };
	const int n = sizeof(kinds) / sizeof(kinds[0]);
	char byte;
	int seen = 0;

	for (int s = 1; s < NSIG; s++)
		if (s != SIGCHLD)
			signal(s, SIG_IGN);
	if (pipe(up))
		return 1;
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			kinds[i]();
			_exit(0);
		}
	while (seen < n && read(up[0], &byte, 1) == 1)
		seen++;
	printf("%d kinds are up\n", seen);
	return 0;
}
