// Connects to each "host port" of its arguments. It prints the first bytes
// that it got, or the errno. A host is an address in any form that
// inet_aton or inet_pton accepts, with the name of an interface after %.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static socklen_t parse(char *host, int port, struct sockaddr_storage *to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	memset(to, 0, sizeof *to);
	if (inet_aton(host, &v4->sin_addr)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof *v4;
	}
	char *zone = strchr(host, '%');
	if (zone) {
		*zone = 0;
		v6->sin6_scope_id = if_nametoindex(zone + 1);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 ? sizeof *v6 : 0;
}

static void try_one(char *host, const char *port)
{
	struct sockaddr_storage to;
	char buf[64];
	socklen_t len = parse(host, atoi(port), &to);
	int fd = socket(to.ss_family, SOCK_STREAM, 0);
	if (!len || fd < 0 || connect(fd, (struct sockaddr *)&to, len) != 0) {
		printf("%s\n", len ? strerrorname_np(errno) : "no-address");
		close(fd);
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
