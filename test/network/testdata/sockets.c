// Tries to reach a denied address, and an allowed one, by calls that Node does
// not offer. It prints a line "name result" for each: an errno, "served" if a
// web server replied, or what the name says.
//
// Its argument is the name of an abstract socket of the host.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/route.h>
#include <linux/rtnetlink.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define ALLOWED "93.184.215.14" // on port 80
#define DENIED "10.1.2.3"
#define REQUEST "GET / HTTP/1.0\r\nHost: api.example.com\r\n\r\n"

static const char *error(void) { return errno ? strerrorname_np(errno) : "no-error"; }

static void report(const char *name, const char *detail, const char *result)
{
	printf("%s%s%s %s\n", name, *detail ? ":" : "", detail, result);
	fflush(stdout);
}

static struct sockaddr_in in(const char *host, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

static int stream(void) { return socket(AF_INET, SOCK_STREAM, 0); }

// reply says what a connection's other side sends.
static const char *reply(int fd)
{
	char buf[64];
	ssize_t n = read(fd, buf, sizeof buf);
	if (n < 0)
		return error();
	if (n >= 7 && !memcmp(buf, "HTTP/1.", 7))
		return "served";
	return n == 0 ? "closed" : "other";
}

// request connects and asks for a page.
static const char *request_port(int fd, const char *host, int port)
{
	struct sockaddr_in to = in(host, port);
	const char *result;
	if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 || send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) < 0)
		result = error();
	else
		result = reply(fd);
	close(fd);
	return result;
}

static const char *request(int fd, const char *host) { return request_port(fd, host, 80); }

// option sets an option and then asks for a page.
static const char *option(int level, int name, const void *value, socklen_t len, const char *host)
{
	int fd = stream();
	if (setsockopt(fd, level, name, value, len) != 0) {
		const char *result = error();
		close(fd);
		return result;
	}
	return request(fd, host);
}

static void families(void)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} list[] = {
		{"mptcp", AF_INET, SOCK_STREAM, 262}, {"mptcp6", AF_INET6, SOCK_STREAM, 262}, {"sctp", AF_INET, SOCK_STREAM, 132},
		{"sctp-packets", AF_INET, SOCK_SEQPACKET, 132}, {"dccp", AF_INET, 6, 33}, {"udplite", AF_INET, SOCK_DGRAM, 136},
		{"smc-over-tcp", AF_INET, SOCK_STREAM, 256}, {"raw", AF_INET, SOCK_RAW, IPPROTO_RAW}, {"raw-tcp", AF_INET, SOCK_RAW, IPPROTO_TCP},
		{"raw-icmp6", AF_INET6, SOCK_RAW, 58}, {"ping", AF_INET, SOCK_DGRAM, 1}, {"packet", AF_PACKET, SOCK_RAW, 0x300},
		{"packet-cooked", AF_PACKET, SOCK_DGRAM, 0x300}, {"packet-old", AF_INET, SOCK_PACKET, 0x300}, {"vsock", AF_VSOCK, SOCK_STREAM, 0},
		{"alg", AF_ALG, SOCK_SEQPACKET, 0}, {"xdp", AF_XDP, SOCK_RAW, 0}, {"smc", AF_SMC, SOCK_STREAM, 0}, {"rds", AF_RDS, SOCK_SEQPACKET, 0},
		{"tipc", AF_TIPC, SOCK_STREAM, 0}, {"can", AF_CAN, SOCK_RAW, 1}, {"kcm", AF_KCM, SOCK_DGRAM, 0}, {"pppox", AF_PPPOX, SOCK_STREAM, 0},
		{"sock_diag", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG}, {"netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER},
		{"xfrm", AF_NETLINK, SOCK_RAW, NETLINK_XFRM}, {"generic", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC}, {"uevent", AF_NETLINK, SOCK_RAW, 15},
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		int fd = socket(list[i].family, list[i].type, list[i].protocol);
		report("socket", list[i].name, fd < 0 ? error() : "open");
		close(fd);
	}
}

static void fast_open(void)
{
	static const char *hosts[] = {DENIED, ALLOWED};
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in to = in(hosts[i], 80);
		int one = 1, fd = stream();
		ssize_t n = sendto(fd, REQUEST, strlen(REQUEST), MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
		report("sendto-fast-open", hosts[i], n < 0 ? error() : reply(fd));
		close(fd);
		struct iovec part = {REQUEST, strlen(REQUEST)};
		struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1};
		fd = stream();
		n = sendmsg(fd, &m, MSG_FASTOPEN | MSG_NOSIGNAL);
		report("sendmsg-fast-open", hosts[i], n < 0 ? error() : reply(fd));
		close(fd);
		report("connect-fast-open", hosts[i], option(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one, hosts[i]));
	}
}

static void options(void)
{
	int one = 1, seven = 7;
	unsigned char via_allowed[] = {IPOPT_LSRR, 7, 4, 93, 184, 215, 14, 0}, strict[] = {IPOPT_SSRR, 7, 4, 93, 184, 215, 14, 0};
	unsigned char via_denied[] = {IPOPT_LSRR, 7, 4, 10, 1, 2, 3, 0};
	unsigned char rthdr[24] = {0, 2, 0, 1}, srh[24] = {0, 2, 4, 0}; // types 0 and 4, one address
	report("bind-to-lo", DENIED, option(SOL_SOCKET, SO_BINDTODEVICE, "lo", 3, DENIED));
	report("bind-to-lo", ALLOWED, option(SOL_SOCKET, SO_BINDTODEVICE, "lo", 3, ALLOWED));
	report("bind-to-eth0", DENIED, option(SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5, DENIED));
	report("mark", "", option(SOL_SOCKET, SO_MARK, &one, sizeof one, DENIED));
	report("priority", "", option(SOL_SOCKET, SO_PRIORITY, &seven, sizeof seven, DENIED));
	report("transparent", "", option(SOL_IP, IP_TRANSPARENT, &one, sizeof one, DENIED));
	report("free-bind", "", option(SOL_IP, IP_FREEBIND, &one, sizeof one, DENIED));
	report("repair", "", option(IPPROTO_TCP, TCP_REPAIR, &one, sizeof one, DENIED));
	report("ulp", "", option(IPPROTO_TCP, 31, "tls", 3, DENIED));
	report("xfrm-policy", "", option(SOL_IP, 17, &one, sizeof one, DENIED));
	report("multicast-router", "", option(SOL_IP, 200, &one, sizeof one, DENIED));
	report("attach-bpf", "", option(SOL_SOCKET, SO_ATTACH_BPF, &one, sizeof one, DENIED));
	report("source-route", "via-allowed", option(SOL_IP, IP_OPTIONS, via_allowed, sizeof via_allowed, DENIED));
	report("source-route", "strict", option(SOL_IP, IP_OPTIONS, strict, sizeof strict, DENIED));
	report("source-route", "via-denied", option(SOL_IP, IP_OPTIONS, via_denied, sizeof via_denied, ALLOWED));
	for (int i = 0; i < 2; i++) {
		unsigned char *header = i ? srh : rthdr;
		struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
		int fd = socket(AF_INET6, SOCK_STREAM, 0);
		inet_pton(AF_INET6, "fd00::80", header + 8);
		inet_pton(AF_INET6, "2606:2800:220:1::14", &to.sin6_addr);
		struct timeval wait = {.tv_usec = 100000}; // the kernel drops the packets
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
		const char *result = "connected";
		if (setsockopt(fd, SOL_IPV6, 57, header, 24) != 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
			result = errno == EINVAL || errno == EINPROGRESS || errno == EACCES ? "blocked" : error();
		report("routing-header", i ? "segments" : "type-0", result);
		close(fd);
	}
}

// sources connects from addresses of others: all are local ones.
static void sources(void)
{
	static const char *from[] = {ALLOWED, DENIED, "10.0.2.3", "127.0.0.1", "192.0.2.1", "198.18.0.1", "169.254.169.254", "0.0.0.0"};
	static const char *to[] = {DENIED, ALLOWED, "0.0.0.0"};
	for (size_t i = 0; i < sizeof from / sizeof *from; i++)
		for (size_t j = 0; j < sizeof to / sizeof *to; j++) {
			struct sockaddr_in own = in(from[i], 0);
			char name[64];
			int fd = stream();
			snprintf(name, sizeof name, "%s-to-%s", from[i], to[j]);
			report("from", name, bind(fd, (struct sockaddr *)&own, sizeof own) ? error() : request(fd, to[j]));
		}
	struct sockaddr_in resolver = in("10.0.2.3", 53);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	report("bind", "resolver", bind(fd, (struct sockaddr *)&resolver, sizeof resolver) ? error() : "bound");
	close(fd);
}

// listening checks that a server of the guest gets no connections to addresses outside.
static void listening(void)
{
	static const char *on[] = {"0.0.0.0", ALLOWED, DENIED, "198.18.0.1"};
	for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
		const char *host = strcmp(on[i], "0.0.0.0") ? on[i] : ALLOWED;
		struct sockaddr_in own = in(on[i], 8080);
		int one = 1, server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		setsockopt(server, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
		if (bind(server, (struct sockaddr *)&own, sizeof own) || listen(server, 8)) {
			report("listen", on[i], error());
			close(server);
			continue;
		}
		const char *result = request_port(stream(), host, 8080);
		if (accept(server, NULL, NULL) >= 0)
			result = "accepted";
		report("listen", on[i], result);
		close(server);
	}
	struct sockaddr_in own = in(ALLOWED, 8081);
	int fd = stream();
	const char *result = bind(fd, (struct sockaddr *)&own, sizeof own) ? error() : NULL;
	if (!result && connect(fd, (struct sockaddr *)&own, sizeof own) == 0)
		result = send(fd, "x", 1, 0) == 1 && strcmp(reply(fd), "other") == 0 ? "itself" : "another";
	report("connect", "to-itself", result ? result : error());
	close(fd);
}

static void datagrams(void)
{
	static const struct {
		const char *host;
		int port;
	} list[] = {{ALLOWED, 443}, {DENIED, 53}, {"8.8.8.8", 53}, {"10.0.2.3", 5353}, {"10.0.2.3", 54}, {"10.0.2.15", 53}, {"10.0.2.2", 53},
		{"127.0.0.53", 53}, {"192.0.2.53", 53}, {"198.18.0.1", 443}, {"169.254.169.254", 123}, {"255.255.255.255", 67}, {"224.0.0.251", 5353}, {"0.0.0.0", 53}};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct sockaddr_in to = in(list[i].host, list[i].port);
		char name[64], buf[8];
		int one = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);
		struct timeval wait = {.tv_usec = 50000};
		setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof one);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
		snprintf(name, sizeof name, "%s:%d", list[i].host, list[i].port);
		if (connect(fd, (struct sockaddr *)&to, sizeof to) || send(fd, "x", 1, 0) < 0 || recv(fd, buf, sizeof buf, 0) < 0)
			report("datagram", name, error());
		else
			report("datagram", name, "answered");
		close(fd);
	}
}

static struct sockaddr_in changing;

static void *change(void *stop)
{
	struct sockaddr_in allowed = in(ALLOWED, 80), denied = in(DENIED, 80);
	for (; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED);) {
		__atomic_store_n(&changing.sin_addr.s_addr, denied.sin_addr.s_addr, __ATOMIC_RELAXED);
		__atomic_store_n(&changing.sin_addr.s_addr, allowed.sin_addr.s_addr, __ATOMIC_RELAXED);
	}
	return NULL;
}

// race connects to an address that another thread changes. Some connects succeed, and all of
// those must lead to the allowed host.
static void race(void)
{
	int stop = 0, served = 0, refused = 0;
	pthread_t thread;
	changing = in(ALLOWED, 80);
	pthread_create(&thread, NULL, change, &stop);
	for (int i = 0; i < 10000 && !(i >= 300 && served && refused); i++) {
		int fd = stream();
		if (connect(fd, (struct sockaddr *)&changing, sizeof changing) == 0 && send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) > 0 && !strcmp(reply(fd), "served"))
			served++;
		else
			refused++;
		close(fd);
	}
	stop = 1;
	pthread_join(thread, NULL);
	report("race", "", served && refused ? "both" : "one");
}

// netlink sends a request that changes the network, and reports the kernel's reply.
static void netlink(const char *name, int type, const void *body, int len)
{
	struct {
		struct nlmsghdr header;
		char body[256];
	} m = {.header = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, .nlmsg_len = NLMSG_LENGTH(len)}};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	memcpy(m.body, body, len);
	if (fd < 0 || send(fd, &m, m.header.nlmsg_len, 0) < 0 || recv(fd, &m, sizeof m, 0) < 0) {
		report("netlink", name, error());
	} else {
		errno = m.header.nlmsg_type == NLMSG_ERROR ? -((struct nlmsgerr *)m.body)->error : 0;
		report("netlink", name, error());
	}
	close(fd);
}

static void administration(void)
{
	struct rtmsg route = {.rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL, .rtm_scope = RT_SCOPE_HOST};
	struct ifaddrmsg address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1};
	struct ifinfomsg down = {.ifi_index = 1, .ifi_change = IFF_UP};
	struct ndmsg neighbour = {.ndm_family = AF_INET, .ndm_ifindex = 1};
	struct rtmsg rule = {.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = 1};
	struct tcmsg queue = {.tcm_ifindex = 1, .tcm_parent = TC_H_ROOT};
	netlink("new-route", RTM_NEWROUTE, &route, sizeof route);
	netlink("delete-route", RTM_DELROUTE, &route, sizeof route);
	netlink("new-address", RTM_NEWADDR, &address, sizeof address);
	netlink("delete-address", RTM_DELADDR, &address, sizeof address);
	netlink("set-link", RTM_SETLINK, &down, sizeof down);
	netlink("new-link", RTM_NEWLINK, &(struct ifinfomsg){0}, sizeof(struct ifinfomsg));
	netlink("new-neighbour", RTM_NEWNEIGH, &neighbour, sizeof neighbour);
	netlink("new-rule", RTM_NEWRULE, &rule, sizeof rule);
	netlink("new-queue", RTM_NEWQDISC, &queue, sizeof queue);
	struct ifreq interface = {.ifr_name = "lo"};
	struct rtentry entry = {.rt_flags = RTF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	report("ioctl", "flags", ioctl(fd, SIOCSIFFLAGS, &interface) ? error() : "set");
	report("ioctl", "address", ioctl(fd, SIOCSIFADDR, &interface) ? error() : "set");
	report("ioctl", "route", ioctl(fd, SIOCADDRT, &entry) ? error() : "set");
	report("unshare", "network", unshare(CLONE_NEWNET) ? error() : "done");
	report("unshare", "user-and-network", unshare(CLONE_NEWUSER | CLONE_NEWNET) ? error() : "done");
	report("io_uring", "", syscall(SYS_io_uring_setup, 8, (char[256]){0}) < 0 ? error() : "open");
	report("bpf", "", syscall(SYS_bpf, 0, (char[128]){0}, 128) < 0 ? error() : "open");
	close(fd);
}

// abstract connects to a unix socket of the host.
static void abstract(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strncpy(to.sun_path + 1, name, sizeof to.sun_path - 2);
	report("abstract", "", connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)) ? error() : "connected");
	close(fd);
}

int main(int argc, char **argv)
{
	report("request", ALLOWED, request(stream(), ALLOWED));
	report("request", DENIED, request(stream(), DENIED));
	report("resolver", "80", request(stream(), "10.0.2.3"));
	report("resolver", "54", request_port(stream(), "10.0.2.3", 54));
	families();
	fast_open();
	options();
	sources();
	listening();
	datagrams();
	race();
	administration();
	abstract(argc > 1 ? argv[1] : "");
	return 0;
}
