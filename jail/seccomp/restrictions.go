package seccomp

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
)

// A cause is the label and the errno of a restriction's refusals.
type cause struct {
	label string
	errno syscall.Errno
}

var (
	spawn    = cause{"spawn", unix.EPERM}
	socket   = cause{"socket", unix.EACCES}
	datagram = cause{"datagram", unix.EACCES}
	stream   = cause{"stream", unix.EACCES}
	metadata = cause{"chmod", unix.EPERM}
	naming   = cause{"rename", unix.EPERM}
	watching = cause{"readdir", unix.EACCES}
	signal   = cause{"signal", unix.EPERM}

	// The errnos of a kernel without support, on which programs fall back to TCP.
	noProtocol = cause{"protocol", unix.EPROTONOSUPPORT}
	noFastOpen = cause{"fast open", unix.EOPNOTSUPP}
)

// when refuses calls whose arguments all match, or every call without a match.
func (c cause) when(match ...Match) []Refusal {
	return []Refusal{{Errno: c.errno, Match: match, Label: c.label}}
}

// path refuses every call. Argument arg, counted from 0, points to a path to report.
func (c cause) path(arg int) []Refusal {
	return []Refusal{{Errno: c.errno, Label: c.label, PathArg: arg + 1}}
}

// NoSpawn refuses new processes and programs, but not threads. The process that loads the
// filter can't execve either: it must already run guest code, or have a listener that
// permits the execve, see package notify.
var NoSpawn = []Row{
	{Calls: "clone", Reason: "creates processes; with CLONE_THREAD, threads", Refuse: spawn.when(among(0, unix.CLONE_THREAD, 0))},
	{Calls: "fork vfork", Reason: "creates processes", Refuse: spawn.when()},
	{Calls: "execve", Reason: "starts programs", Refuse: spawn.path(0)},
	{Calls: "execveat", Reason: "starts programs", Refuse: spawn.path(1)},
}

// NoMemfd refuses programs in memory, for guests that may start only listed programs:
// Landlock enforces the list, but not for files without a path.
var NoMemfd = []Row{
	{Calls: "memfd_create", Reason: "its file can be executed, unless it is created with this flag, which is permanent", Refuse: spawn.when(
		among(1, unix.MFD_NOEXEC_SEAL, 0))},
}

// NoForeignLimits refuses setting limits of other processes, because the kernel sends
// signals when limits are exceeded: SIGKILL for processor time. No Landlock right covers it.
var NoForeignLimits = []Row{
	{Calls: "prlimit64", Reason: "sets limits of another process; 0 is the caller", Refuse: signal.when(isNot(0, 0), anyBit(2, math.MaxUint64))},
}

// NoInternet refuses IP sockets, so that sockets connect only processes of the jail.
var NoInternet = []Row{
	{Calls: "socket", Reason: "the internet families", Refuse: socket.when(is(0, unix.AF_INET, unix.AF_INET6))},
}

// Netlink is the label of LimitedNetlink.
const Netlink = "netlink"

// LimitedNetlink sends calls for a route socket to the listener, which replies with a
// descriptor and limits the number of open ones, see notify.Listener.HandleSockets.
// getifaddrs needs one. Without it os.networkInterfaces throws, and many packages call that
// when they are loaded. A socket holds up to twice net.core.rmem_max of unread replies,
// charged to no cgroup. Without capabilities the family only allows queries.
var LimitedNetlink = []Row{
	{Calls: "socket", Reason: "queries interfaces, addresses and routes", Refuse: cause{Netlink, unix.ENOBUFS}.when(
		is(0, unix.AF_NETLINK), among(1, socketType, unix.SOCK_RAW, unix.SOCK_DGRAM), is(2, unix.NETLINK_ROUTE))},
}

// NoNamedSockets refuses unix sockets that can connect by name, but not connected pairs.
// Neither mounts, read-only or not, nor Landlock up to Linux 6.18 prevent a guest from
// connecting to a socket in a folder that it sees. Of pairs, only datagram sockets can be
// connected again.
var NoNamedSockets = []Row{
	{Calls: "socket", Reason: "connects to sockets in files", Refuse: socket.when(is(0, unix.AF_UNIX))},
	{Calls: "socketpair", Reason: "as socket, for the types that can be connected again", Refuse: socket.when(
		notAmong(1, socketType, unix.SOCK_STREAM, unix.SOCK_SEQPACKET))},
}

// NoDatagrams refuses UDP, to which Landlock's rules for ports do not apply.
var NoDatagrams = []Row{
	{Calls: "socket", Reason: "UDP, and ping's ICMP", Refuse: datagram.when(internet, among(1, socketType, unix.SOCK_DGRAM))},
}

// NoStreams refuses TCP. Landlock's rules restrict only the ports to connect to, not
// listening.
var NoStreams = []Row{
	{Calls: "socket", Reason: "TCP and similar protocols", Refuse: stream.when(internet, among(1, socketType, unix.SOCK_STREAM))},
}

// OnlyTCP refuses the streams that bypass Landlock's rules for ports, up to Linux 6.18 at
// least: MPTCP and TCP fast open connect to any port. It does not affect datagrams.
var OnlyTCP = []Row{
	{Calls: "socket", Reason: "MPTCP, which Landlock does not restrict", Refuse: noProtocol.when(
		internet, among(1, socketType, unix.SOCK_STREAM), isNot(2, 0, unix.IPPROTO_TCP))},
	{Calls: "sendto sendmmsg", Reason: "connects by sending, which Landlock does not restrict", Refuse: noFastOpen.when(anyBit(3, unix.MSG_FASTOPEN))},
	{Calls: "sendmsg", Reason: "as sendto", Refuse: noFastOpen.when(anyBit(2, unix.MSG_FASTOPEN))},
}

// Command is the label of AskCommand.
const Command = "command"

// AskCommand sends the calls of programs of package hostcommand to the listener, which replies
// with pipes, see notify.Listener.HandleSockets. The errno is the same as without the filter,
// because no kernel implements the family. The row precedes others of the call.
var AskCommand = []Row{
	{Calls: "socket", Reason: "asks for a call of a command of the host", Refuse: cause{Command, unix.EAFNOSUPPORT}.when(is(0, hostcommand.Family))},
}

// Connect is the label of AskConnect.
const Connect = "connect"

// AskConnect sends connects to the listener, which can refuse one before it is made, see
// notify.Listener.HandleConnects.
var AskConnect = []Row{
	{Calls: "connect", Reason: "addresses that the network's rules deny", Refuse: cause{Connect, unix.EACCES}.when()},
}

// NoMetadata refuses changes of modes, owners, times and attributes, which no Landlock right
// covers.
var NoMetadata = []Row{
	{Calls: "chmod chown lchown utime utimes setxattr lsetxattr removexattr lremovexattr", Reason: "mode, owner, times, attributes", Refuse: metadata.path(0)},
	{Calls: "fchmodat fchmodat2 fchownat futimesat setxattrat removexattrat", Reason: "as chmod", Refuse: metadata.path(1)},
	{Calls: "utimensat", Reason: "times; without a path, of an open file", Refuse: metadata.path(1)},
	{Calls: "fchmod fchown fsetxattr fremovexattr", Reason: "as chmod, of an open file", Refuse: metadata.when()},
	{Calls: "ioctl", Reason: "chattr's flags", Refuse: metadata.when(is(1, unix.FS_IOC_SETFLAGS, fsSetXattr))},
}

const fsSetXattr = 0x401c_5820 // FS_IOC_FSSETXATTR: further flags

// NoRename refuses new names for files. Landlock restricts only their folders.
var NoRename = []Row{
	{Calls: "rename", Reason: "another name", Refuse: naming.path(0)},
	{Calls: "renameat renameat2", Reason: "another name", Refuse: naming.path(1)},
	{Calls: "link", Reason: "a second name", Refuse: naming.path(0)},
	{Calls: "linkat", Reason: "a second name", Refuse: naming.path(1)},
}

// NoWatch refuses watches. They report the names in a folder when other processes use them,
// and no Landlock right covers that.
var NoWatch = []Row{
	{Calls: "inotify_add_watch", Reason: "reports names", Refuse: watching.path(1)},
}

// The pages of the image are in one page cache for all sandboxes. A sandbox that could remove a page,
// or find out without reading it whether it is cached, would learn which files others read, and two sandboxes
// could communicate. mincore reports pages of other owners' files as cached since Linux 5.2, and
// cachestat is in Denied.

// noCacheAdvice: POSIX_FADV_DONTNEED removes pages of files that the caller can only read. All advice
// affects only performance, so programs work without it.
var noCacheAdvice = []Refusal{{NoEffect: true}}

// ioFlags refuses RWF_NOWAIT, which fails if a page is not cached, and RWF_DONTCACHE, which removes
// pages. EOPNOTSUPP is the kernel's errno for unknown flags.
var ioFlags = refuse(unix.EOPNOTSUPP, anyBit(5, int32Mask&^(unix.RWF_HIPRI|unix.RWF_DSYNC|unix.RWF_SYNC|unix.RWF_APPEND)))

// ownMemory allows advice that affects only the caller's memory. MADV_COLD and MADV_PAGEOUT affect the page
// cache, MADV_COLLAPSE changes its pages, and MADV_MERGEABLE merges equal pages of all sandboxes, which the
// time of a write shows. EINVAL is the errno for unknown advice.
var ownMemory = refuse(unix.EINVAL, isNot(2,
	unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED, unix.MADV_DONTNEED,
	unix.MADV_FREE, unix.MADV_REMOVE, unix.MADV_DONTFORK, unix.MADV_DOFORK, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE,
	unix.MADV_DONTDUMP, unix.MADV_DODUMP, unix.MADV_WIPEONFORK, unix.MADV_KEEPONFORK,
	unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE, unix.MADV_DONTNEED_LOCKED,
	madvGuardInstall, madvGuardRemove,
))

const (
	madvGuardInstall = 102 // MADV_GUARD_INSTALL, Linux 6.13: glibc's stacks
	madvGuardRemove  = 103 // MADV_GUARD_REMOVE
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
func between(first, last uint64) (all []uint64) {
	for ; first <= last; first++ {
		all = append(all, first)
	}
	return all
}

// Row is a table's entry for one or more system calls.
type Row struct {
	Calls  string    // their names as in the kernel's tables, separated by blanks
	Reason string    // why guests need the calls, or may not make them
	Refuse []Refusal // arguments that are refused; none in Denied

	// Errno replaces EPERM in Denied, if programs have a fallback for another errno. It
	// is 0 in other tables.
	Errno syscall.Errno
}

// Refusal makes a call fail with an errno if all arguments match. The first matching
// refusal of a row applies.
type Refusal struct {
	Errno syscall.Errno
	Match []Match // may be empty, to match every call, if there is a label or no effect

	// NoEffect makes the call return 0 without effect instead of an errno. It is only for
	// calls that do not write to the caller's memory.
	NoEffect bool

	// Label identifies the refusal to the listener. This package does not interpret it.
	// Rows of Allowed have none: their refusals are not reported.
	Label string
	// PathArg is the argument, counted from 1, that points to a path to report. 0: none.
	PathArg int
}

// calls iterates over the calls of all rows.
func calls(rows []Row) iter.Seq2[string, Row] {
	return func(yield func(string, Row) bool) {
		for _, r := range rows {
			for name := range strings.FieldsSeq(r.Calls) {
				if !yield(name, r) {
					return
				}
			}
		}
	}
}

// Match compares the bits of Mask of argument Arg, counted from 0, to Values. The mask is
// mandatory because the kernel reads only 32 bits of most arguments: a
// comparison of all 64 could be bypassed by setting a bit that the kernel ignores. The
// first fix of CVE-2017-5226 was bypassed that way.
type Match struct {
	Arg    uint
	Mask   uint64
	Values []uint64

	// None makes it match if the argument is none of the values. It is for arguments with
	// few permitted values: it also matches values that are not known yet.
	None bool
}

const (
	int32Mask   = 0xffff_ffff
	maxErrno    = 4095 // MAX_ERRNO of the kernel, which truncates larger values
	maxArgument = 5
)

// refuse returns a list of one refusal.
func refuse(errno syscall.Errno, match ...Match) []Refusal {
	return []Refusal{{Errno: errno, Match: match}}
}

// among matches an argument whose bits under a mask are one of the values.
func among(arg uint, mask uint64, values ...uint64) Match {
	return Match{Arg: arg, Mask: mask, Values: values}
}

// notAmong is the negation of among.
func notAmong(arg uint, mask uint64, values ...uint64) Match {
	return Match{Arg: arg, Mask: mask, Values: values, None: true}
}

// is matches an argument that the kernel reads as an int.
func is(arg uint, values ...uint64) Match { return among(arg, int32Mask, values...) }

// isNot is the negation of is.
func isNot(arg uint, values ...uint64) Match { return notAmong(arg, int32Mask, values...) }

// anyBit matches an argument with at least one of the flags.
func anyBit(arg uint, flags uint64) Match { return notAmong(arg, flags, 0) }

// matches reports whether the refusal applies. The compiled program decides the same.
func (r Refusal) matches(args [6]uint64) bool {
	return !slices.ContainsFunc(r.Match, func(m Match) bool {
		return slices.Contains(m.Values, args[m.Arg]&m.Mask) == m.None
	})
}

// check finds mistakes that would make a refusal match always or never.
func (r Refusal) check() error {
	switch {
	case r.NoEffect && (r.Errno != 0 || r.Label != ""):
		return errors.New("a call without effect cannot have an errno or a label")
	case !r.NoEffect && r.Errno == 0 || r.Errno > maxErrno:
		return fmt.Errorf("errno %d is not in 1 to %d", int(r.Errno), maxErrno)
	case len(r.Match) == 0 && r.Label == "" && !r.NoEffect:
		return fmt.Errorf("errno %d without a match", int(r.Errno))
	case r.PathArg < 0 || r.PathArg > maxArgument+1:
		return fmt.Errorf("path argument %d is not in 0 to %d", r.PathArg, maxArgument+1)
	}
	for _, m := range r.Match {
		outside := func(v uint64) bool { return v&^m.Mask != 0 }
		if m.Arg > maxArgument || m.Mask == 0 || len(m.Values) == 0 || slices.ContainsFunc(m.Values, outside) {
			return fmt.Errorf("%+v: the argument, bits and values must exist, and the values be within the mask", m)
		}
	}
	return nil
}
