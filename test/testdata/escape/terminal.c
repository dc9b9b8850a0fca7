/*
 * terminal: types into its own controlling terminal (CVE-2017-5226) and prints the errno
 * of each encoding of the request.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	static const unsigned long requests[] = { TIOCSTI, TIOCSTI | 1UL << 32, TIOCSTI | 0xffffffffUL << 32, 0x541c /* TIOCLINUX */ };
	char c = 'x';

	printf("/dev/tty %d\n", open("/dev/tty", O_RDWR) < 0 ? errno : 0);
	fflush(stdout);
	if (fork() == 0) { /* a group leader cannot create a session */
		setsid();
		int m = posix_openpt(O_RDWR | O_NOCTTY);
		unlockpt(m);
		int s = open(ptsname(m), O_RDWR);
		if (s < 0 || (ioctl(s, TIOCSCTTY, 0) && errno != EPERM))
			printf("no terminal %d\n", errno);
		for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
			printf("%#lx %d\n", requests[i], syscall(SYS_ioctl, s, requests[i], &c) ? errno : 0);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
