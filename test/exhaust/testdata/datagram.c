/* UDP over the loopback interface. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char chunk[65000];

static int bound(struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), most = 1 << 30;

	*a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (void *)a, sizeof(*a)))
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	getsockname(fd, (void *)a, &(socklen_t){ sizeof(*a) });
	return fd;
}

static int plain(void)
{
	struct sockaddr_in a;

	return kept(bound(&a));
}

/* To itself, until the receive buffer drops the rest. */
static int filled(size_t size)
{
	struct sockaddr_in a;
	int fd = bound(&a);

	if (fd < 0)
		return -1;
	for (size_t sent = 0; sent < 500000; sent += size + 700)
		sendto(fd, chunk, size, 0, (void *)&a, sizeof(a));
	return 1;
}

static int big(void) { return filled(sizeof(chunk)); }
static int small(void) { return filled(1); }

/* A corked datagram stays in the send queue, which is not charged. */
static int corked(void)
{
	struct sockaddr_in a;
	int fd = bound(&a);

	if (fd < 0)
		return -1;
	return sendto(fd, chunk, sizeof(chunk), MSG_MORE, (void *)&a, sizeof(a)) < 0 ? -1 : 1;
}

/* Copies of sent datagrams with their time stamps, which are never read. */
static int stamped(void)
{
	struct sockaddr_in a;
	int fd = bound(&a), what = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &what, sizeof(what)))
		return -1;
	a.sin_port = htons(9); /* no process listens there */
	for (int i = 0; i < 20; i++)
		sendto(fd, chunk, sizeof(chunk), 0, (void *)&a, sizeof(a));
	return 1;
}

/* Network errors that are never read. */
static int errors(void)
{
	struct sockaddr_in a;
	int fd = bound(&a), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof(on)))
		return -1;
	a.sin_port = htons(9);
	for (int i = 0; i < 1000; i++)
		sendto(fd, chunk, 1000, 0, (void *)&a, sizeof(a));
	return 1;
}

/* The kernel keeps the addresses that it has sent to in one table for all namespaces. */
static int neighbours(void)
{
	static int fd = -1;
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_scope_id = 1 };

	if (fd < 0 && (fd = socket(AF_INET6, SOCK_DGRAM, 0)) < 0)
		return -1;
	a.sin6_addr.s6_addr[0] = 0xff;
	a.sin6_addr.s6_addr[1] = 0x02;
	memcpy(&a.sin6_addr.s6_addr[8], &worker, 4);
	memcpy(&a.sin6_addr.s6_addr[12], &steps, 4);
	return sendto(fd, "", 0, 0, (void *)&a, sizeof(a)) < 0 ? -1 : 1;
}

const struct mode datagram_modes[] = {
	{ "UDP sockets", SPREAD, plain },
	{ "UDP filled", SPREAD, big },
	{ "UDP filled by bytes", SPREAD, small },
	{ "UDP corked", SPREAD, corked },
	{ "UDP time stamps", SPREAD, stamped },
	{ "UDP errors", SPREAD, errors },
	{ "IPv6 neighbours", SPREAD, neighbours },
	{ 0 },
};
