package seccomp

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
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
	{Name: "clone", Reason: "creates processes; with CLONE_THREAD, threads", Refuse: spawn.when(Match{0, unix.CLONE_THREAD, OneOf, []uint64{0}})},
	{Name: "fork", Reason: "creates processes", Refuse: spawn.when()},
	{Name: "vfork", Reason: "creates processes", Refuse: spawn.when()},
	{Name: "execve", Reason: "starts programs", Refuse: spawn.path(0)},
	{Name: "execveat", Reason: "starts programs", Refuse: spawn.path(1)},
}

// NoMemfd refuses programs in memory, for guests that may start only listed programs:
// Landlock enforces the list, but not for files without a path.
var NoMemfd = []Row{
	{Name: "memfd_create", Reason: "its file can be executed, unless it is created with this flag, which is permanent", Refuse: spawn.when(
		Match{1, unix.MFD_NOEXEC_SEAL, OneOf, []uint64{0}})},
}

// NoForeignLimits refuses setting limits of other processes, because the kernel sends
// signals when limits are exceeded: SIGKILL for processor time. Landlock has no right for
// it.
var NoForeignLimits = []Row{
	{Name: "prlimit64", Reason: "sets limits of another process; 0 is the caller", Refuse: signal.when(isNot(0, 0), anyBit(2, math.MaxUint64))},
}

// NoInternet refuses IP sockets, so that sockets connect only processes of the jail.
var NoInternet = []Row{
	{Name: "socket", Reason: "the internet families", Refuse: socket.when(is(0, unix.AF_INET, unix.AF_INET6))},
}

// Netlink is the label of LimitedNetlink.
const Netlink = "netlink"

// LimitedNetlink sends calls for a route socket to the listener, which replies with a
// descriptor and limits how many exist at once, see notify.Listener.HandleSockets.
// getifaddrs needs one. Without it os.networkInterfaces throws, and many packages call that
// when they are loaded. A socket holds up to twice net.core.rmem_max of unread replies,
// charged to no cgroup. Without capabilities the family only allows queries.
var LimitedNetlink = []Row{
	{Name: "socket", Reason: "queries interfaces, addresses and routes", Refuse: cause{Netlink, unix.ENOBUFS}.when(
		is(0, unix.AF_NETLINK), Match{1, socketType, OneOf, []uint64{unix.SOCK_RAW, unix.SOCK_DGRAM}}, is(2, unix.NETLINK_ROUTE))},
}

// NoNamedSockets refuses unix sockets that can connect by name, but not connected pairs.
// Neither mounts, read-only or not, nor Landlock up to Linux 6.18 prevent a guest from
// connecting to a socket in a folder that it sees. Of pairs, only datagram sockets can be
// connected again.
var NoNamedSockets = []Row{
	{Name: "socket", Reason: "connects to sockets in files", Refuse: socket.when(is(0, unix.AF_UNIX))},
	{Name: "socketpair", Reason: "as socket, for the types that can be connected again", Refuse: socket.when(
		Match{1, socketType, NoneOf, []uint64{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}})},
}

// NoDatagrams refuses UDP, to which Landlock's rules for ports do not apply.
var NoDatagrams = []Row{
	{Name: "socket", Reason: "UDP, and ping's ICMP", Refuse: datagram.when(internet, Match{1, socketType, OneOf, []uint64{unix.SOCK_DGRAM}})},
}

// NoStreams refuses TCP. Landlock's rules restrict only the ports to connect to, not
// listening.
var NoStreams = []Row{
	{Name: "socket", Reason: "TCP and similar protocols", Refuse: stream.when(internet, Match{1, socketType, OneOf, []uint64{unix.SOCK_STREAM}})},
}

// OnlyTCP refuses the streams that bypass Landlock's rules for ports, up to Linux 6.18 at
// least: MPTCP and TCP fast open connect to any port. It does not affect datagrams.
var OnlyTCP = []Row{
	{Name: "socket", Reason: "MPTCP, which Landlock does not restrict", Refuse: noProtocol.when(
		internet, Match{1, socketType, OneOf, []uint64{unix.SOCK_STREAM}}, isNot(2, 0, unix.IPPROTO_TCP))},
	{Name: "sendto", Reason: "connects by sending, which Landlock does not restrict", Refuse: noFastOpen.when(anyBit(3, unix.MSG_FASTOPEN))},
	{Name: "sendmsg", Reason: "as sendto", Refuse: noFastOpen.when(anyBit(2, unix.MSG_FASTOPEN))},
	{Name: "sendmmsg", Reason: "as sendto", Refuse: noFastOpen.when(anyBit(3, unix.MSG_FASTOPEN))},
}

// NoMetadata refuses changes of modes, owners, times and attributes, for which Landlock has
// no right.
var NoMetadata = []Row{
	{Name: "chmod", Reason: "mode", Refuse: metadata.path(0)},
	{Name: "fchmod", Reason: "mode", Refuse: metadata.when()},
	{Name: "fchmodat", Reason: "mode", Refuse: metadata.path(1)},
	{Name: "fchmodat2", Reason: "mode", Refuse: metadata.path(1)},
	{Name: "chown", Reason: "owner", Refuse: metadata.path(0)},
	{Name: "fchown", Reason: "owner", Refuse: metadata.when()},
	{Name: "lchown", Reason: "owner", Refuse: metadata.path(0)},
	{Name: "fchownat", Reason: "owner", Refuse: metadata.path(1)},
	{Name: "utime", Reason: "times", Refuse: metadata.path(0)},
	{Name: "utimes", Reason: "times", Refuse: metadata.path(0)},
	{Name: "futimesat", Reason: "times", Refuse: metadata.path(1)},
	{Name: "utimensat", Reason: "times; without a path, of an open file", Refuse: metadata.path(1)},
	{Name: "setxattr", Reason: "attributes", Refuse: metadata.path(0)},
	{Name: "lsetxattr", Reason: "attributes", Refuse: metadata.path(0)},
	{Name: "fsetxattr", Reason: "attributes", Refuse: metadata.when()},
	{Name: "setxattrat", Reason: "attributes", Refuse: metadata.path(1)},
	{Name: "removexattr", Reason: "attributes", Refuse: metadata.path(0)},
	{Name: "lremovexattr", Reason: "attributes", Refuse: metadata.path(0)},
	{Name: "fremovexattr", Reason: "attributes", Refuse: metadata.when()},
	{Name: "removexattrat", Reason: "attributes", Refuse: metadata.path(1)},
	{Name: "ioctl", Reason: "chattr's flags", Refuse: metadata.when(is(1, unix.FS_IOC_SETFLAGS, fsSetXattr))},
}

const fsSetXattr = 0x401c_5820 // FS_IOC_FSSETXATTR: further flags

// NoRename refuses new names for files. Landlock restricts only their folders.
var NoRename = []Row{
	{Name: "rename", Reason: "another name", Refuse: naming.path(0)},
	{Name: "renameat", Reason: "another name", Refuse: naming.path(1)},
	{Name: "renameat2", Reason: "another name", Refuse: naming.path(1)},
	{Name: "link", Reason: "a second name", Refuse: naming.path(0)},
	{Name: "linkat", Reason: "a second name", Refuse: naming.path(1)},
}

// NoWatch refuses watches. They report the names in a folder when other processes use them,
// and Landlock has no right for that.
var NoWatch = []Row{
	{Name: "inotify_add_watch", Reason: "reports names", Refuse: watching.path(1)},
}
