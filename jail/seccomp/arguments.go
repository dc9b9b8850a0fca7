package seccomp

import (
	"math"

	"golang.org/x/sys/unix"
)

// noNamespaces: each kind of namespace adds attack surface of the kernel. CLONE_NEWTIME is
// not listed: for clone, its bit is part of the signal number.
var noNamespaces = refuse(unix.EPERM, anyBit(0, namespaceFlags))

const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

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

// device matches the mode of a device node, which would reach a driver.
func device(mode uint) Match {
	return notAmong(mode, unix.S_IFMT, 0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK)
}

// noSetID: a file on a writable mount belongs on the host to the mount's owner, often root,
// and a set-user-ID program would run with that user's rights when it is started there. No
// guest needs the bits, as no program in a jail starts with another user's rights. mkdir
// ignores them. openat2 takes the mode in memory, which a filter can't read, so it is in
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

// noProcessorClocks: timers of processor time, which few programs use, had bugs that gave root (CVE-2022-2585,
// CVE-2025-38352). ENOTSUP is the kernel's errno for clocks without timers.
var noProcessorClocks = refuse(unix.ENOTSUP, isNot(0, unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC, unix.CLOCK_BOOTTIME, unix.CLOCK_TAI))

// noNotifications: O_EXCL makes a pipe for notifications of the kernel (CVE-2022-0995). EINVAL is the errno for
// unknown flags.
var noNotifications = refuse(unix.EINVAL, anyBit(1, int32Mask&^(unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_DIRECT)))
