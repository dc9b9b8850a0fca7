/*
 * hoard: creates as many objects of a kind as it can, and keeps them.
 *
 *     hoard KIND COUNT SECONDS      prints how many it has and why no more, and waits
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int inotify(void) { return inotify_init1(0); }

static int pipe_pages(void)
{
	int fds[2];
	return pipe(fds) ? -1 : fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) < 1 << 20 ? -1 : 0;
}

static int epoll_watch(void)
{
	static int ep = -1;
	struct epoll_event e = { .events = EPOLLIN };
	int fds[2];

	if (ep < 0)
		ep = epoll_create1(0);
	return pipe(fds) ? -1 : epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e);
}

static int locked(void)
{
	void *p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mlock(p, 16384);
}

static int pending(void)
{
	return sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 });
}

static int timer(void)
{
	timer_t t;
	return timer_create(CLOCK_MONOTONIC, NULL, &t);
}

static int terminal(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY); }

static int task(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/* A connection whose other end never reads. */
static int connection(void)
{
	static char chunk[65536];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (l < 0 || c < 0 || bind(l, (void *)&a, sizeof(a)) || listen(l, 1) || getsockname(l, (void *)&a, &len))
		return -1;
	connect(c, (void *)&a, sizeof(a));
	if (accept(l, NULL, NULL) < 0)
		return -1;
	close(l);
	while (write(c, chunk, sizeof(chunk)) > 0)
		;
	return 0;
}

/* A netlink socket whose queue is full of answers. */
static int route(void)
{
	struct { struct nlmsghdr head; struct rtgenmsg body; } request = {
		{ sizeof(request), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP }, { AF_UNSPEC },
	};
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE), size = 1 << 30;

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)))
		return -1;
	for (int i = 0; i < 10000; i++)
		send(s, &request, sizeof(request), 0);
	return s;
}

/* A lock of a process, or of an open file, on a byte that has none. */
static int lock(int command)
{
	static int file = -1, next;
	char name[32];

	if (next % 1000 == 0) {
		snprintf(name, sizeof(name), "/tmp/lock%d", next);
		file = open(name, O_RDWR | O_CREAT, 0600);
		unlink(name);
	}
	struct flock l = { .l_type = F_WRLCK, .l_start = next++ % 1000 * 2, .l_len = 1 };
	return fcntl(file, command, &l);
}

static int posix_lock(void) { return lock(F_SETLK); }
static int open_file_lock(void) { return lock(F_OFD_SETLK); }

static const struct { const char *name; int (*take)(void); } kinds[] = {
	{ "inotify", inotify }, { "pipe", pipe_pages }, { "epoll", epoll_watch }, { "locked", locked },
	{ "pending", pending }, { "timer", timer }, { "terminal", terminal }, { "task", task }, { "connection", connection },
	{ "route", route }, { "lock", posix_lock }, { "open-file-lock", open_file_lock },
};

int main(int argc, char **argv)
{
	int count = atoi(argv[2]), n = 0;
	sigset_t block;

	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, NULL);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[1]))
			continue;
		do {
			errno = 0;
		} while (kinds[i].take() >= 0 && ++n < count);
		printf("%d %s\n", n, strerrorname_np(errno) ?: "0");
		fflush(stdout);
		sleep(atoi(argv[3]));
	}
	return 0;
}
