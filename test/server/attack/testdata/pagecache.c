/*
 * pagecache: asks the kernel without end to remove the pages of files from the page cache, and to
 * read them into it.
 *
 *     pagecache FILE...
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 1 << 20, COLD = 20, PAGEOUT = 21 };

int main(int argc, char **argv)
{
	for (int i = 1;; i = i + 1 < argc ? i + 1 : 1) {
		int fd = argc > 1 ? open(argv[i], O_RDONLY) : -1;

		if (argc < 2)
			return 2;
		if (fd < 0)
			continue;
		syscall(SYS_fadvise64, fd, 0L, 0L, POSIX_FADV_DONTNEED);
		syscall(SYS_readahead, fd, 0L, (long)SIZE);
		syscall(SYS_fadvise64, fd, 0L, 0L, POSIX_FADV_WILLNEED);
		void *p = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			madvise(p, SIZE, MADV_WILLNEED);
			madvise(p, SIZE, COLD);
			madvise(p, SIZE, PAGEOUT);
			munmap(p, SIZE);
		}
		close(fd);
	}
}
