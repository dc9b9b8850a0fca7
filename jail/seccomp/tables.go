package seccomp

import (
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// Allowed are the calls that guests may make. The reasons name callers. Calls that an
// architecture lacks are ignored there. It must not be modified.
var Allowed = []Row{
	// Processes and threads.
	{Calls: "clone", Reason: "fork, threads; no namespaces, no siblings", Refuse: slices.Concat(noNamespaces, noSiblings, noSharedFiles)},
	{Calls: "fork", Reason: "musl and old programs"},
	{Calls: "vfork", Reason: "spawning in libuv"},
	{Calls: "execve", Reason: "starts programs; the last step of entering a jail"},
	{Calls: "execveat", Reason: "fexecve in glibc"},
	{Calls: "exit exit_group", Reason: "end of a thread or process"},
	{Calls: "wait4 waitid", Reason: "child processes"},
	{Calls: "kill", Reason: "signals, within the pid namespace"},
	{Calls: "tkill tgkill", Reason: "signals to threads: abort, pthread_kill"},
	{Calls: "rt_sigqueueinfo rt_tgsigqueueinfo", Reason: "sigqueue, pthread_sigqueue"},
	{Calls: "pidfd_open pidfd_send_signal", Reason: "waits for processes without a race"},
	{Calls: "getpid getppid gettid", Reason: "process.pid, process.ppid, thread names"},
	{Calls: "setpgid getpgid getpgrp getsid", Reason: "job control in shells"},
	{Calls: "setsid", Reason: "spawn with detached: true"},
	{Calls: "set_tid_address set_robust_list rseq", Reason: "start of a program or thread in libc"},
	{Calls: "get_robust_list", Reason: "own threads; other processes' need the right to trace"},
	{Calls: "arch_prctl", Reason: "thread-local storage on amd64"},
	{Calls: "map_shadow_stack", Reason: "programs built for shadow stacks"},
	{Calls: "prctl", Reason: "names of threads and memory, dumpable, death signal", Refuse: slices.Concat(noFilters, prctlOptions)},
	{Calls: "personality", Reason: "queries, by uname and node-gyp's tools", Refuse: personalities},
	{Calls: "landlock_create_ruleset landlock_add_rule landlock_restrict_self", Reason: "programs that confine themselves further"},
	{Calls: "capget", Reason: "libcap, libuv before it uses io_uring"},
	{Calls: "capset", Reason: "dropping capabilities; the guest has none"},

	// Users. Without capabilities and with no_new_privs these have no effect.
	{Calls: "getuid geteuid getgid getegid getresuid getresgid getgroups", Reason: "os.userInfo, process.getgroups, libc"},
	{Calls: "setuid setreuid setresuid setfsuid", Reason: "spawn with uid, process.setuid, seteuid in glibc"},
	{Calls: "setgid setregid setresgid setfsgid", Reason: "spawn with gid"},
	{Calls: "setgroups", Reason: "spawn with uid; its failure is expected"},

	// Scheduling and limits of the process itself, which can only be lowered.
	{Calls: "sched_yield", Reason: "V8's spin locks"},
	{Calls: "sched_getaffinity", Reason: "os.availableParallelism"},
	{Calls: "sched_setaffinity", Reason: "taskset, thread pools"},
	{Calls: "sched_getparam sched_getscheduler sched_getattr", Reason: "pthread_getattr_np in V8"},
	{Calls: "sched_setparam sched_setscheduler sched_setattr", Reason: "pthread attributes; a higher priority needs CAP_SYS_NICE"},
	{Calls: "sched_get_priority_max sched_get_priority_min sched_rr_get_interval", Reason: "pthread attributes"},
	{Calls: "getpriority setpriority", Reason: "os.getPriority, os.setPriority"},
	{Calls: "ioprio_get", Reason: "ionice"},
	{Calls: "ioprio_set", Reason: "ionice; real-time needs CAP_SYS_NICE"},
	{Calls: "getrlimit", Reason: "stack size, ulimit"},
	{Calls: "setrlimit", Reason: "ulimit; hard limits can only be lowered", Refuse: noCore1},
	{Calls: "prlimit64", Reason: "as getrlimit and setrlimit", Refuse: noCore2},
	{Calls: "getrusage", Reason: "process.resourceUsage"},
	{Calls: "times", Reason: "process times in shells"},
	{Calls: "getcpu", Reason: "allocators with a pool per processor"},
	{Calls: "sysinfo", Reason: "os.totalmem, os.uptime"},
	{Calls: "uname", Reason: "os.release"},

	// Signals.
	{Calls: "rt_sigaction rt_sigprocmask", Reason: "handlers"},
	{Calls: "rt_sigreturn", Reason: "return from a handler"},
	{Calls: "rt_sigpending", Reason: "sigpending"},
	{Calls: "rt_sigsuspend", Reason: "shells waiting for children"},
	{Calls: "rt_sigtimedwait", Reason: "sigwait"},
	{Calls: "sigaltstack", Reason: "V8's and Go's handlers"},
	{Calls: "restart_syscall", Reason: "the kernel itself, after SIGCONT"},
	{Calls: "signalfd signalfd4", Reason: "event loops other than libuv's"},
	{Calls: "pause", Reason: "old programs"},
	{Calls: "alarm", Reason: "busybox timeout"},
	{Calls: "setitimer getitimer", Reason: "profilers, alarm in libc"},

	// Time.
	{Calls: "nanosleep", Reason: "sleep"},
	{Calls: "clock_nanosleep", Reason: "sleep, Atomics.wait", Refuse: noProcessorClocks},
	{Calls: "clock_gettime gettimeofday time", Reason: "if the vDSO can't"},
	{Calls: "clock_getres", Reason: "process.hrtime"},
	{Calls: "timer_create", Reason: "timers of real clocks; Go's profiler falls back to setitimer", Refuse: noProcessorClocks},
	{Calls: "timer_settime timer_gettime timer_getoverrun timer_delete", Reason: "as timer_create"},
	{Calls: "timerfd_create timerfd_settime timerfd_gettime", Reason: "event loops other than libuv's"},

	// Memory. The cgroup limits its amount.
	{Calls: "brk", Reason: "malloc"},
	{Calls: "mmap munmap", Reason: "malloc, V8, libraries"},
	{Calls: "mremap", Reason: "realloc, WebAssembly.Memory.grow"},
	{Calls: "mprotect", Reason: "V8's code pages"},
	{Calls: "madvise", Reason: "V8's heap", Refuse: ownMemory},
	{Calls: "msync", Reason: "mapped files, SQLite"},
	{Calls: "mincore", Reason: "JVMs; since Linux 5.2 it reports only writable files"},
	{Calls: "mlock mlock2 munlock mlockall munlockall", Reason: "OpenSSL's secure heap; RLIMIT_MEMLOCK limits it"},
	{Calls: "mseal", Reason: "newer glibc; only removes rights"},
	{Calls: "pkey_alloc pkey_free pkey_mprotect", Reason: "V8 protects its code pages"},
	{Calls: "membarrier", Reason: "V8 and liburcu patch code"},
	{Calls: "memfd_create", Reason: "anonymous files, which end with their process"},
	{Calls: "futex futex_waitv futex_wake futex_wait futex_requeue", Reason: "every lock"},
	{Calls: "getrandom", Reason: "crypto"},

	// Open files.
	{Calls: "read write readv writev", Reason: "files, pipes, stdout; reports of the entry program"},
	{Calls: "pread64 pwrite64 preadv pwritev", Reason: "fs.read and fs.write at a position"},
	{Calls: "preadv2 pwritev2", Reason: "as preadv and pwritev, in newer C libraries", Refuse: ioFlags},
	{Calls: "epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2", Reason: "libuv, old and newer event loops"},
	{Calls: "lseek close", Reason: "files"},
	{Calls: "close_range", Reason: "libuv's and shells' spawning"},
	{Calls: "dup dup2 dup3", Reason: "shells, libuv's spawning"},
	{Calls: "fcntl", Reason: "flags, locks", Refuse: fcntlCommands},
	{Calls: "flock", Reason: "npm's and Git's locks"},
	{Calls: "ioctl", Reason: "terminals, FIONBIO, FICLONE", Refuse: slices.Concat(noInput, noFileSystem)},
	{Calls: "fsync fdatasync", Reason: "fs.fsync, fs.fdatasync"},
	{Calls: "syncfs", Reason: "sync -f"},
	{Calls: "sync_file_range", Reason: "databases"},
	{Calls: "fallocate", Reason: "SQLite, tar"},
	{Calls: "truncate ftruncate", Reason: "fs.truncate, fs.ftruncate"},
	{Calls: "readahead fadvise64", Reason: "tar, SQLite, PostgreSQL", Refuse: noCacheAdvice},
	{Calls: "copy_file_range", Reason: "fs.copyFile"},
	{Calls: "tee", Reason: "coreutils"},
	{Calls: "pipe", Reason: "musl"},
	{Calls: "pipe2", Reason: "child_process", Refuse: noNotifications},
	{Calls: "eventfd eventfd2", Reason: "old programs, libuv's wake-ups"},
	{Calls: "poll ppoll select pselect6", Reason: "shells, libuv, make, old programs"},
	{Calls: "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch", Reason: "fs.watch, old programs"},

	// Paths. Mounts and Landlock restrict their targets.
	{Calls: "open", Reason: "musl, amd64", Refuse: noSetIDOpen1},
	{Calls: "openat", Reason: "fs.open", Refuse: noSetIDOpen2},
	{Calls: "creat", Reason: "old programs", Refuse: noSetID1},
	{Calls: "stat lstat fstat newfstatat statx", Reason: "fs.stat, in Node and C libraries"},
	{Calls: "statfs fstatfs", Reason: "fs.statfs, libc"},
	{Calls: "readlink readlinkat", Reason: "fs.readlink, libc"},
	{Calls: "access faccessat faccessat2", Reason: "fs.access, shells"},
	{Calls: "getcwd", Reason: "process.cwd"},
	{Calls: "chdir fchdir", Reason: "process.chdir, find, rm -r"},
	{Calls: "umask", Reason: "process.umask"},
	{Calls: "getdents getdents64", Reason: "fs.readdir, old programs"},
	{Calls: "utime utimes futimesat utimensat", Reason: "fs.utimes, old programs"},
	{Calls: "mkdir mkdirat", Reason: "fs.mkdir, tar"},
	{Calls: "rename renameat", Reason: "fs.rename, tar"},
	{Calls: "unlink unlinkat rmdir", Reason: "fs.unlink, fs.rmdir, rm"},
	{Calls: "renameat2", Reason: "mv -n", Refuse: noWhiteout},
	{Calls: "link linkat", Reason: "fs.link, ln"},
	{Calls: "symlink symlinkat", Reason: "fs.symlink, ln, npm's .bin"},
	{Calls: "mknod", Reason: "mkfifo", Refuse: slices.Concat(noDevices1, noSetID1)},
	{Calls: "mknodat", Reason: "mkfifo", Refuse: slices.Concat(noDevices2, noSetID2)},
	{Calls: "chmod fchmod", Reason: "fs.chmod, fs.fchmod", Refuse: noSetID1},
	{Calls: "fchmodat fchmodat2", Reason: "chmod", Refuse: noSetID2},
	{Calls: "chown fchown lchown fchownat", Reason: "fs.chown, fs.fchown, fs.lchown, chown"},
	{Calls: "getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat", Reason: "cp -a, ls"},
	{Calls: "removexattr lremovexattr fremovexattr removexattrat", Reason: "cp -a, on a mounted folder of the host"},

	// Sockets. The network namespace restricts their peers.
	{Calls: "socket", Reason: "net, dgram", Refuse: sockets},
	{Calls: "socketpair", Reason: "child_process", Refuse: socketPairs},
	{Calls: "bind listen accept accept4 connect shutdown getsockname getpeername", Reason: "net"},
	{Calls: "getsockopt", Reason: "net", Refuse: noSocketCounters},
	{Calls: "setsockopt", Reason: "net", Refuse: socketOptions},
	{Calls: "sendto", Reason: "net, dns", Refuse: sendFlags3},
	{Calls: "recvfrom recvmsg recvmmsg", Reason: "net, dns, dgram, child_process handles"},
	{Calls: "sendmsg", Reason: "child_process handles", Refuse: sendFlags2},
	{Calls: "sendmmsg", Reason: "dns in libc, dgram", Refuse: sendFlags3},
}

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

// noFileSystem: of the requests of file systems, programs need the flags of a file, its extents and clones of it. Others
// move a file's blocks or rewrite its map, and had bugs in ext4 and Btrfs. ENOTTY is tmpfs's errno.
var noFileSystem = []Refusal{
	{Errno: unix.ENOTTY, Match: []Match{among(1, 0xff00, 'f'<<8), notAmong(1, 0xff, 1, 2, 11)}},   // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FIEMAP
	{Errno: unix.ENOTTY, Match: []Match{among(1, 0xff00, 'X'<<8), notAmong(1, 0xff, 31, 32)}},     // FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR
	{Errno: unix.ENOTTY, Match: []Match{among(1, 0xff00, 0x94<<8), notAmong(1, 0xff, 9, 13, 54)}}, // FICLONE, FICLONERANGE, FIDEDUPERANGE
}

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

// deniedErrno is the errno of a denied call whose row has none.
const deniedErrno = unix.EPERM

// Denied are calls that no guest may make. They return deniedErrno or the row's own errno. It
// must not be modified.
var Denied = []Row{
	// The kernel's own programmability and introspection.
	{Calls: "bpf", Reason: "programs in the kernel"},
	{Calls: "perf_event_open", Reason: "kernel counters: a large surface and a side channel"},
	{Calls: "userfaultfd", Reason: "stops the kernel at a chosen memory access, which exploits rely on"},
	{Calls: "kexec_load kexec_file_load", Reason: "replaces the kernel"},
	{Calls: "init_module finit_module", Reason: "code in the kernel"},
	{Calls: "delete_module", Reason: "changes the kernel"},
	{Calls: "lookup_dcookie", Reason: "profiling of all the host's paths"},
	{Calls: "syslog", Reason: "the host's kernel log, with addresses"},
	{Calls: "lsm_set_self_attr", Reason: "changes of security labels"},

	// Work that the kernel does without consulting the filter.
	{Calls: "io_uring_setup io_uring_enter io_uring_register", Reason: "makes calls that the filter never sees; libuv falls back"},
	{Calls: "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents", Reason: "old asynchronous I/O: libuv uses threads, and the host's contexts are limited"},
	{Calls: "vmsplice", Reason: "maps user pages into pipes; a bug in it gave root (CVE-2008-0600)"},

	// Other processes.
	{Calls: "ptrace", Reason: "controls other processes"},
	{Calls: "process_vm_readv", Reason: "reads other processes"},
	{Calls: "process_vm_writev", Reason: "writes other processes"},
	{Calls: "process_madvise", Reason: "pages out other processes"},
	{Calls: "process_mrelease", Reason: "frees memory of other processes"},
	{Calls: "pidfd_getfd", Reason: "copies descriptors of other processes"},
	{Calls: "kcmp", Reason: "compares kernel pointers of processes"},

	// Keys, which only user namespaces separate.
	{Calls: "add_key", Reason: "keyrings are shared by all processes of a user id"},
	{Calls: "request_key", Reason: "as add_key; starts a helper on the host"},
	{Calls: "keyctl", Reason: "as add_key; a reference leak in it gave root (CVE-2016-0728)"},

	// Mounts and namespaces.
	{Calls: "mount pivot_root move_mount open_tree open_tree_attr", Reason: "the jail's file tree is fixed before the guest starts"},
	{Calls: "umount2", Reason: "as mount; would reveal files that a mount hides"},
	{Calls: "chroot", Reason: "as mount; a second chroot escapes from the first"},
	{Calls: "fsopen fsconfig fsmount fspick", Reason: "as mount; a bug in a file system's option parser gave root (CVE-2022-0185)"},
	{Calls: "mount_setattr", Reason: "as mount; would make read-only mounts writable"},
	{Calls: "statmount listmount", Reason: "shows the host's paths of mounts"},
	{Calls: "listns", Reason: "shows the host's namespaces"},
	{Calls: "setns", Reason: "enters other namespaces"},
	{Calls: "unshare", Reason: "a new user namespace gives all capabilities, and their kernel surface (CVE-2022-0492)"},
	{Calls: "open_by_handle_at", Reason: "opens files by number, past every mount (shocker.c)"},
	{Calls: "name_to_handle_at", Reason: "returns handles for open_by_handle_at, and mount ids"},
	{Calls: "fanotify_init fanotify_mark", Reason: "watches whole file systems; inotify is allowed"},
	{Calls: "quotactl quotactl_fd", Reason: "administration of file systems"},
	{Calls: "sync", Reason: "writes out all of the host's disks; fsync and syncfs are allowed"},
	{Calls: "swapon swapoff nfsservctl", Reason: "administration of the host"},

	// Objects that outlive the run.
	{Calls: "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl", Reason: "System V memory outlives the run that created it, charged to no cgroup"},
	{Calls: "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr", Reason: "message queues outlive the run, as shmget"},
	// Kernel memory that is charged to no cgroup. See SECURITY.md for figures.
	{Calls: "sendfile splice", Errno: unix.EINVAL, Reason: "pages that it reads from a device or /proc into a socket or pipe are charged to no cgroup; libuv, Go and busybox copy on EINVAL"},
	{Calls: "setxattr lsetxattr fsetxattr setxattrat", Errno: unix.EOPNOTSUPP, Reason: "a POSIX ACL has up to 128 KiB that are charged to no cgroup, also on tmpfs; for programs this errno means a file system without attributes"},
	{Calls: "memfd_secret", Reason: "memory that the host can't migrate or dump"},
	{Calls: "mbind set_mempolicy set_mempolicy_home_node", Reason: "placement of memory in the host's nodes"},
	{Calls: "get_mempolicy", Reason: "shows the host's nodes"},
	{Calls: "migrate_pages move_pages", Reason: "as mbind; of other processes"},
	{Calls: "cachestat", Errno: unix.ENOSYS, Reason: "shows which pages of the image other sandboxes use; programs fall back on the errno of kernels before 6.5"},

	// The machine.
	{Calls: "reboot", Reason: "administration of the host"},
	{Calls: "acct", Reason: "accounting of the host"},
	{Calls: "settimeofday clock_settime adjtimex clock_adjtime", Reason: "the host's clock"},
	{Calls: "sethostname setdomainname", Reason: "set before the guest starts"},
	{Calls: "iopl ioperm", Reason: "hardware ports"},
	{Calls: "modify_ldt", Reason: "16-bit code segments: an unused attack surface (CVE-2015-5157)"},
	{Calls: "vhangup", Reason: "disconnects other processes from a terminal"},
}

// CompileOnly returns the filter that allows the calls of rows only, for a process that is not a
// guest. All other calls get ENOSYS.
func CompileOnly(rows []Row) (*Filter, error) { return newFilter(tables{allowed: rows}) }

// noCode: neither Go nor C libraries make code at run time, and nothing is loaded after the filter.
var (
	noCode = refuse(unix.EPERM, anyBit(2, unix.PROT_EXEC)) // mmap(address, size, protection, ...), mprotect
	// onlyThreads: a process that outlives its first one could be neither waited for nor killed with it.
	onlyThreads = refuse(unix.EPERM, notAmong(0, unix.CLONE_THREAD|unix.CLONE_VM, unix.CLONE_THREAD|unix.CLONE_VM))
)

// GoRuntime are the calls of Go's runtime, and of the C library below it, in a program that has
// started. They open, execute and connect nothing. It must not be modified.
var GoRuntime = []Row{
	{Calls: "mmap mprotect", Reason: "heap, stacks of threads", Refuse: noCode},
	{Calls: "munmap madvise mremap brk", Reason: "heap, malloc"},
	{Calls: "clone", Reason: "threads", Refuse: slices.Concat(onlyThreads, noNamespaces)},
	{Calls: "set_robust_list rseq", Reason: "start of a thread in libc"},
	{Calls: "futex sched_yield nanosleep clock_nanosleep restart_syscall", Reason: "scheduler"},
	{Calls: "clock_gettime gettimeofday", Reason: "if the vDSO can't"},
	{Calls: "sched_getaffinity", Reason: "number of processors"},
	{Calls: "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack", Reason: "handlers of signals"},
	{Calls: "getpid gettid tgkill", Reason: "preemption; abort. In its pid namespace the process is alone"},
	{Calls: "epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2", Reason: "poller"},
	{Calls: "getrandom", Reason: "seeds of maps"},
	{Calls: "exit exit_group", Reason: "end of a thread or the process"},
	{Calls: "read write close", Reason: "socket to the host, standard error"},
	{Calls: "fcntl", Reason: "os.NewFile reads and sets the mode of a descriptor, net.FileConn copies it", Refuse: refuse(unix.EINVAL, isNot(1, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD_CLOEXEC))},
}

// Egress are the further calls of a process that carries a sandbox's connections. It creates and
// accepts sockets, but the host connects them: only the host decides where they lead.
var Egress = []Row{
	{Calls: "socket", Reason: "sockets to hosts, which this process is charged for", Refuse: slices.Concat(
		refuse(unix.EAFNOSUPPORT, isNot(0, unix.AF_INET, unix.AF_INET6)),
		refuse(unix.ESOCKTNOSUPPORT, notAmong(1, socketType, unix.SOCK_STREAM)),
		refuse(unix.EPROTONOSUPPORT, isNot(2, 0, unix.IPPROTO_TCP)),
	)},
	{Calls: "accept4", Reason: "the guest's connections"},
	{Calls: "sendmsg recvmsg", Reason: "descriptors to and from the host", Refuse: refuse(unix.EPERM, isNot(0, HostSocket))},
	{Calls: "sendto", Reason: "data of connected sockets", Refuse: refuse(unix.EPERM, anyBit(4, allBits64))}, // no address: TCP fast open connects
	{Calls: "recvfrom readv writev", Reason: "data of connections"},
	{Calls: "splice pipe2", Reason: "data from one connection to the other"},
	{Calls: "ioctl", Reason: "how much a connection has to read", Refuse: refuse(unix.ENOTTY, isNot(1, unix.SIOCINQ))},
	{Calls: "shutdown getsockname getpeername getsockopt", Reason: "state of connections"},
	{Calls: "setsockopt", Reason: "a few options of TCP", Refuse: slices.Concat(
		refuse(unix.ENOPROTOOPT, isNot(1, unix.SOL_SOCKET, unix.SOL_TCP)),
		refuse(unix.ENOPROTOOPT, is(1, unix.SOL_SOCKET), isNot(2, unix.SO_KEEPALIVE, unix.SO_LINGER, unix.SO_BROADCAST)),
		refuse(unix.ENOPROTOOPT, is(1, unix.SOL_TCP), isNot(2, unix.TCP_NODELAY, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT)),
	)},
}

// HostSocket is the descriptor of the socket to the host in the processes of [Egress].
const HostSocket = 3

const allBits64 = 1<<64 - 1
