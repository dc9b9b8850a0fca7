/*
 * exhaust: creates as many kernel objects of one kind as it can, and keeps them.
 *
 *     exhaust list                      prints the modes
 *     exhaust MODE MILLISECONDS         prints "COUNT ERRNO" repeatedly, then "done"
 *     exhaust refused                   prints "ERRNO NAME" of calls that jails refuse
 *
 * A first process starts others, which create the objects, so that it can still print
 * when the kernel kills those for memory. After "done", all live processes keep what they
 * have until they are killed.
 */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct mode *const families[] = {
	descriptor_modes, lock_modes, pipe_modes, tree_modes, local_modes, stream_modes,
	datagram_modes, option_modes, task_modes, memory_modes,
};

/* What the processes share. */
static struct {
	long count;
	int finished;
	int reason;	/* the errno that stopped the first of them */
	struct timespec deadline;
} *shared;

long steps;
int worker;

bool going(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < shared->deadline.tv_sec ||
		(now.tv_sec == shared->deadline.tv_sec && now.tv_nsec < shared->deadline.tv_nsec);
}

int kept(int fd) { return fd < 0 ? -1 : 1; }

const char *fresh(const char *folder)
{
	static char path[128];
	static long n;

	snprintf(path, sizeof(path), "%s/%d-%ld", folder, worker, n++);
	return path;
}

/* Makes the kernel kill this process rather than the first, which has the same size. */
static void grow(void)
{
	static char more[16 * 4096];

	for (unsigned i = 0; i < sizeof(more); i += 4096)
		((volatile char *)more)[i] = 1;
}

static void work(const struct mode *m)
{
	int n = 0;

	grow();
	do {
		errno = 0;
		n = m->step();
		if (n > 0)
			__atomic_add_fetch(&shared->count, n, __ATOMIC_RELAXED);
		steps++;
	} while (n > 0 && going());
	if (n < 0 && !shared->reason)
		shared->reason = errno;
	__atomic_add_fetch(&shared->finished, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void report(const char *end)
{
	printf("%ld %s%s\n", __atomic_load_n(&shared->count, __ATOMIC_RELAXED),
	       shared->reason ? strerrorname_np(shared->reason) : "-", end);
}

/* Starts the processes of a mode and returns how many there are. */
static int start(const struct mode *m)
{
	int most = m->how == SPREAD ? 1 << 16 : 1;
	pid_t pid;

	for (worker = 0; worker < most; worker++) {
		pid = fork();
		if (pid == 0)
			work(m);
		if (pid < 0)
			break;
		report("");
	}
	return worker;
}

/* Prints until all processes have finished, or were killed, or the time is up. */
static void watch(int started)
{
	const struct timespec moment = { .tv_nsec = 20 * 1000 * 1000 };
	int dead = 0;

	while (__atomic_load_n(&shared->finished, __ATOMIC_ACQUIRE) + dead < started && going()) {
		report("");
		nanosleep(&moment, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			dead++;
	}
	report(dead ? " done killed" : " done");
}

static const struct mode *find(const char *name)
{
	for (unsigned f = 0; f < sizeof(families) / sizeof(families[0]); f++)
		for (const struct mode *m = families[f]; m->name; m++) {
			if (!name)
				puts(m->name);
			else if (!strcmp(m->name, name))
				return m;
		}
	return NULL;
}

static void refused(void)
{
	for (const struct refusal *r = refusals; r->name; r++) {
		errno = 0;
		printf("%s %s\n", r->call() < 0 ? strerrorname_np(errno) : "-", r->name);
	}
}

int main(int argc, char **argv)
{
	struct rlimit files;
	const struct mode *m = NULL;

	if (argc == 3)
		m = find(argv[1]);
	else if (argc == 2 && !strcmp(argv[1], "refused"))
		refused();
	else
		find(NULL);
	if (!m)
		return argc != 2;
	setlinebuf(stdout);
	signal(SIGPIPE, SIG_IGN);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	clock_gettime(CLOCK_MONOTONIC, &shared->deadline);
	shared->deadline.tv_sec += atoi(argv[2]) / 1000;
	shared->deadline.tv_nsec += atoi(argv[2]) % 1000 * 1000000;
	if (shared->deadline.tv_nsec >= 1000000000) {
		shared->deadline.tv_nsec -= 1000000000;
		shared->deadline.tv_sec++;
	}
	watch(start(m));
	for (;;)
		pause();
}
