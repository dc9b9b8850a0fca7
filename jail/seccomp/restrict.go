package seccomp

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// A cause is why restrictions refuse, and how.
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

	// As a kernel answers that was built without, so that programs fall back to TCP.
	noProtocol = cause{"protocol", unix.EPROTONOSUPPORT}
	noFastOpen = cause{"fast open", unix.EOPNOTSUPP}
)

// when refuses calls whose arguments all match, or every call.
func (c cause) when(match ...Match) []Refusal {
	return []Refusal{{Errno: c.errno, Match: match, Label: c.label}}
}

// path refuses every call, and names the argument, from 0, that points to a path.
func (c cause) path(arg int) []Refusal {
	return []Refusal{{Errno: c.errno, Label: c.label, Text: arg + 1}}
}

// NoSpawn takes processes and programs away, and leaves threads. Who puts such a
// filter on can't execve either: it must be guest code already, or have a listener
// that lets it pass, see package notify.
var NoSpawn = []Row{
	{Name: "clone", Reason: "makes processes; with the bit, threads", Refuse: spawn.when(Match{0, unix.CLONE_THREAD, OneOf, []uint64{0}})},
	{Name: "fork", Reason: "makes processes", Refuse: spawn.when()},
	{Name: "vfork", Reason: "makes processes", Refuse: spawn.when()},
	{Name: "execve", Reason: "starts programs", Refuse: spawn.path(0)},
	{Name: "execveat", Reason: "starts programs", Refuse: spawn.path(1)},
}

// NoMemfd takes programs in memory away, for guests with a list of programs that
// they may start: Landlock holds the list, and does not see files without a path.
var NoMemfd = []Row{
	{Name: "memfd_create", Reason: "its file can be executed but for this flag, which is for good", Refuse: spawn.when(
		Match{1, unix.MFD_NOEXEC_SEAL, OneOf, []uint64{0}})},
}

// NoForeignLimits keeps a process from limiting others, by which the kernel would send
// them signals: SIGKILL for the time of the processor. Landlock has no right for it.
var NoForeignLimits = []Row{
	{Name: "prlimit64", Reason: "sets limits of another process; of this one by number 0", Refuse: signal.when(isNot(0, 0), anyBit(2, math.MaxUint64))},
}

// NoInternet leaves sockets between the jail's own processes only.
var NoInternet = []Row{
	{Name: "socket", Reason: "the other families that Allowed has", Refuse: socket.when(is(0, unix.AF_INET, unix.AF_INET6))},
}

// Netlink labels the calls that FewNetlink refers to the listener.
const Netlink = "netlink"

// FewNetlink refers calls for a route socket to the listener, which answers with a
// descriptor and bounds how many there are at once, see notify.Listener.SupplySockets. getifaddrs needs
// one, and os.networkInterfaces throws where that fails, which many packages call as they
// are loaded. One socket holds up to twice net.core.rmem_max of answers that nobody reads,
// charged to no cgroup. Without capabilities the family can only be queried.
var FewNetlink = []Row{
	{Name: "socket", Reason: "asks for interfaces, addresses and routes", Refuse: cause{Netlink, unix.ENOBUFS}.when(
		is(0, unix.AF_NETLINK), Match{1, socketType, OneOf, []uint64{unix.SOCK_RAW, unix.SOCK_DGRAM}}, is(2, unix.NETLINK_ROUTE))},
}

// NoNamedSockets takes unix sockets away that find others by a name, and leaves pairs of
// connected ones. Neither the kernel's mounts, read-only or not, nor Landlock up to Linux
// 6.18 keep a guest from whoever listens on a socket in a folder that it sees. Of pairs only
// datagram ones can be connected once more.
var NoNamedSockets = []Row{
	{Name: "socket", Reason: "connects to sockets in files", Refuse: socket.when(is(0, unix.AF_UNIX))},
	{Name: "socketpair", Reason: "as socket, of the kinds that can be connected again", Refuse: socket.when(
		Match{1, socketType, NoneOf, []uint64{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}})},
}

// NoDatagrams takes UDP away, of which Landlock's rules for ports know nothing.
var NoDatagrams = []Row{
	{Name: "socket", Reason: "UDP, and ping's ICMP", Refuse: datagram.when(internet, Match{1, socketType, OneOf, []uint64{unix.SOCK_DGRAM}})},
}

// NoStreams takes TCP away, of which Landlock's rules hold the ports that are connected
// to, and not who listens.
var NoStreams = []Row{
	{Name: "socket", Reason: "TCP and what is like it", Refuse: stream.when(internet, Match{1, socketType, OneOf, []uint64{unix.SOCK_STREAM}})},
}

// OnlyTCP takes away what makes a stream past Landlock's rules for ports: both ways
// lead to any port as late as Linux 6.18. It says nothing of datagrams.
var OnlyTCP = []Row{
	{Name: "socket", Reason: "MPTCP, which Landlock does not take for TCP", Refuse: noProtocol.when(
		internet, Match{1, socketType, OneOf, []uint64{unix.SOCK_STREAM}}, isNot(2, 0, unix.IPPROTO_TCP))},
	{Name: "sendto", Reason: "connects by sending, which Landlock does not see", Refuse: noFastOpen.when(anyBit(3, unix.MSG_FASTOPEN))},
	{Name: "sendmsg", Reason: "as sendto", Refuse: noFastOpen.when(anyBit(2, unix.MSG_FASTOPEN))},
	{Name: "sendmmsg", Reason: "as sendto", Refuse: noFastOpen.when(anyBit(3, unix.MSG_FASTOPEN))},
}

// NoMetadata takes changes of modes, owners, times and attributes away, of which
// Landlock has no right.
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
	{Name: "utimensat", Reason: "times; without a path those of an open file", Refuse: metadata.path(1)},
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

const fsSetXattr = 0x401c_5820 // FS_IOC_FSSETXATTR: more of those flags

// NoRename takes new names for files away. Landlock holds where they may lead, not
// whether there may be any.
var NoRename = []Row{
	{Name: "rename", Reason: "another name", Refuse: naming.path(0)},
	{Name: "renameat", Reason: "another name", Refuse: naming.path(1)},
	{Name: "renameat2", Reason: "another name", Refuse: naming.path(1)},
	{Name: "link", Reason: "a second name", Refuse: naming.path(0)},
	{Name: "linkat", Reason: "a second name", Refuse: naming.path(1)},
}

// NoWatch takes watches away. They tell the names in a folder as others use them, and
// Landlock has no right for that.
var NoWatch = []Row{
	{Name: "inotify_add_watch", Reason: "tells names", Refuse: watching.path(1)},
}
