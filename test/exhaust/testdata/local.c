/* Sockets that need no network: unix and netlink. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char chunk[65536];

static int pairs(void)
{
	int ends[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ? -1 : 2;
}

static int filled(int type, size_t size)
{
	int ends[2], most = 1 << 30;

	if (socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends))
		return -1;
	for (int i = 0; i < 2; i++) {
		setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
		while (write(ends[i], chunk, size) > 0)
			;
	}
	return 2;
}

static int streams(void) { return filled(SOCK_STREAM, sizeof(chunk)); }
static int datagrams(void) { return filled(SOCK_DGRAM, 1); }
static int bytes(void) { return filled(SOCK_STREAM, 1); }

/* Sends descriptors over fd and closes them here. */
static int pass(int fd, const int *fds, int n)
{
	union { char buffer[CMSG_SPACE(253 * sizeof(int))]; struct cmsghdr align; } control;
	struct iovec v = { .iov_base = "x", .iov_len = 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	memset(&control, 0, sizeof(control));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return sendmsg(fd, &m, MSG_DONTWAIT) < 0 ? -1 : n;
}

/* Socket descriptors that no process has open, because each is in the queue of another. */
static int in_flight(void)
{
	static int last[2] = { -1, -1 };
	int next[2], most = 1 << 30, n = 0;

	if (last[0] < 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, last))
		return -1;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, next))
		return -1;
	setsockopt(next[0], SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	n = pass(next[0], last, 2);
	close(last[0]);
	close(last[1]);
	last[0] = next[0];
	last[1] = next[1];
	return n;
}

static int bound(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0)
		return -1;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (path[0] == '@')
		a.sun_path[0] = 0;
	return bind(fd, (void *)&a, sizeof(a)) ? -1 : 1;
}

static int named(void) { return bound(fresh("/dev/shm")); }
static int abstract(void) { return bound(fresh("@")); }

/* Connections that are not accepted. */
static int waiting(void)
{
	static struct sockaddr_un a = { .sun_family = AF_UNIX };
	static socklen_t size = sizeof(a);
	static int listener = -1;
	int fd;

	if (listener < 0) {
		listener = socket(AF_UNIX, SOCK_STREAM, 0);
		if (listener < 0 || bind(listener, (void *)&a, sizeof(a.sun_family)) || listen(listener, 4096))
			return -1;
		getsockname(listener, (void *)&a, &size);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (void *)&a, size))
		return -1;
	while (write(fd, chunk, sizeof(chunk)) > 0)
		;
	return 1;
}

/* Requests lists, and errors, until the answers fill the buffer. They are never read. */
static int asked(int type, int flags)
{
	struct { struct nlmsghdr h; struct rtgenmsg g; } q = {
		{ sizeof(q), type, NLM_F_REQUEST | flags, 1, 0 }, { AF_UNSPEC } };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), most = 1 << 30, n;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (n = 0; n < 2000 && send(fd, &q, sizeof(q), 0) > 0; n++)
		;
	return 1;
}

static int links(void) { return asked(RTM_GETLINK, NLM_F_DUMP); }
static int link_answers(void) { return asked(RTM_GETLINK, 0); }
static int address_errors(void) { return asked(RTM_NEWADDR, NLM_F_ACK); }
static int netlink(void) { return kept(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)); }

const struct mode local_modes[] = {
	{ "unix pairs", SPREAD, pairs },
	{ "unix streams filled", SPREAD, streams },
	{ "unix streams filled by bytes", SPREAD, bytes },
	{ "unix datagrams filled", SPREAD, datagrams },
	{ "unix descriptors in flight", SPREAD, in_flight },
	{ "unix named", SPREAD, named },
	{ "unix abstract", SPREAD, abstract },
	{ "unix not accepted", SPREAD, waiting },
	{ "netlink", SPREAD, netlink },
	{ "netlink lists", SPREAD, links },
	{ "netlink answers", SPREAD, link_answers },
	{ "netlink errors", SPREAD, address_errors },
	{ 0 },
};
