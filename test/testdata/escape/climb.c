/*
 * climb: looks for a way out of the root through what the process inherited.
 *
 *     climb
 *
 * Goes up from the working directory and from every open folder while that succeeds, and
 * prints "outside" if that is not the root. It also prints each inherited descriptor that
 * is not a pipe.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns whether the highest folder that fd leads to is the root. */
static int inside(int fd)
{
	struct stat root, at, up;

	stat("/", &root);
	for (int i = 0; i < 100; i++) {
		int next = openat(fd, "..", O_PATH | O_DIRECTORY);
		if (next < 0 || fstat(fd, &at) || fstat(next, &up))
			return 1; /* no way up */
		if (same(&at, &up))
			return same(&at, &root);
		fd = next;
	}
	return 0;
}

int main(void)
{
	char path[32], link[4096], cwd[4096];
	struct stat given[1024];

	for (int fd = 0; fd < 1024; fd++)
		if (fstat(fd, &given[fd]))
			given[fd].st_mode = 0; /* not open */
	if (!inside(open(".", O_PATH | O_DIRECTORY)) || !getcwd(cwd, sizeof(cwd)) || cwd[0] != '/')
		puts("cwd outside");
	for (int fd = 0; fd < 1024; fd++) {
		if (given[fd].st_mode == 0 || S_ISFIFO(given[fd].st_mode))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = 0;
		printf("fd %d %s\n", fd, link);
		if (S_ISDIR(given[fd].st_mode) && !inside(fd))
			printf("fd %d outside\n", fd);
	}
	return 0;
}
