/* TCP and MPTCP over the loopback interface. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char chunk[65536];

static struct sockaddr_in local(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int listener(struct sockaddr_in *a, int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, protocol), most = 1 << 30;

	*a = local(0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	if (bind(fd, (void *)a, sizeof(*a)) || listen(fd, 1 << 16))
		return -1;
	getsockname(fd, (void *)a, &(socklen_t){ sizeof(*a) });
	return fd;
}

static int connected(const struct sockaddr_in *a, int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, protocol), most = 1 << 30;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	if (connect(fd, (void *)a, sizeof(*a)) && errno != EINPROGRESS)
		return close(fd), -1;
	return fd;
}

static int listeners(void)
{
	struct sockaddr_in a;

	return kept(listener(&a, 0));
}

static int unconnected(void) { return kept(socket(AF_INET, SOCK_STREAM, 0)); }

/* Both ends of a connection, none of which reads. */
static int pair(int ends[2], int protocol)
{
	static struct sockaddr_in a;
	static int from = -1;

	if (from < 0 && (from = listener(&a, protocol)) < 0)
		return -1;
	ends[0] = connected(&a, protocol);
	if (ends[0] < 0)
		return -1;
	ends[1] = accept4(from, NULL, NULL, SOCK_NONBLOCK);
	return ends[1];
}

static int filled(int protocol)
{
	int ends[2], most = 1 << 30;

	if (pair(ends, protocol) < 0)
		return -1;
	setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	for (int i = 0; i < 2; i++)
		while (write(ends[i], chunk, sizeof(chunk)) > 0)
			;
	return 2;
}

static int tcp(void) { return filled(0); }
static int mptcp(void) { return filled(IPPROTO_MPTCP); }

static int pairs(void)
{
	int ends[2];

	return pair(ends, 0) < 0 ? -1 : 2;
}

/* Connections that are not accepted, whose client end is closed when its data is sent. */
static int waiting(bool data, bool stay)
{
	static struct sockaddr_in a;
	static int from = -1, n;
	int fd;

	if (from < 0 || n++ % 4000 == 3999)
		from = listener(&a, 0);
	if (from < 0)
		return -1;
	fd = connected(&a, 0);
	if (fd < 0)
		return -1;
	while (data && write(fd, chunk, sizeof(chunk)) > 0)
		;
	if (!stay)
		close(fd);
	return 1;
}

static int waiting_empty(void) { return waiting(false, false); }
static int waiting_full(void) { return waiting(true, false); }
static int waiting_open(void) { return waiting(true, true); }

/* Closed with data that the other end does not read. */
static int orphans(void)
{
	int ends[2], least = 1;

	if (pair(ends, 0) < 0)
		return -1;
	setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	while (write(ends[0], chunk, sizeof(chunk)) > 0)
		;
	return close(ends[0]) ? -1 : 1;
}

/* Each connection leaves its address and port in use for a minute. */
static int time_wait(void)
{
	static struct sockaddr_in a;
	static int from = -1, n;
	int ends[2];

	if (from < 0 || n++ % 20000 == 19999) {
		close(from);
		from = listener(&a, 0);
	}
	if (from < 0)
		return -1;
	ends[0] = connected(&a, 0);
	ends[1] = accept(from, NULL, NULL);
	if (ends[0] < 0 || ends[1] < 0)
		return -1;
	close(ends[0]);
	close(ends[1]);
	return 1;
}

/*
 * A byte here, and the rest of the page through another connection, which is read: the
 * byte holds the whole page, 32 KiB, and is charged as a byte.
 */
static int pages(void)
{
	static int target[2] = { -1, -1 }, drain[2], n, on = 1;
	ssize_t got;

	if (target[0] < 0 || n++ % 4000 == 3999) {
		if (target[0] < 0 && pair(drain, 0) < 0)
			return -1;
		if (pair(target, 0) < 0)
			return -1;
		setsockopt(target[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	if (write(target[0], "x", 1) < 0) {
		if (errno != EAGAIN)
			return -1;
		n = 3998;
		return 1;
	}
	for (int sent = 0; sent < 32768;) {
		got = write(drain[0], chunk, 32768 - sent);
		if (got < 0 && errno != EAGAIN)
			return -1;
		sent += got > 0 ? got : 0;
		while (read(drain[1], chunk, sizeof(chunk)) > 0)
			;
	}
	return 1;
}

const struct mode stream_modes[] = {
	{ "TCP sockets", SPREAD, unconnected },
	{ "TCP listeners", SPREAD, listeners },
	{ "TCP connections", SPREAD, pairs },
	{ "TCP filled", SPREAD, tcp },
	{ "TCP not accepted", SPREAD, waiting_empty },
	{ "TCP not accepted, filled", SPREAD, waiting_full },
	{ "TCP not accepted, filled, open", SPREAD, waiting_open },
	{ "TCP orphans", SPREAD, orphans },
	{ "TCP time wait", SINGLE, time_wait },
	{ "TCP page fragments", SINGLE, pages },
	{ "MPTCP filled", SPREAD, mptcp },
	{ 0 },
};
