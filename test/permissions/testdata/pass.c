/*
 * pass: passes a TCP socket to another process.
 *
 *     pass give PATH    listens at port 7001; sends a new socket to the client at PATH;
 *                       prints "reached" if that connects, "-" if it does not
 *     pass take PATH    tries to create one, receives that one, and connects it: an errno's name,
 *                       or "ok", for each of the two
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *said(long n) { return n < 0 ? strerrorname_np(errno) : "ok"; }

static int tcp(void) { return socket(AF_INET, SOCK_STREAM, 0); }

static struct sockaddr_in port(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(7001), .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int at(const char *path, int listens)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	if (listens ? bind(s, (void *)&a, sizeof(a)) || listen(s, 1) : connect(s, (void *)&a, sizeof(a)))
		return -1;
	return s;
}

static int hand(int over, int *fd, int receive)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };

	if (receive) {
		if (recvmsg(over, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
			return -1;
		memcpy(fd, CMSG_DATA(&control.head), sizeof(int));
		return 0;
	}
	control.head = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), fd, sizeof(int));
	return sendmsg(over, &m, 0) == 1 ? 0 : -1;
}

static int give(const char *path)
{
	struct sockaddr_in a = port();
	int listener = at(path, 1), server = tcp(), fresh = tcp();
	struct pollfd p = { server, POLLIN, 0 };

	puts(listener < 0 || bind(server, (void *)&a, sizeof(a)) || listen(server, 1) ? said(-1) : "up");
	fflush(stdout);
	int over = accept(listener, NULL, NULL);
	char byte;
	if (hand(over, &fresh, 0) || read(over, &byte, 1) < 0) /* wait until the other has tried */
		return 1;
	puts(poll(&p, 1, 0) == 1 ? "reached" : "-");
	return 0;
}

static int take(const char *path)
{
	struct sockaddr_in a = port();
	int fd = -1;

	if (hand(at(path, 0), &fd, 1))
		return 1;
	puts(said(tcp()));
	puts(said(connect(fd, (void *)&a, sizeof(a))));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	return argv[1][0] == 'g' ? give(argv[2]) : take(argv[2]);
}
