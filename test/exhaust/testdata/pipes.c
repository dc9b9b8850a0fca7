/* Pipes, and pages that splice and sendfile move into pipes and sockets. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static char chunk[65536];

static int filled(int size)
{
	int ends[2], n = 0;

	if (pipe2(ends, O_NONBLOCK))
		return -1;
	if (size)
		fcntl(ends[1], F_SETPIPE_SZ, size);
	while (write(ends[1], chunk, sizeof(chunk)) > 0 || (n++, 0))
		;
	return 1;
}

static int pipes(void) { return filled(0); }
static int big_pipes(void) { return filled(1 << 20); }

static int empty_pipes(void)
{
	int ends[2];

	return pipe(ends) ? -1 : 1;
}

static int zero(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/zero", O_RDONLY);
	return fd;
}

/* The kernel reads into its own pages, and moves them to the pipe. */
static int spliced(void)
{
	int ends[2];

	if (pipe2(ends, O_NONBLOCK))
		return -1;
	if (splice(zero(), NULL, ends[1], NULL, 1 << 20, SPLICE_F_NONBLOCK) <= 0)
		return -1;
	return 1;
}

/* The same pages of a pipe in others. */
static int teed(void)
{
	static int source[2] = { -1, -1 };
	int ends[2];

	if (source[0] < 0) {
		if (pipe2(source, O_NONBLOCK))
			return -1;
		while (write(source[1], chunk, sizeof(chunk)) > 0)
			;
	}
	if (pipe2(ends, O_NONBLOCK))
		return -1;
	return tee(source[0], ends[1], 1 << 20, SPLICE_F_NONBLOCK) <= 0 ? -1 : 1;
}

/* As spliced, into both ends of a pair of sockets. */
static int sent(int in)
{
	int ends[2], most = 1 << 30;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		return -1;
	for (int i = 0; i < 2; i++) {
		setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
		errno = 0;
		while (sendfile(ends[i], in, NULL, 1 << 20) > 0)
			;
		if (errno != EAGAIN)
			return -1;
	}
	return 1;
}

static int sent_device(void) { return sent(zero()); }

static int spliced_socket(void)
{
	static int through[2] = { -1, -1 };
	int ends[2], most = 1 << 30;
	ssize_t n;

	if (through[0] < 0 && pipe2(through, O_NONBLOCK))
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		return -1;
	for (int i = 0; i < 2; i++) {
		setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
		do {
			n = splice(zero(), NULL, through[1], NULL, 65536, SPLICE_F_NONBLOCK);
			if (n < 0 && errno != EAGAIN)
				return -1;
			n = splice(through[0], NULL, ends[i], NULL, 65536, SPLICE_F_NONBLOCK);
		} while (n > 0);
	}
	return 1;
}

const struct mode pipe_modes[] = {
	{ "pipes", SPREAD, empty_pipes },
	{ "pipes filled", SPREAD, pipes },
	{ "pipes of 1 MiB filled", SPREAD, big_pipes },
	{ "pipes by splice", SPREAD, spliced },
	{ "pipes by tee", SPREAD, teed },
	{ "sockets by sendfile", SPREAD, sent_device },
	{ "sockets by splice", SPREAD, spliced_socket },
	{ 0 },
};
