/*
 * locks: locks a byte of /tmp/locks with fcntl and with flock, prints a line and waits to
 * be killed.
 *
 *     locks OFFSET
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = argc > 1 ? atoll(argv[1]) : 0, .l_len = 1 };
	int file = open("/tmp/locks", O_RDWR | O_CREAT, 0600);

	if (fcntl(file, F_SETLK, &l) || flock(file, LOCK_EX)) {
		perror("lock");
		return 1;
	}
	puts("locked");
	fflush(stdout);
	for (;;)
		pause();
}
