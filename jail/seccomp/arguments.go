package seccomp

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// noNamespaces: each kind of namespace adds attack surface of the kernel. CLONE_NEWTIME is
// not listed: for clone, its bit is part of the signal number.
var noNamespaces = refuse(unix.EPERM, anyBit(0,
	unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWNET|
		unix.CLONE_NEWIPC|unix.CLONE_NEWUTS|unix.CLONE_NEWCGROUP))

// noSiblings: a sibling of a run's first process is a child of the host, which does not know
// it and never waits for it. It would remain as a zombie after the run, and the kernel would
// not let the jail's pid 1 end before it.
var noSiblings = refuse(unix.EPERM, anyBit(0, unix.CLONE_PARENT))

// noInput: TIOCSTI inserts input into the terminal that gaol was started from
// (CVE-2017-5226), TIOCLINUX pastes into a console, and TIOCSETD loads line disciplines,
// several of which had bugs that gave root (CVE-2017-2636).
var noInput = refuse(unix.EPERM, is(1, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD))

// personalities: 0xffffffff queries and 0 is the default. Others disable address
// randomisation or map page zero.
var personalities = refuse(unix.EPERM, isNot(0, 0, 0xffff_ffff))

// noFilters: the kernel charges the memory of a compiled filter to no cgroup, but to
// bpf_jit_limit, which the whole machine shares. 64 processes that each load as many filters
// as allowed, some 256 kB, take 16 MiB of it. 33 such runs take the usual 528 MiB, after
// which only root's processes can load a filter. seccomp(2) is in neither table, and this is
// its older form: both fail as on a kernel without filters.
var noFilters = refuse(unix.EINVAL, is(0, unix.PR_SET_SECCOMP))

// fcntlCommands: locks are charged to no cgroup. Locks of open file descriptions
// (F_OFD_SETLK) belong to no process that could be found and killed for holding too many;
// package jail watches the others. A lease blocks open for 45 seconds in every other
// process, including the host's on a mount. EINVAL is the kernel's errno for unknown
// commands.
var fcntlCommands = refuse(unix.EINVAL, is(1, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW, unix.F_SETLEASE))

// noSharedFiles: a lock belongs to the process that took it until the last process that
// shares its descriptor table closes the file. Only threads may share a table, so that the
// kernel's list of locks names processes that exist.
var noSharedFiles = refuse(unix.EPERM, among(0, unix.CLONE_FILES|unix.CLONE_THREAD, unix.CLONE_FILES))

// noDevices: files, pipes and sockets have no driver. A character device 0,0 needs no
// privilege, and marks a deleted file in an overlay.
var (
	noDevices1 = refuse(unix.EPERM, device(1)) // mknod(path, mode, dev)
	noDevices2 = refuse(unix.EPERM, device(2)) // mknodat(dir, path, mode, dev)
)

// device matches a mode that has a driver.
func device(mode uint) Match {
	return notAmong(mode, unix.S_IFMT, 0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK)
}

// noSetID: a file on a writable mount belongs on the host to the mount's owner, often root,
// and a set-user-ID program would run with that user's rights when it is started there. No
// guest needs the bits, as no program in a jail starts with another user's rights. mkdir
// ignores them. openat2 has the mode in memory, which a filter can't read, so it is in
// neither table: C libraries and Node do not call it, and others fall back to openat.
var (
	noSetID1     = refuse(unix.EPERM, setID(1))              // chmod(path, mode), fchmod, creat, mknod
	noSetID2     = refuse(unix.EPERM, setID(2))              // fchmodat(dir, path, mode), fchmodat2, mknodat
	noSetIDOpen1 = refuse(unix.EPERM, creating(1), setID(2)) // open(path, flags, mode)
	noSetIDOpen2 = refuse(unix.EPERM, creating(2), setID(3)) // openat(dir, path, flags, mode)
)

func setID(mode uint) Match { return anyBit(mode, unix.S_ISUID|unix.S_ISGID) }

// creating matches flags with which open uses the mode. O_TMPFILE includes O_DIRECTORY.
func creating(flags uint) Match { return anyBit(flags, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) }

// noWhiteout: the flag leaves a character device 0,0 under the old name. An overlay does not
// support it either, and returns the same errno.
var noWhiteout = refuse(unix.EINVAL, anyBit(4, unix.RENAME_WHITEOUT)) // renameat2(dir, from, dir, to, flags)

// prctlOptions allows options that affect only the process itself. A sub-reaper may keep
// orphans from pid 1: they are killed all the same, by their cgroup.
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

// noCore: the jail sets RLIMIT_CORE to 1, the only value that prevents the host's core
// handler, which runs as root, from starting (core(5)). It must not change, not even to 0.
// Scripts and shells lower it and expect success, so the call returns 0 without effect. A
// call that also requests the old limit fails, as the filter can't return it. prlimit
// without a new limit is allowed.
var (
	noCore1 = []Refusal{{NoEffect: true, Match: []Match{is(0, unix.RLIMIT_CORE)}}} // setrlimit(resource, new)
	noCore2 = []Refusal{                                                           // prlimit(pid, resource, new, old)
		{Errno: unix.EPERM, Match: []Match{is(1, unix.RLIMIT_CORE), anyBit(2, math.MaxUint64), anyBit(3, math.MaxUint64)}},
		{NoEffect: true, Match: []Match{is(1, unix.RLIMIT_CORE), anyBit(2, math.MaxUint64)}},
	}
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

// noCork: data that a UDP socket holds back because of the flag is charged to no cgroup, up
// to 64 KiB for each. For TCP the flag is a hint, which few programs use.
var (
	noCork2 = refuse(unix.EOPNOTSUPP, anyBit(2, unix.MSG_MORE)) // sendmsg(fd, message, flags)
	noCork3 = refuse(unix.EOPNOTSUPP, anyBit(3, unix.MSG_MORE)) // sendto(fd, data, size, flags, ...), sendmmsg
)

const tcpAOAddKey = 38 // TCP_AO_ADD_KEY, Linux 6.7

var internet = is(0, unix.AF_INET, unix.AF_INET6)

var socketPairs = refuse(unix.EAFNOSUPPORT, isNot(0, unix.AF_UNIX))

// socketOptions refuses options that the kernel already denies for lack of a capability, or
// whose equivalents the tables deny, so that no protection depends on a single check in the
// kernel.
var socketOptions = slices.Concat(
	// BPF programs attached to sockets.
	refuse(unix.EPERM, is(1, unix.SOL_SOCKET), is(2,
		unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF)),
	// Netfilter's tables: 64 and 65 at both levels (CVE-2021-22555).
	refuse(unix.EPERM, is(1, unix.SOL_IP, unix.SOL_IPV6), is(2, 64, 65)),
	// Memory that is charged to no cgroup: copies of sent packets for time stamps, keys,
	// copies of received header options, and corked data.
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_SOCKET), is(2, unix.SO_TIMESTAMPING, unix.SO_TIMESTAMPING_NEW)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_TCP), is(2, unix.TCP_MD5SIG, unix.TCP_MD5SIG_EXT, tcpAOAddKey)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_IPV6), is(2, unix.IPV6_2292PKTOPTIONS)),
	refuse(unix.ENOPROTOOPT, is(1, unix.SOL_UDP), is(2, unix.UDP_CORK)),
	// Multicast groups: leaving those of thousands of sockets takes the kernel a minute,
	// during which it holds a lock that all network namespaces share. ENODEV is the kernel's
	// errno if no route leads to a device.
	refuse(unix.ENODEV, is(1, unix.SOL_IP), is(2, unix.IP_ADD_MEMBERSHIP, unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_BLOCK_SOURCE,
		unix.IP_MSFILTER, unix.MCAST_JOIN_GROUP, unix.MCAST_BLOCK_SOURCE, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER)),
	refuse(unix.ENODEV, is(1, unix.SOL_IPV6), is(2, unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_ANYCAST,
		unix.MCAST_JOIN_GROUP, unix.MCAST_BLOCK_SOURCE, unix.MCAST_JOIN_SOURCE_GROUP, unix.MCAST_MSFILTER)),
	// TLS in the kernel (CVE-2023-0461); OpenSSL does not need it.
	refuse(unix.EPERM, is(1, unix.SOL_TCP), is(2, unix.TCP_ULP)),
)
