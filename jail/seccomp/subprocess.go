package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

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
