// Asks the host for a command's pipes by the system call, as the command would. Prints the errno.
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int main(void) {
	int fd = socket(0x67616f6c, SOCK_CLOEXEC, 9);
	printf("%d\n", fd < 0 ? errno : 0);
	return 0;
}
