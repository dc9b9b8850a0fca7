package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

const socketType = 0xf // the other bits of the type argument are SOCK_CLOEXEC and SOCK_NONBLOCK

// sockets returns the errnos of a kernel with only these families and protocols. Raw
// sockets, which need a privilege, get EPERM. The memory of MPTCP sockets is charged to no
// cgroup, and some remains after they are closed; Go and curl fall back to TCP. The queue of
// a netlink socket is charged to no cgroup: see [LimitedNetlink].
var sockets = slices.Concat(
	refuse(unix.EAFNOSUPPORT, isNot(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)),
	refuse(unix.EPROTONOSUPPORT, is(0, unix.AF_NETLINK), isNot(2, unix.NETLINK_ROUTE)),
	refuse(unix.ESOCKTNOSUPPORT, is(0, unix.AF_NETLINK), notAmong(1, socketType, unix.SOCK_RAW, unix.SOCK_DGRAM)),
	refuse(unix.ENOBUFS, is(0, unix.AF_NETLINK)),
	refuse(unix.EPERM, internet, notAmong(1, socketType, unix.SOCK_STREAM, unix.SOCK_DGRAM)),
	refuse(unix.EPROTONOSUPPORT, internet, isNot(2, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP)),
)

// MSG_MORE: data that a UDP socket holds back because of the flag is charged to no cgroup, up
// to 64 KiB for each. For TCP the flag is a hint, which few programs use. MSG_OOB: urgent data of unix
// sockets had bugs that gave root (CVE-2025-38236); of TCP, only telnet and FTP know it.
const unusedSendFlags = unix.MSG_MORE | unix.MSG_OOB

var (
	sendFlags2 = refuse(unix.EOPNOTSUPP, anyBit(2, unusedSendFlags)) // sendmsg(fd, message, flags)
	sendFlags3 = refuse(unix.EOPNOTSUPP, anyBit(3, unusedSendFlags)) // sendto(fd, data, size, flags, ...), sendmmsg
)

var internet = is(0, unix.AF_INET, unix.AF_INET6)

var socketPairs = refuse(unix.EAFNOSUPPORT, isNot(0, unix.AF_UNIX))

// noSocketCounters refuses cookies: numbers from counters of the whole machine, which show how many sockets
// and network namespaces others create. TCP_ZEROCOPY_RECEIVE maps pages of received packets.
var noSocketCounters = slices.Concat(
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_SOCKET), is(2, unix.SO_COOKIE, unix.SO_NETNS_COOKIE)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_TCP), is(2, unix.TCP_ZEROCOPY_RECEIVE)),
)

// socketOptions allows options that programs use, so that no option of a newer kernel or a protocol that was
// not thought of is reachable. ENOPROTOOPT is the kernel's errno for unknown options. The first rows return
// the errno that programs expect. Not allowed are, for example:
//
//   - memory that is charged to no cgroup: copies of sent packets for time stamps, TCP's keys, received
//     IPv6 options, and UDP_CORK;
//   - SO_ZEROCOPY, which puts pages of the sender into packets;
//   - UDP_ENCAP, which decrypts received packets in place (CVE-2026-43284), and policies of IPsec;
//   - TCP_ULP, which selects TLS in the kernel (CVE-2023-0461) or ESP in TCP (CVE-2026-46300);
//   - IPV6_ADDRFORM, which makes a socket one of another family;
//   - options of IP headers, and managed flow labels.
var socketOptions = slices.Concat(
	// Options for which the kernel requires a capability, also if a later kernel does not: BPF programs, and the
	// tables of netfilter, 64 and 65 at both levels (CVE-2021-22555).
	refuse(unix.EPERM, is(1, unix.SOL_SOCKET), is(2, unix.SO_MARK, unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE,
		unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF)),
	refuse(unix.EPERM, is(1, unix.SOL_IP, unix.SOL_IPV6), is(2, 64, 65)),
	refuse(unix.EPERM, is(1, unix.SOL_TCP), is(2, unix.TCP_ULP, unix.TCP_REPAIR)),
	// Multicast groups: leaving the groups of thousands of sockets takes the kernel a minute,
	// during which it holds a lock that all network namespaces share. ENODEV is the kernel's
	// errno if no route leads to a device.
	refuse(unix.ENODEV, is(1, unix.SOL_IP), is(2, unix.IP_ADD_MEMBERSHIP, unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_BLOCK_SOURCE,
		unix.IP_MSFILTER, unix.MCAST_JOIN_GROUP, unix.MCAST_BLOCK_SOURCE, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER)),
	refuse(unix.ENODEV, is(1, unix.SOL_IPV6), is(2, unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_ANYCAST,
		unix.MCAST_JOIN_GROUP, unix.MCAST_BLOCK_SOURCE, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER)),
	onlyOptions(unix.SOL_SOCKET, between(unix.SO_DEBUG, unix.SO_BINDTODEVICE), between(unix.SO_TIMESTAMP, unix.SO_TIMESTAMP),
		between(unix.SO_PASSSEC, unix.SO_TIMESTAMPNS), between(unix.SO_RXQ_OVFL, unix.SO_RXQ_OVFL), between(unix.SO_PEEK_OFF, unix.SO_PEEK_OFF)),
	onlyOptions(unix.SOL_IP, between(unix.IP_TOS, unix.IP_HDRINCL), between(unix.IP_ROUTER_ALERT, unix.IP_FREEBIND),
		between(unix.IP_PASSSEC, unix.IP_RECVERR_RFC4884), between(unix.IP_MULTICAST_IF, unix.IP_MULTICAST_LOOP),
		between(unix.IP_MULTICAST_ALL, unix.IP_LOCAL_PORT_RANGE)),
	onlyOptions(unix.SOL_IPV6, between(unix.IPV6_UNICAST_HOPS, unix.IPV6_MULTICAST_LOOP), between(unix.IPV6_LEAVE_GROUP, unix.IPV6_V6ONLY),
		between(unix.IPV6_LEAVE_ANYCAST, unix.IPV6_RECVERR_RFC4884), between(unix.IPV6_RECVPKTINFO, unix.IPV6_HOPLIMIT),
		between(unix.IPV6_RECVPATHMTU, unix.IPV6_FREEBIND)),
	onlyOptions(unix.SOL_TCP, between(unix.TCP_NODELAY, unix.TCP_CONGESTION), between(unix.TCP_THIN_LINEAR_TIMEOUTS, unix.TCP_USER_TIMEOUT),
		between(unix.TCP_FASTOPEN, unix.TCP_NOTSENT_LOWAT), between(unix.TCP_FASTOPEN_CONNECT, unix.TCP_FASTOPEN_CONNECT)),
	onlyOptions(unix.SOL_UDP, between(unix.UDP_NO_CHECK6_TX, unix.UDP_GRO)),
	onlyOptions(unix.SOL_NETLINK, between(unix.NETLINK_ADD_MEMBERSHIP, unix.NETLINK_NO_ENOBUFS), between(unix.NETLINK_CAP_ACK, unix.NETLINK_GET_STRICT_CHK)),
	refuse(unix.ENOPROTOOPT, isNot(1, unix.SOL_SOCKET, unix.SOL_IP, unix.SOL_IPV6, unix.SOL_TCP, unix.SOL_UDP, unix.SOL_NETLINK)),
)

// onlyOptions refuses the other options of a level.
func onlyOptions(level uint64, options ...[]uint64) []Refusal {
	return refuse(unix.ENOPROTOOPT, is(1, level), isNot(2, slices.Concat(options...)...))
}

// between returns the options from first to last. A range of options that programs use may include some that
// the kernel knows only for reading, for raw sockets or for privileged processes: ranges keep the filter short.
func between(first, last uint64) []uint64 {
	all := []uint64{first}
	for first < last {
		first++
		all = append(all, first)
	}
	return all
}
