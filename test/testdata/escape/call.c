/*
 * call: makes system calls by number, without a C library.
 *
 *     call NR,ARG,...  NR,ARG,...
 *
 * An argument is a number, or z for the address of 4096 zero bytes, t for the address of
 * "/tmp", sTEXT for that of a text, iNUMBER for that of an int, or r for the result of the
 * call before. It prints one line for each call: its errno, 0 for success. The words int80
 * and x32 call getpid with the ABI of another architecture.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char zeros[4096] __attribute__((aligned(4096)));

static long result;

static long argument(const char *s)
{
	static int number;

	switch (*s) {
	case 'i':
		number = atoi(s + 1);
		return (long)&number;
	case 'r':
		return result;
	case 's':
		return (long)(s + 1);
	case 'z':
		return (long)zeros;
	case 't':
		return (long)"/tmp";
	}
	return (long)strtoull(s, NULL, 0);
}

#ifdef __x86_64__
static void foreign(int x32)
{
	if (x32)
		syscall(0x40000000 | 39);
	else
		__asm__ volatile("int $0x80" : : "a"(20) : "memory");
}
#else
static void foreign(int x32) { raise(31); } /* no other ABI here: die as the filter would have it */
#endif

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		long a[7] = { 0 };

		if (!strcmp(argv[i], "int80") || !strcmp(argv[i], "x32")) {
			foreign(argv[i][0] == 'x');
			puts("alive");
			continue;
		}
		int n = 0;
		for (char *s = strtok(argv[i], ","); s && n < 7; s = strtok(NULL, ","))
			a[n++] = argument(s);
		memset(zeros, 0, sizeof(zeros));
		errno = 0;
		result = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
		printf("%d\n", errno);
		fflush(stdout);
	}
	return 0;
}
