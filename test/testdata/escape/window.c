/*
 * window: looks for processes that are entering the jail and do not have the filter yet,
 * and tries to open, trace or read them.
 *
 *     window SECONDS [stop]
 *
 * Ends when /tmp/end exists, or the time is over.
 * Prints how many attempts it made, and a line for each kind that succeeded.
 * "stop" sends them SIGSTOP instead.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int unfiltered(int pid)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	return strstr(text, "\nSeccomp:\t0") != NULL;
}

static const struct { const char *name; int flags; } files[] = {
	{ "mem", O_RDONLY }, { "mem", O_RDWR }, { "environ", O_RDONLY }, { "maps", O_RDONLY }, { "exe", O_RDONLY }, { "exe", O_WRONLY },
	{ "cwd", O_RDONLY }, { "root", O_RDONLY }, { "fd", O_RDONLY }, { "fd/3", O_RDWR }, { "fd/4", O_RDWR },
	{ "ns/mnt", O_RDONLY }, { "oom_score_adj", O_WRONLY }, { "uid_map", O_WRONLY }, { "clear_refs", O_WRONLY },
};
enum { NFILES = sizeof(files) / sizeof(files[0]) };
static int taken[NFILES], attempts, written, stopped;

static void attack(int pid)
{
	char path[64], byte = 0;
	struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };

	attempts++;
	for (int i = 0; i < NFILES; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i].name);
		int fd = open(path, files[i].flags);
		if (fd < 0)
			continue;
		/* it may have executed a program of the guest meanwhile */
		struct dirent *e = NULL;
		if (!strcmp(files[i].name, "fd")) { /* the folder opens; its entries must not */
			DIR *d = fdopendir(fd);
			e = d ? readdir(d) : NULL;
			taken[i] += e && unfiltered(pid);
			if (d)
				closedir(d);
			continue;
		}
		taken[i] += unfiltered(pid);
		close(fd);
	}
	if (process_vm_writev(pid, &here, 1, &there, 1, 0) >= 0)
		written++;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + atoi(argv[1]);
	int stop = argc > 2;

	puts("up");
	fflush(stdout);
	while (time(NULL) < end && access("/tmp/end", F_OK)) {
		DIR *proc = opendir("/proc");
		for (struct dirent *e; (e = readdir(proc));) {
			int pid = atoi(e->d_name);
			if (pid < 2 || pid == getpid() || !unfiltered(pid))
				continue;
			if (!stop)
				attack(pid);
			else if (kill(pid, SIGSTOP) == 0)
				stopped++;
		}
		closedir(proc);
	}
	printf("attempts %d\n", attempts);
	for (int i = 0; i < NFILES; i++)
		if (taken[i])
			printf("%s %s %d\n", files[i].name, files[i].flags == O_RDONLY ? "read" : "written", taken[i]);
	if (written)
		printf("memory written %d\n", written);
	if (stopped)
		printf("stopped %d\n", stopped);
	return 0;
}
