package seccomp

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// A new namespace of any kind is new kernel surface. CLONE_NEWTIME is not listed:
// its bit means part of a signal number to clone.
var noNamespaces = refuse(unix.EPERM, anyBit(0,
	unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET,
	unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP))

// A sibling of a run's first process is a child of the host, which does not know of it
// and never waits for it: it stays as a zombie when the run is over, and the kernel does
// not end the jail's pid 1 before it is gone.
var noSiblings = refuse(unix.EPERM, anyBit(0, unix.CLONE_PARENT))

// TIOCSTI types into the terminal that gaol was started from (CVE-2017-5226),
// TIOCLINUX pastes into a console, TIOCSETD loads line disciplines, of which
// several had root holes (CVE-2017-2636).
var noInput = refuse(unix.EPERM, is(1, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD))

// 0xffffffff asks, 0 is what everyone has. The others turn off address
// randomisation or map page zero.
var personalities = refuse(unix.EPERM, isNot(0, 0, 0xffff_ffff))

// The kernel charges the memory of a filter, once compiled, to no cgroup but to
// bpf_jit_limit, which all of the machine shares: 64 processes that stack what one may
// hold, some 256 kB each, take 16 MiB of it, and 33 such runs the 528 MiB that are
// common, after which no process but root's can load a filter. The system call is in
// neither table and this is its older spelling: both answer as a kernel that was built
// without filters.
var noFilters = refuse(unix.EINVAL, is(0, unix.PR_SET_SECCOMP))

// Locks are charged to no cgroup. Those of open files (F_OFD_SETLK) belong to no
// process that could be found and killed for holding too many; package jail watches
// the others. The kernel answers EINVAL for commands that it does not know. A lease
// keeps every other process, the host's on a mount included, waiting in open for
// 45 seconds.
var fcntlCommands = refuse(unix.EINVAL, is(1, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW, unix.F_SETLEASE))

// A lock is its process's until the last process that shares its table of open files
// closes the file. Processes that share one are threads and nothing else, so that the
// kernel's list of locks names one that lives.
var noSharedFiles = refuse(unix.EPERM, Match{0, unix.CLONE_FILES | unix.CLONE_THREAD, OneOf, []uint64{unix.CLONE_FILES}})

// Files, pipes and sockets have no driver behind them. A character device 0,0
// needs no privilege and is how an overlay marks a deleted file.
var (
	noDevices1 = noDevices(1) // mknod(path, mode, dev)
	noDevices2 = noDevices(2) // mknodat(dir, path, mode, dev)
)

func noDevices(mode uint) []Refusal {
	types := []uint64{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK}
	return refuse(unix.EPERM, Match{mode, unix.S_IFMT, NoneOf, types})
}

// A file of a mount that can be written is the host's: there it belongs to whom the mount
// does, often root, and who starts it there would be that user. No guest has a use for the
// bits, as nothing in a jail starts with another user's rights. What makes a folder drops
// them by itself. openat2 takes the mode where a filter can't see it, so it's in neither
// table: C libraries and Node don't call it, and others go back to openat.
var (
	noSetID1     = refuse(unix.EPERM, setID(1))            // chmod(path, mode), fchmod, creat, mknod
	noSetID2     = refuse(unix.EPERM, setID(2))            // fchmodat(dir, path, mode), fchmodat2, mknodat
	noSetIDOpen1 = refuse(unix.EPERM, making(1), setID(2)) // open(path, flags, mode)
	noSetIDOpen2 = refuse(unix.EPERM, making(2), setID(3)) // openat(dir, path, flags, mode)
)

func setID(mode uint) Match { return anyBit(mode, unix.S_ISUID, unix.S_ISGID) }

// making matches flags with which open looks at the mode. O_TMPFILE is O_DIRECTORY and a bit
// of its own.
func making(flags uint) Match { return anyBit(flags, unix.O_CREAT, unix.O_TMPFILE&^unix.O_DIRECTORY) }

// The flag leaves that device under the old name. An overlay has no such rename,
// either, and answers the same.
var noWhiteout = refuse(unix.EINVAL, anyBit(4, unix.RENAME_WHITEOUT)) // renameat2(dir, from, dir, to, flags)

// prctlOptions leaves what a process may do to itself without effect on others.
// A sub-reaper may keep orphans from pid 1: killing goes by cgroup, which finds
// them all the same.
var prctlOptions = refuse(unix.EPERM, isNot(0,
	unix.PR_SET_NAME, unix.PR_GET_NAME,
	unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG,
	unix.PR_SET_DUMPABLE, unix.PR_GET_DUMPABLE,
	unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
	unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK,
	unix.PR_SET_THP_DISABLE, unix.PR_GET_THP_DISABLE,
	unix.PR_SET_VMA, unix.PR_GET_AUXV, unix.PR_GET_TID_ADDRESS,
	unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS,
	unix.PR_GET_SECCOMP,
	unix.PR_SET_MDWE, unix.PR_GET_MDWE,
	unix.PR_CAPBSET_READ, unix.PR_CAPBSET_DROP, unix.PR_CAP_AMBIENT,
	unix.PR_GET_KEEPCAPS, unix.PR_GET_SECUREBITS,
	unix.PR_SET_SPECULATION_CTRL, unix.PR_GET_SPECULATION_CTRL,
	// Features of arm64 processors.
	unix.PR_SVE_SET_VL, unix.PR_SVE_GET_VL, unix.PR_SME_SET_VL, unix.PR_SME_GET_VL,
	unix.PR_PAC_RESET_KEYS, unix.PR_PAC_SET_ENABLED_KEYS, unix.PR_PAC_GET_ENABLED_KEYS,
	unix.PR_SET_TAGGED_ADDR_CTRL, unix.PR_GET_TAGGED_ADDR_CTRL,
))

// The jail sets RLIMIT_CORE to 1, the only value that prevents the host's core handler,
// which runs as root, from starting (core(5)). It must not change, not even to 0. Scripts
// and shells lower it and expect success, so the call returns 0 and does nothing. A
// call that also asks for the old limit fails: the filter can't fill it in. Reading
// the limit is allowed: prlimit without a new one.
var (
	noCore1 = []Refusal{{NoEffect: true, Match: []Match{is(0, unix.RLIMIT_CORE)}}} // setrlimit(resource, new)
	noCore2 = []Refusal{                                                           // prlimit(pid, resource, new, old)
		{Errno: unix.EPERM, Match: []Match{is(1, unix.RLIMIT_CORE), anyBit(2, math.MaxUint64), anyBit(3, math.MaxUint64)}},
		{NoEffect: true, Match: []Match{is(1, unix.RLIMIT_CORE), anyBit(2, math.MaxUint64)}},
	}
)

const socketType = 0xf // the rest of the type argument are SOCK_CLOEXEC and SOCK_NONBLOCK

// sockets answers as a kernel would that was built with these families and
// protocols only. Raw sockets, refused by right and not for want of support, get
// EPERM. What MPTCP sockets hold is charged to nobody, and some of it stays when they
// are closed; Go and curl fall back to TCP. What a netlink socket has queued is charged to no cgroup: see [FewNetlink].
var sockets = slices.Concat(
	refuse(unix.EAFNOSUPPORT, isNot(0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)),
	refuse(unix.EPROTONOSUPPORT, is(0, unix.AF_NETLINK), isNot(2, unix.NETLINK_ROUTE)),
	refuse(unix.ESOCKTNOSUPPORT, is(0, unix.AF_NETLINK), Match{1, socketType, NoneOf, []uint64{unix.SOCK_RAW, unix.SOCK_DGRAM}}),
	refuse(unix.ENOBUFS, is(0, unix.AF_NETLINK)),
	refuse(unix.EPERM, internet, Match{1, socketType, NoneOf, []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM}}),
	refuse(unix.EPROTONOSUPPORT, internet, isNot(2, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP)),
)

// What a UDP socket keeps back until it gets more is charged to no cgroup, 64 KiB each. The
// flag is a hint for TCP, too, where few programs give it.
var (
	noCork2 = refuse(unix.EOPNOTSUPP, anyBit(2, unix.MSG_MORE)) // sendmsg(fd, message, flags)
	noCork3 = refuse(unix.EOPNOTSUPP, anyBit(3, unix.MSG_MORE)) // sendto(fd, data, size, flags, ...), sendmmsg
)

const tcpAOAddKey = 38 // TCP_AO_ADD_KEY, Linux 6.7

var internet = is(0, unix.AF_INET, unix.AF_INET6)

var pairs = refuse(unix.EAFNOSUPPORT, isNot(0, unix.AF_UNIX))

// sockopts keeps out of sockets what a capability or a table entry above keeps
// out elsewhere, so that not all hangs on one check in the kernel.
var sockopts = slices.Concat(
	// Programs in the kernel: filters on sockets.
	refuse(unix.EPERM, is(1, unix.SOL_SOCKET), is(2,
		unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF)),
	// Netfilter's tables, 64 and 65 at both levels (CVE-2021-22555).
	refuse(unix.EPERM, is(1, unix.SOL_IP, unix.SOL_IPV6), is(2, 64, 65)),
	// Memory that is charged to no cgroup: copies of packets sent, for their time stamps,
	// keys, and a copy of the received header options.
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_SOCKET), is(2, unix.SO_TIMESTAMPING, unix.SO_TIMESTAMPING_NEW)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_TCP), is(2, unix.TCP_MD5SIG, unix.TCP_MD5SIG_EXT, tcpAOAddKey)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_IPV6), is(2, unix.IPV6_2292PKTOPTIONS)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_UDP), is(2, unix.UDP_CORK)),
	// Multicast groups: to leave those of thousands of sockets takes the kernel a minute, in
	// which it holds a lock that all network namespaces share. There is no device that has
	// any: the kernel answers ENODEV where no route leads to one.
	refuse(unix.ENODEV, is(1, unix.SOL_IP), is(2, unix.IP_ADD_MEMBERSHIP, unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_BLOCK_SOURCE,
		unix.IP_MSFILTER, unix.MCAST_JOIN_GROUP, unix.MCAST_BLOCK_SOURCE, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER)),
	refuse(unix.ENODEV, is(1, unix.SOL_IPV6), is(2, unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_ANYCAST,
		unix.MCAST_JOIN_GROUP, unix.MCAST_BLOCK_SOURCE, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER)),
	// TLS inside the kernel; OpenSSL does without (CVE-2023-0461).
	refuse(unix.EPERM, is(1, unix.SOL_TCP), is(2, unix.TCP_ULP)),
)
