/*
 * reach: tries to reach processes by their pids.
 *
 *     reach FROM TO            prints a line for each process that it reached, with the ways
 *     reach FROM TO SIGNAL     sends it in all ways, also to groups and to all processes
 *
 * It skips itself and process 1. Prints "done" at the end.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int signal_number; /* 0 only checks for permission */

static int by_kill(int pid) { return kill(pid, signal_number); }
static int by_tgkill(int pid) { return syscall(SYS_tgkill, pid, pid, signal_number); }
static int by_tkill(int pid) { return syscall(SYS_tkill, pid, signal_number); }

static int by_queue(int pid)
{
	return sigqueue(pid, signal_number, (union sigval){ 0 });
}

static int by_pidfd(int pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);
	int result = fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0);
	if (fd >= 0)
		close(fd);
	return result;
}

static int by_pidfd_getfd(int pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);
	int got = fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 1, 0);
	if (fd >= 0)
		close(fd);
	if (got >= 0)
		close(got);
	return got;
}

static int by_ptrace(int pid)
{
	long seized = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	if (seized == 0) {
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	return seized;
}

static int by_memory(int pid)
{
	char path[64], byte;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "r");
	unsigned long start;
	if (!maps || fscanf(maps, "%lx", &start) != 1)
		start = 0x400000;
	if (maps)
		fclose(maps);
	struct iovec here = { &byte, 1 }, there = { (void *)start, 1 };
	return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

static int opens(int pid, const char *name, int flags)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	int fd = open(path, flags);
	if (fd >= 0)
		close(fd);
	return fd;
}

static int by_mem(int pid) { return opens(pid, "mem", O_RDWR); }
static int by_environ(int pid) { return opens(pid, "environ", O_RDONLY); }
static int by_maps(int pid) { return opens(pid, "maps", O_RDONLY); }
static int by_fd(int pid) { return opens(pid, "fd", O_RDONLY); }
static int by_stdout(int pid) { return opens(pid, "fd/1", O_WRONLY); }
static int by_root(int pid) { return opens(pid, "root/.", O_RDONLY); }
static int by_cwd(int pid) { return opens(pid, "cwd/.", O_RDONLY); }
static int by_ns(int pid) { return opens(pid, "ns/mnt", O_RDONLY); }
static int by_status(int pid) { return opens(pid, "status", O_RDONLY); }

static const struct { const char *name; int (*try)(int pid); } ways[] = {
	{ "kill", by_kill }, { "tgkill", by_tgkill }, { "tkill", by_tkill }, { "sigqueue", by_queue }, { "pidfd", by_pidfd },
	{ "pidfd_getfd", by_pidfd_getfd }, { "ptrace", by_ptrace }, { "process_vm_readv", by_memory }, { "mem", by_mem },
	{ "environ", by_environ }, { "maps", by_maps }, { "fd", by_fd }, { "fd/1", by_stdout }, { "root", by_root }, { "cwd", by_cwd },
	{ "ns", by_ns }, { "status", by_status },
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	signal_number = argc > 3 ? atoi(argv[3]) : 0;
	for (int pid = atoi(argv[1]); pid <= atoi(argv[2]); pid++) {
		int reached = 0;
		if (pid == 1 || pid == getpid())
			continue;
		for (int i = 0; i < WAYS; i++)
			if (ways[i].try(pid) >= 0)
				printf(reached++ ? " %s" : "%s", ways[i].name);
		if (reached)
			printf(" of %d\n", pid);
	}
	if (signal_number) {
		setsid(); /* its group then has no other process */
		for (int group = 2; group < 5000; group++)
			if (group != getpid())
				kill(-group, signal_number);
		kill(-1, signal_number); /* all but itself and process 1 */
	}
	printf("done\n");
	return 0;
}
