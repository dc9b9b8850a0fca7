/* Objects behind descriptors, bounded by RLIMIT_NOFILE in each process. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int epoll(void) { return kept(epoll_create1(0)); }
static int event(void) { return kept(eventfd(0, 0)); }

static int timer(void)
{
	const struct itimerspec far = { .it_value.tv_sec = 1000000 };
	int fd = timerfd_create(CLOCK_REALTIME, 0);

	if (fd >= 0)
		timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
	return kept(fd);
}

static int signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	return kept(signalfd(-1, &none, 0));
}

/* Every descriptor is watched by an epoll instance, again and again. */
static int epoll_watches(void)
{
	static int watched[256], n;
	struct epoll_event e = { .events = EPOLLIN };
	int ep, i;

	for (; n < 256; n++)
		if ((watched[n] = eventfd(0, 0)) < 0)
			return -1;
	if ((ep = epoll_create1(0)) < 0)
		return -1;
	for (i = 0; i < 256; i++)
		if (epoll_ctl(ep, EPOLL_CTL_ADD, watched[i], &e))
			return i ? i : -1;
	return i;
}

/* Instances that watch instances: the kernel allows a depth of five. */
static int epoll_nested(void)
{
	static int inner = -1, depth;
	struct epoll_event e = { .events = EPOLLIN };
	int outer = epoll_create1(0);

	if (outer < 0)
		return -1;
	if (inner >= 0 && epoll_ctl(outer, EPOLL_CTL_ADD, inner, &e) && errno != ELOOP)
		return -1;
	inner = ++depth % 4 ? outer : -1;
	return 1;
}

static int inotify(void) { return kept(inotify_init1(0)); }

/* Watches of everything that has an inode: its own files, then those of processes. */
static int inotify_watches(void)
{
	static int fd = -1;
	const char *path = fresh("/dev/shm");

	if (fd < 0 && (fd = inotify_init1(0)) < 0)
		return -1;
	if (mknod(path, S_IFREG | 0600, 0))
		return -1;
	return inotify_add_watch(fd, path, IN_ATTRIB) < 0 ? -1 : 1;
}

/*
 * The kernel keeps numbers of watches in a tree with 64 of them in a node. One of each 64
 * that stays keeps the node.
 */
static int inotify_sparse(void)
{
	static int fd = -1, stay;
	char path[32];

	if (fd < 0)
		fd = inotify_init1(0);
	if (fd < 0)
		return -1;
	for (int i = 0; i < 63; i++) {
		int n = inotify_add_watch(fd, "/dev/shm", IN_ATTRIB);

		if (n < 0)
			return -1;
		inotify_rm_watch(fd, n);
	}
	snprintf(path, sizeof(path), "/dev/shm/%d-%d", worker, stay++);
	if (mknod(path, S_IFREG | 0600, 0) || inotify_add_watch(fd, path, IN_ATTRIB) < 0)
		return -1;
	return 1;
}

/* Events that are never read: 16,384 in each queue, all different. */
static int inotify_events(void)
{
	char name[256];
	int fd = inotify_init1(0), file, n;

	snprintf(name, sizeof(name), "/dev/shm/%0*d", 240, worker);
	if (fd < 0 || (file = creat(name, 0600)) < 0 || inotify_add_watch(fd, "/dev/shm", IN_OPEN | IN_CLOSE) < 0)
		return -1;
	for (n = 0; n < 8000 && going(); n++) {
		close(file);
		file = open(name, O_RDONLY);
	}
	return close(file), 2 * n;
}

static int dnotify(void)
{
	int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY);

	if (fd < 0 || fcntl(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT))
		return -1;
	return 1;
}

static int files(void) { return kept(open("/dev/null", O_RDONLY)); }
static int paths(void) { return kept(open("/", O_PATH)); }
static int folders(void) { return kept(open("/usr/bin", O_RDONLY | O_DIRECTORY)); }
static int pids(void) { return kept(syscall(SYS_pidfd_open, getppid(), 0)); }
static int namespaces(void) { return kept(open("/proc/self/ns/net", O_RDONLY)); }

/* An owner, and an entry in the list of processes to signal. */
static int asynchronous(void)
{
	int ends[2];

	if (pipe(ends))
		return -1;
	for (int i = 0; i < 2; i++) {
		fcntl(ends[i], F_SETOWN, getpid());
		fcntl(ends[i], F_SETFL, O_ASYNC | O_NONBLOCK);
	}
	return 2;
}

static int terminals(void)
{
	static char text[4096];
	int unlock = 0, master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), slave;

	if (master < 0)
		return -1;
	ioctl(master, TIOCSPTLCK, &unlock);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK);
	while (write(master, text, sizeof(text)) > 0)
		;
	while (slave >= 0 && write(slave, text, sizeof(text)) > 0)
		;
	return 1;
}

/* From <linux/landlock.h> of Linux 6.7. */
struct ruleset_attr { uint64_t fs, net; };
struct __attribute__((packed)) port_attr { uint64_t access, port; };
enum { BIND_TCP = 1, NET_PORT = 2 };

int ruleset(int rules)
{
	const struct ruleset_attr attr = { 0, BIND_TCP };
	int fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	for (int i = 0; fd >= 0 && i < rules && going(); i++) {
		const struct port_attr rule = { BIND_TCP, i };

		if (syscall(SYS_landlock_add_rule, fd, NET_PORT, &rule, 0))
			return close(fd), -1;
	}
	return fd;
}

static int landlock(void) { return ruleset(65536) < 0 ? -1 : 65536; }

/* A file in memory with a page at every 256 KiB, so that each has a node of the tree. */
static int memory_files(void)
{
	static int fd = -1;
	static long n;

	if (n++ % 256 == 0 && (fd = memfd_create("", MFD_ALLOW_SEALING)) < 0)
		return -1;
	return pwrite(fd, "x", 1, n % 256 * 262144) == 1 ? 1 : -1;
}

static int memory_file_inodes(void) { return kept(memfd_create("", MFD_ALLOW_SEALING)); }

const struct mode descriptor_modes[] = {
	{ "files", SPREAD, files },
	{ "O_PATH files", SPREAD, paths },
	{ "open folders, image", SPREAD, folders },
	{ "namespace files", SPREAD, namespaces },
	{ "pidfd", SPREAD, pids },
	{ "epoll", SPREAD, epoll },
	{ "epoll watches", SPREAD, epoll_watches },
	{ "epoll nested", SPREAD, epoll_nested },
	{ "eventfd", SPREAD, event },
	{ "timerfd", SPREAD, timer },
	{ "signalfd", SPREAD, signals },
	{ "inotify", SPREAD, inotify },
	{ "inotify watches", SPREAD, inotify_watches },
	{ "inotify sparse watches", SPREAD, inotify_sparse },
	{ "inotify events", SPREAD, inotify_events },
	{ "dnotify", SPREAD, dnotify },
	{ "O_ASYNC", SPREAD, asynchronous },
	{ "terminals", SINGLE, terminals },
	{ "landlock rules", SPREAD, landlock },
	{ "memfd", SPREAD, memory_file_inodes },
	{ "memfd sparse pages", SINGLE, memory_files },
	{ 0 },
};
