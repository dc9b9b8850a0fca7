/*
 * net: tries to use the network.
 *
 *     net sockets          each possible family and type: "FAMILY TYPE ERRNO"
 *     net pairs            the same of socketpair
 *     net device           whether lo is up, asked by a socket of AF_UNIX
 *     net descriptors      inherited sockets: "FD FAMILY"
 *     net ways PORT        listens there, and connects in each way: "WAY ERRNO reached|-"
 *     net outside PORT     other hosts: "WAY ERRNO"
 *     net local            a server and a client each of TCP and UDP, IPv4 and IPv6: "WAY ERRNO"
 *     net get PORT         connects: an errno
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MPTCP = 262, SCTP = 132, UDPLITE = 136, FASTOPEN_CONNECT = 30 };

union any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static const char *said(long n) { return n < 0 ? strerrorname_np(errno) : "ok"; }

static union any address(const char *host, int port)
{
	union any a = { 0 };

	if (strchr(host, ':')) {
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = htons(port);
		inet_pton(AF_INET6, host, &a.in6.sin6_addr);
	} else {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
		inet_pton(AF_INET, host, &a.in.sin_addr);
	}
	return a;
}

static socklen_t size(const union any *a) { return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in); }

static long to(int s, const char *host, int port)
{
	union any a = address(host, port);

	return s < 0 ? -1 : connect(s, &a.sa, size(&a));
}

static int tcp(void) { return socket(AF_INET, SOCK_STREAM, 0); }

/* ---- ways to a port ---- */

static long way4(int port) { return to(tcp(), "127.0.0.1", port); }
static long any4(int port) { return to(tcp(), "0.0.0.0", port); }
static long other4(int port) { return to(tcp(), "127.9.9.9", port); }
static long way6(int port) { return to(socket(AF_INET6, SOCK_STREAM, 0), "::1", port); }
static long mapped(int port) { return to(socket(AF_INET6, SOCK_STREAM, 0), "::ffff:127.0.0.1", port); }
static long mptcp(int port) { return to(socket(AF_INET, SOCK_STREAM, MPTCP), "127.0.0.1", port); }
static long mptcp_flags(int port) { return to(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, MPTCP), "::ffff:127.0.0.1", port); }
static long sctp(int port) { return to(socket(AF_INET, SOCK_STREAM, SCTP), "127.0.0.1", port); }
static long sctp_packets(int port) { return to(socket(AF_INET, SOCK_SEQPACKET, SCTP), "127.0.0.1", port); }
static long smc(int port) { return to(socket(43, SOCK_STREAM, 0), "127.0.0.1", port); }
static long smc_tcp(int port) { return to(socket(AF_INET, SOCK_STREAM, 256), "127.0.0.1", port); }

static long polled(int port)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	long n = to(s, "127.0.0.1", port);

	return n < 0 && errno == EINPROGRESS ? 0 : n;
}

static long twice(int port) /* AF_UNSPEC removes the address again */
{
	int s = tcp();
	union any a = { .sa.sa_family = AF_UNSPEC };

	connect(s, &a.sa, sizeof(a.in));
	return to(s, "127.0.0.1", port);
}

static long unspecified(int port)
{
	union any a = address("127.0.0.1", port);

	a.sa.sa_family = AF_UNSPEC;
	connect(tcp(), &a.sa, sizeof(a.in));
	return 0; /* it only matters that nothing is reached */
}

static long foreign(int port) /* an IPv4 address in a socket of IPv6 */
{
	return to(socket(AF_INET6, SOCK_STREAM, 0), "127.0.0.1", port);
}

static long send_to(int port)
{
	union any a = address("127.0.0.1", port);

	return sendto(tcp(), "x", 1, MSG_FASTOPEN, &a.sa, size(&a));
}

static struct mmsghdr message(union any *a, int flags)
{
	static struct iovec v = { "x", 1 };

	return (struct mmsghdr){ .msg_hdr = { .msg_name = a, .msg_namelen = size(a), .msg_iov = &v, .msg_iovlen = 1, .msg_flags = flags } };
}

static long send_message(int port)
{
	union any a = address("127.0.0.1", port);
	struct mmsghdr m = message(&a, 0);

	return sendmsg(tcp(), &m.msg_hdr, MSG_FASTOPEN);
}

static long send_messages(int port)
{
	union any a = address("127.0.0.1", port);
	struct mmsghdr m = message(&a, 0);

	return sendmmsg(tcp(), &m, 1, MSG_FASTOPEN);
}

static long flagged(int port) /* the kernel reads the flags of the call, not those here */
{
	union any a = address("127.0.0.1", port);
	struct mmsghdr m = message(&a, MSG_FASTOPEN);

	sendmmsg(tcp(), &m, 1, MSG_NOSIGNAL);
	return 0;
}

static long high_bits(int port) /* of the register, which the kernel drops */
{
	union any a = address("127.0.0.1", port);

	return syscall(SYS_sendto, (long)tcp(), "x", 1L, MSG_FASTOPEN | (1L << 40), &a, (long)size(&a));
}

static long fast_connect(int port)
{
	int s = tcp(), on = 1;

	setsockopt(s, IPPROTO_TCP, FASTOPEN_CONNECT, &on, sizeof(on));
	long n = to(s, "127.0.0.1", port);
	return n < 0 ? n : write(s, "x", 1);
}

static long datagram_to(const char *host, int port)
{
	union any a = address(host, port);
	int s = socket(a.sa.sa_family, SOCK_DGRAM, 0);

	return s < 0 ? -1 : sendto(s, "x", 1, 0, &a.sa, size(&a));
}

static long datagram(int port) { return datagram_to("127.0.0.1", port); }

static long lite(int port) { return to(socket(AF_INET, SOCK_DGRAM, UDPLITE), "127.0.0.1", port); }

static long ring(int port)
{
	char parameters[120] = { 0 };

	return syscall(SYS_io_uring_setup, 8, parameters);
}

static const struct {
	const char *name;
	long (*go)(int port);
} ways[] = {
	{ "connect", way4 }, { "any", any4 }, { "other", other4 }, { "ipv6", way6 }, { "mapped", mapped }, { "polled", polled },
	{ "twice", twice }, { "unspecified", unspecified }, { "foreign", foreign }, { "sendto", send_to }, { "sendmsg", send_message },
	{ "sendmmsg", send_messages }, { "flagged", flagged }, { "high", high_bits }, { "fastopen", fast_connect },
	{ "mptcp", mptcp }, { "mptcp-flags", mptcp_flags }, { "sctp", sctp }, { "sctp-packets", sctp_packets },
	{ "smc", smc }, { "smc-tcp", smc_tcp }, { "udp", datagram }, { "udplite", lite }, { "io_uring", ring },
};

static int server(const char *host, int type, int port)
{
	union any a = address(host, port);
	int s = socket(a.sa.sa_family, type | SOCK_NONBLOCK, 0), on = 1;

	if (s < 0)
		return -1;
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, &a.sa, size(&a)) || (type == SOCK_STREAM && listen(s, 64)))
		return -1;
	return s;
}

/* Accepts and reads what a server received, and returns whether there was anything. */
static int reached(int s, int type, int wait)
{
	struct pollfd p = { s, POLLIN, 0 };
	char byte;

	if (s < 0 || poll(&p, 1, wait) < 1)
		return 0;
	if (type == SOCK_DGRAM)
		return recv(s, &byte, 1, 0) == 1;
	return accept(s, NULL, NULL) >= 0;
}

static int all_ways(int port)
{
	int streams = server("::", SOCK_STREAM, port), datagrams = server("127.0.0.1", SOCK_DGRAM, port);

	if (streams < 0)
		streams = server("0.0.0.0", SOCK_STREAM, port);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		errno = 0;
		long n = ways[i].go(port);
		const char *how = said(n);
		int got = reached(streams, SOCK_STREAM, 30) | reached(datagrams, SOCK_DGRAM, 0);
		printf("%s %s %s\n", ways[i].name, how, got ? "reached" : "-");
	}
	return 0;
}

static void print(const char *name, long n) { printf("%s %s\n", name, said(n)); }

static int outside(int port)
{
	print("tcp4", to(tcp(), "192.0.2.1", port));
	print("tcp6", to(socket(AF_INET6, SOCK_STREAM, 0), "2001:db8::1", port));
	print("metadata", to(tcp(), "169.254.169.254", port));
	print("multicast", datagram_to("224.0.0.1", port));
	print("udp4", datagram_to("192.0.2.1", port));
	print("udp6", datagram_to("2001:db8::1", port));
	return 0;
}

static int local(void)
{
	static const struct { const char *name, *host; int type; } all[] = {
		{ "tcp4", "127.0.0.1", SOCK_STREAM }, { "tcp6", "::1", SOCK_STREAM },
		{ "udp4", "127.0.0.1", SOCK_DGRAM }, { "udp6", "::1", SOCK_DGRAM },
	};
	for (int i = 0; i < 4; i++) {
		int s = server(all[i].host, all[i].type, 7000);
		int c = s < 0 ? -1 : socket(strchr(all[i].host, ':') ? AF_INET6 : AF_INET, all[i].type, 0);
		long n = c < 0 ? -1 : to(c, all[i].host, 7000);

		if (n == 0)
			n = write(c, "x", 1);
		if (n == 1 && !reached(s, all[i].type, 1000))
			errno = ETIME, n = -1;
		print(all[i].name, n);
		close(c);
		close(s);
	}
	return 0;
}

static int sockets(int pairs)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP, 10 };
	int pair[2];

	for (int family = 0; family < 48; family++)
		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
			int n = pairs ? socketpair(family, types[i], 0, pair) : socket(family, types[i], 0);
			printf("%d %d %s\n", family, types[i], said(n));
		}
	return 0;
}

static int device(void)
{
	struct ifreq r = { .ifr_name = "lo" };
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (ioctl(s, SIOCGIFFLAGS, &r))
		return puts(strerrorname_np(errno)) < 0;
	puts(r.ifr_flags & IFF_UP ? "up" : "down");
	r.ifr_flags |= IFF_UP;
	puts(said(ioctl(s, SIOCSIFFLAGS, &r)));
	return 0;
}

static int descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		int family;
		socklen_t n = sizeof(family);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) == 0)
			printf("%d %d\n", fd, family);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";

	if (!strcmp(verb, "sockets") || !strcmp(verb, "pairs"))
		return sockets(verb[0] == 'p');
	if (!strcmp(verb, "device"))
		return device();
	if (!strcmp(verb, "descriptors"))
		return descriptors();
	if (!strcmp(verb, "ways"))
		return all_ways(atoi(arg));
	if (!strcmp(verb, "outside"))
		return outside(atoi(arg));
	if (!strcmp(verb, "local"))
		return local();
	if (!strcmp(verb, "get"))
		return puts(said(to(tcp(), "127.0.0.1", atoi(arg)))) < 0;
	return 2;
}
