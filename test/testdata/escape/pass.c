/*
 * pass: passes its descriptors to other processes.
 *
 *     pass give PATH       sends its descriptors 1 to 3 to the process that listens at PATH
 *     pass take PATH       listens, prints "up", and holds what it receives
 *     pass flood PATH      does so, writes to them without end, and makes PATH.full after 2 MiB
 *     pass call PATH       does so, and writes calls of function 2 to the third of them
 *     pass bury            sends them, and the socket, into a socket that no process reads
 *     pass daemon          holds them in an orphaned process
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MANY = 3 };

static struct msghdr message(struct iovec *v, void *control, size_t size)
{
	return (struct msghdr){ .msg_iov = v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = size };
}

static int send_to(int socket, const int *fds, int n)
{
	char byte = 0, control[CMSG_SPACE(8 * sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = message(&v, control, CMSG_SPACE(n * sizeof(int)));
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return sendmsg(socket, &m, 0) == 1 ? 0 : 1;
}

/* calls writes frames of internal/wire until no process reads them. There are so few that
 * the host accepts that the results are not read. */
static void calls(int fd)
{
	unsigned char frame[] = { 0, 0, 0, 18, 3, 0, 0, 0, 0, 0, 0, 0, 2, '[', '"', 'g', 'i', 'v', 'e', 'n', '"', ']' };

	for (unsigned n = 1; write(fd, frame, sizeof(frame)) == sizeof(frame); n++) {
		for (int i = 0; i < 4; i++)
			frame[5 + i] = n >> (24 - 8 * i);
		usleep(200);
	}
}

static void flood(const int *fds, const char *path)
{
	char block[4096], full[128];

	memset(block, 0xff, sizeof(block));
	snprintf(full, sizeof(full), "%s.full", path);
	for (int n = 1, alive = 1; alive; n++) {
		alive = 0;
		for (int i = 0; i < MANY; i++)
			alive |= write(fds[i], block, sizeof(block)) > 0;
		if (n == (2 << 20) / (int)sizeof(block))
			close(open(full, O_CREAT | O_WRONLY, 0600));
	}
	_exit(0);
}

static int take(struct sockaddr_un *at, char how)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(s, (void *)at, sizeof(*at)) || listen(s, 8))
		return 1;
	puts("up");
	fflush(stdout);
	for (;;) {
		char byte, control[CMSG_SPACE(MANY * sizeof(int))];
		struct iovec v = { &byte, 1 };
		struct msghdr m = message(&v, control, sizeof(control));
		int fds[MANY], from = accept(s, NULL, NULL);

		if (from < 0 || recvmsg(from, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
			return 1;
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fds));
		puts("taken");
		fflush(stdout);
		if (how == 'c' && fork() == 0) {
			calls(fds[2]);
			puts("over");
			fflush(stdout);
			_exit(0);
		}
		if (how == 'f' && fork() == 0)
			flood(fds, at->sun_path);
		if (write(from, "k", 1) != 1)
			return 1;
		close(from);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fds[] = { 1, 2, 3, 0, 0 }, pair[2];
	char byte;

	if (argc < 2)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	if (argc > 2)
		strncpy(at.sun_path, argv[2], sizeof(at.sun_path) - 1);
	if (!strcmp(argv[1], "take") || !strcmp(argv[1], "flood") || !strcmp(argv[1], "call"))
		return take(&at, argv[1][0]);
	if (!strcmp(argv[1], "give")) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		return connect(s, (void *)&at, sizeof(at)) || send_to(s, fds, MANY) || read(s, &byte, 1) != 1;
	}
	if (!strcmp(argv[1], "bury")) {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
			return 1;
		fds[3] = pair[0];
		fds[4] = pair[1];
		return send_to(pair[0], fds, 5) || send_to(pair[1], fds, 5);
	}
	if (fork())
		return 0;
	setsid();
	if (fork())
		return 0;
	for (;;)
		pause();
}
