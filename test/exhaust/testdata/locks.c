/* Locks and leases, which the kernel charges to no cgroup. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* Locks of single bytes with gaps, which cannot be merged. A hundred files keep the lists short. */
static int ranges(int command)
{
	static int fds[100];
	static long n;
	struct flock l = { .l_type = F_RDLCK, .l_len = 1 };
	int i;

	for (i = 0; i < 100; i++) {
		if (!fds[i] && (fds[i] = open(fresh("/dev/shm"), O_RDWR | O_CREAT, 0600)) < 0)
			return -1;
		l.l_start = n * 2;
		if (fcntl(fds[i], command, &l))
			return -1;
	}
	n++;
	return i;
}

static int posix(void) { return ranges(F_SETLK); }
static int descriptions(void) { return ranges(F_OFD_SETLK); }

static int whole(void)
{
	int fd = open(fresh("/dev/shm"), O_RDWR | O_CREAT, 0600);

	if (fd < 0 && errno == ENOSPC) /* no inodes left: the same file again */
		fd = open("/dev/shm/0-0", O_RDWR);
	return fd < 0 || flock(fd, LOCK_SH) ? -1 : 1;
}

static int leases(void)
{
	static char path[64];
	int fd;

	if (!path[0]) {
		const char *p = fresh("/dev/shm");

		for (int i = 0; (path[i] = p[i]); i++)
			;
		close(open(path, O_RDWR | O_CREAT, 0600));
	}
	fd = open(path, O_RDONLY);
	return fd < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) ? -1 : 1;
}

const struct mode lock_modes[] = {
	{ "POSIX locks", SPREAD, posix },
	{ "OFD locks", SPREAD, descriptions },
	{ "flock", SPREAD, whole },
	{ "leases", SPREAD, leases },
	{ 0 },
};
