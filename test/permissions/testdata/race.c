/*
 * race: opens a file while other threads swap the parts of its path.
 *
 *     race DIR SECRET MILLISECONDS
 *
 * It creates in DIR a folder with a file, a link to the folder SECRET, which has a file of
 * the same name that begins with "the secret", and an empty folder. Threads exchange them
 * with RENAME_EXCHANGE. Prints how many opens returned the file, the secret, and neither.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int over;
static int dir;

static void *swap(void *with)
{
	while (!over)
		syscall(SYS_renameat2, dir, "d", dir, with, 2);
	return NULL;
}

/* how opens DIR/d/f: by the path, from a descriptor of DIR/d, or by ".." from another folder. */
static int opened(int how)
{
	if (how == 0)
		return openat(dir, "d/f", O_RDONLY);
	if (how == 1)
		return openat(dir, "empty/../d/f", O_RDONLY);
	int d = openat(dir, "d", O_PATH | O_DIRECTORY), fd = openat(d, "f", O_RDONLY);
	close(d);
	return fd;
}

int main(int argc, char **argv)
{
	int seen[3] = { 0 };
	struct timespec now, end;
	pthread_t threads[2];

	if (argc > 3)
		mkdir(argv[1], 0755);
	if (argc < 4 || (dir = open(argv[1], O_PATH)) < 0)
		return 2;
	mkdirat(dir, "d", 0755);
	mkdirat(dir, "empty", 0755);
	mkdirat(dir, "other", 0755);
	if (symlinkat(argv[2], dir, "l"))
		return 3;
	int f = openat(dir, "d/f", O_WRONLY | O_CREAT, 0644);
	if (write(f, "open", 4) != 4)
		return 4;
	close(f);
	pthread_create(&threads[0], NULL, swap, "l");
	pthread_create(&threads[1], NULL, swap, "other");
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += atol(argv[3]) % 1000 * 1000000;
	end.tv_sec += atol(argv[3]) / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	for (int i = 0;; i++) {
		char b[16] = { 0 };
		int fd = opened(i % 3);
		ssize_t n = fd < 0 ? 0 : read(fd, b, sizeof(b) - 1);
		seen[n <= 0 ? 2 : !strncmp(b, "the secret", 10) ? 1 : 0]++;
		if (fd >= 0)
			close(fd);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec > end.tv_nsec))
			break;
	}
	over = 1;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%d %d %d\n", seen[0], seen[1], seen[2]);
	return 0;
}
