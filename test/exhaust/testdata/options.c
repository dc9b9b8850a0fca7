/* Memory that socket options hold. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Groups with as many sources as possible: 20 groups, 10 sources. */
static int groups4(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), n = 0;
	static unsigned next;

	if (fd < 0)
		return -1;
	for (int g = 0; g < 20; g++) {
		struct ip_mreq_source r = {
			.imr_multiaddr.s_addr = htonl(0xe0010000 + (worker << 18) + next++),
			.imr_interface.s_addr = htonl(INADDR_LOOPBACK),
		};

		for (int s = 1; s <= 10; s++) {
			r.imr_sourceaddr.s_addr = htonl(0x7f000000 + s);
			if (setsockopt(fd, SOL_IP, IP_ADD_SOURCE_MEMBERSHIP, &r, sizeof(r)))
				return n ? n : -1;
			n++;
		}
	}
	return n;
}

static int groups6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), n;
	static unsigned next;

	if (fd < 0)
		return -1;
	for (n = 0; n < 4000 && going(); n++) {
		struct ipv6_mreq r = { .ipv6mr_interface = 1 };

		inet_pton(AF_INET6, "ff01::", &r.ipv6mr_multiaddr);
		memcpy(&r.ipv6mr_multiaddr.s6_addr[8], &worker, 4);
		memcpy(&r.ipv6mr_multiaddr.s6_addr[12], &next, 4);
		next++;
		if (setsockopt(fd, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &r, sizeof(r)))
			return n ? n : -1;
	}
	return n;
}

/* Options for outgoing packets: 64 KiB, of which the kernel checks the first few bytes. */
static int sticky(void)
{
	static union { char bytes[65000]; struct cmsghdr h; } text;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0)
		return -1;
	text.h.cmsg_level = SOL_SOCKET + 100;
	text.h.cmsg_len = sizeof(text);
	return setsockopt(fd, SOL_IPV6, IPV6_2292PKTOPTIONS, &text, sizeof(text)) ? -1 : 1;
}

static int ip_options(void)
{
	static const unsigned char nothing[40] = { 1 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd < 0 || setsockopt(fd, SOL_IP, IP_OPTIONS, nothing, sizeof(nothing)) ? -1 : 1;
}

struct label { struct in6_addr to; uint32_t label; uint8_t action, share; uint16_t flags, expires, linger; uint32_t pad; };

static int labels(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), n;

	if (fd < 0)
		return -1;
	for (n = 0; n < 64; n++) {
		struct label l = { .to = in6addr_loopback, .action = 0, .share = 255, .flags = 1, .linger = 6, .expires = 6 };

		l.label = htonl(1 + worker * 4096 + steps * 64 + n);
		if (setsockopt(fd, SOL_IPV6, 32 /* IPV6_FLOWLABEL_MGR */, &l, sizeof(l)))
			return n ? n : -1;
	}
	return n;
}

/* Keys for signed segments, one for each peer. */
static int keys(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), n;

	if (fd < 0)
		return -1;
	for (n = 0; n < 2000; n++) {
		struct tcp_md5sig key = { .tcpm_keylen = TCP_MD5SIG_MAXKEYLEN };
		struct sockaddr_in *a = (void *)&key.tcpm_addr;

		a->sin_family = AF_INET;
		a->sin_addr.s_addr = htonl(0x0a000000 + n);
		if (setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)))
			return n ? n : -1;
	}
	return n;
}

/* A group of sockets that share a port, with room for 128. */
static int shared_ports(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)))
		return -1;
	return bind(fd, (void *)&a, sizeof(a)) ? -1 : 1;
}

const struct mode option_modes[] = {
	{ "IPv4 groups and sources", SPREAD, groups4 },
	{ "IPv6 groups", SPREAD, groups6 },
	{ "IPv6 sticky options", SPREAD, sticky },
	{ "IPv6 flow labels", SPREAD, labels },
	{ "IP options", SPREAD, ip_options },
	{ "TCP MD5 keys", SPREAD, keys },
	{ "shared ports", SPREAD, shared_ports },
	{ 0 },
};
