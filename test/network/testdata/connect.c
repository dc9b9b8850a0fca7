// Connects to each "host port" of its arguments, and prints
// the first bytes that it got, or the errno.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void try_one(const char *host, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	char buf[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || inet_pton(AF_INET, host, &to.sin_addr) != 1 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
		printf("%s\n", strerrorname_np(errno));
		return;
	}
	ssize_t n = read(fd, buf, sizeof buf - 1);
	if (n < 0) {
		printf("%s\n", strerrorname_np(errno));
	} else {
		buf[n] = 0;
		printf("got %s\n", buf);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2)
		try_one(argv[i], argv[i + 1]);
	return 0;
}
