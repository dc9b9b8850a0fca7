/*
 * cache: uses the page cache of files as a channel, without the right to write to them.
 *
 *     cache METHOD FILE...
 *
 * Methods that send try to remove the first page of each file. They print the errno of the
 * last call that failed, or 0. Methods that receive print a digit for each file: 1 if its
 * first page is not cached, 0 if it is, and ? if the kernel does not report it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, CACHESTAT = 451, NOWAIT = 8, DONTCACHE = 0x80, COLD = 20, PAGEOUT = 21 };

static char page[PAGE] __attribute__((aligned(PAGE)));
static int failed;

static void note(long result)
{
	if (result < 0)
		failed = errno;
}

/* A fault maps cached neighbours in its own 64 KiB only, so the address must not be random. */
static char *map(int fd)
{
	char *p = mmap((void *)(1UL << 44), 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

/* ---- sending ---- */

static void fadvise(int fd) { note(syscall(SYS_fadvise64, fd, 0, PAGE, POSIX_FADV_DONTNEED)); }

static void advise(int fd, int advice)
{
	char *p = map(fd);

	page[0] += p[0];
	note(madvise(p, PAGE, advice));
	munmap(p, 2 * PAGE);
}

static void pageout(int fd) { advise(fd, PAGEOUT); }
static void cold(int fd) { advise(fd, COLD); }
static void dontneed(int fd) { advise(fd, MADV_DONTNEED); }
static void removed(int fd) { advise(fd, MADV_REMOVE); }

static void dontcache(int fd)
{
	struct iovec v = { page, PAGE };

	note(syscall(SYS_preadv2, fd, &v, 1, 0L, 0L, DONTCACHE));
}

static void direct(int fd)
{
	note(fcntl(fd, F_SETFL, O_DIRECT));
	note(pread(fd, page, PAGE, 0));
}

static void sync_range(int fd) { note(sync_file_range(fd, 0, PAGE, 7)); }

static void punch(int fd) { note(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE)); }

/* ---- receiving ---- */

static int nowait(int fd)
{
	struct iovec v = { page, 1 };
	long n = syscall(SYS_preadv2, fd, &v, 1, 0L, 0L, NOWAIT);

	return n == 1 ? '0' : errno == EAGAIN ? '1' : '?';
}

static int cachestat(int fd)
{
	uint64_t range[2] = { 0, PAGE }, stat[5];

	return syscall(CACHESTAT, fd, range, stat, 0) ? '?' : stat[0] ? '0' : '1';
}

static int residence(int fd)
{
	unsigned char here = 0;
	char *p = map(fd);
	int result = mincore(p, PAGE, &here) ? '?' : here & 1 ? '0' : '1';

	munmap(p, 2 * PAGE);
	return result;
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_majflt;
}

/* Reads the page, which is then cached: a receiver can do this once. */
static int fault(int fd)
{
	char *p = map(fd);
	long before = faults();

	madvise(p, 2 * PAGE, MADV_RANDOM);
	page[0] += *(volatile char *)p;
	long after = faults();
	munmap(p, 2 * PAGE);
	return after > before ? '1' : '0';
}

/* A fault of the second page, which is cached, maps the first one too if it is cached. */
static int neighbour(int fd)
{
	char *p = map(fd);
	uint64_t entry = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);

	page[0] += *(volatile char *)(p + PAGE);
	ssize_t n = pread(pagemap, &entry, sizeof(entry), (uintptr_t)p / PAGE * sizeof(entry));
	close(pagemap);
	munmap(p, 2 * PAGE);
	return n != sizeof(entry) ? '?' : entry >> 63 ? '0' : '1';
}

static const struct {
	const char *name;
	void (*send)(int);
	int (*receive)(int);
} methods[] = {
	{ "fadvise", fadvise, NULL }, { "pageout", pageout, NULL }, { "cold", cold, NULL }, { "dontneed", dontneed, NULL },
	{ "remove", removed, NULL }, { "dontcache", dontcache, NULL }, { "direct", direct, NULL }, { "sync", sync_range, NULL },
	{ "punch", punch, NULL },
	{ "nowait", NULL, nowait }, { "cachestat", NULL, cachestat }, { "mincore", NULL, residence }, { "fault", NULL, fault },
	{ "neighbour", NULL, neighbour },
};

int main(int argc, char **argv)
{
	for (size_t m = 0; m < sizeof(methods) / sizeof(*methods); m++) {
		if (argc < 2 || strcmp(argv[1], methods[m].name))
			continue;
		for (int i = 2; i < argc; i++) {
			int fd = open(argv[i], O_RDONLY);

			if (fd < 0) {
				perror(argv[i]);
				return 1;
			}
			if (methods[m].send)
				methods[m].send(fd);
			else
				putchar(methods[m].receive(fd));
			close(fd);
		}
		if (methods[m].send)
			printf("%d", failed);
		putchar('\n');
		return 0;
	}
	return 2;
}
