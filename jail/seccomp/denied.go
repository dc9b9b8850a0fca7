package seccomp

import "golang.org/x/sys/unix"

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
