package seccomp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ext4MoveExtents is EXT4_IOC_MOVE_EXT, of the kernel's fs/ext4/ext4.h.
const ext4MoveExtents = 0xc028660f

const garbage = 0xdead_beef << 32 // bits of an int argument that the kernel ignores

// invalidArgs are a bad descriptor, address and size for every call.
var invalidArgs = [6]uintptr{math.MaxUint, math.MaxUint, math.MaxUint, math.MaxUint, math.MaxUint, math.MaxUint}

// TestDenied makes every denied call as root. Without the filter each passes the permission
// checks and fails for its arguments.
func TestDenied(t *testing.T) {
	var made []call
	var rows []Row
	for name, r := range calls(Denied) {
		if n, exists := native(t).number(name); exists {
			args := invalidArgs
			if name == "splice" { // checks its flags first
				args[5] = 0
			}
			made = append(made, call{uintptr(n), args})
			r.Calls = name
			rows = append(rows, r)
		} else {
			t.Logf("%s: not on this architecture", name)
		}
	}
	on, off := under(t, filter(t), made...), under(t, nil, made...)
	for i, r := range rows {
		want := cmp.Or(r.Errno, unix.EPERM)
		if on[i] != want {
			t.Errorf("%s: %v with the filter, want %v", r.Calls, on[i], want)
		}
		if r.Calls == "cachestat" && off[i] == unix.ENOSYS {
			t.Log("cachestat: not in this kernel, which is older than Linux 6.5")
		} else if off[i] == want {
			t.Errorf("%s: %v without the filter too: this proves nothing", r.Calls, off[i])
		}
	}
}

func TestArguments(t *testing.T) {
	const badFD = math.MaxUint
	clone := func(flags uintptr) call { // EINVAL: threads need CLONE_SIGHAND
		return call{nr(t, "clone"), [6]uintptr{flags | unix.CLONE_THREAD}}
	}
	of := func(name string, args ...uintptr) call {
		c := call{Nr: nr(t, name)}
		copy(c.Args[:], args)
		return c
	}
	const (
		noErr = syscall.Errno(0)
		all   = 0xffff_ffff
	)
	tests := []struct {
		name    string
		call    call
		on, off syscall.Errno
	}{
		{"clone NEWUSER", clone(unix.CLONE_NEWUSER), unix.EPERM, unix.EINVAL},
		{"clone NEWNS", clone(unix.CLONE_NEWNS), unix.EPERM, unix.EINVAL},
		{"clone NEWPID", clone(unix.CLONE_NEWPID), unix.EPERM, unix.EINVAL},
		{"clone NEWNET", clone(unix.CLONE_NEWNET), unix.EPERM, unix.EINVAL},
		{"clone NEWIPC", clone(unix.CLONE_NEWIPC), unix.EPERM, unix.EINVAL},
		{"clone NEWUTS", clone(unix.CLONE_NEWUTS), unix.EPERM, unix.EINVAL},
		{"clone NEWCGROUP", clone(unix.CLONE_NEWCGROUP), unix.EPERM, unix.EINVAL},
		{"clone PARENT", clone(unix.CLONE_PARENT), unix.EPERM, unix.EINVAL},
		{"clone NEWUSER and garbage", clone(unix.CLONE_NEWUSER | garbage), unix.EPERM, unix.EINVAL},
		{"clone of a thread", clone(0), unix.EINVAL, unix.EINVAL},
		{"clone3", of("clone3", 0, 0), unix.ENOSYS, unix.EINVAL},
		{"unknown", call{Nr: 9999}, unix.ENOSYS, unix.ENOSYS},

		{"TIOCSTI", of("ioctl", badFD, unix.TIOCSTI), unix.EPERM, unix.EBADF},
		{"TIOCSTI and garbage", of("ioctl", badFD, unix.TIOCSTI|garbage), unix.EPERM, unix.EBADF},
		{"TIOCLINUX", of("ioctl", badFD, unix.TIOCLINUX|1<<32), unix.EPERM, unix.EBADF},
		{"TIOCSETD", of("ioctl", badFD, unix.TIOCSETD), unix.EPERM, unix.EBADF},
		{"an ext4 request", of("ioctl", badFD, ext4MoveExtents), unix.ENOTTY, unix.EBADF},
		{"an ext4 request and garbage", of("ioctl", badFD, ext4MoveExtents|garbage), unix.ENOTTY, unix.EBADF},
		{"an XFS request", of("ioctl", badFD, 0xc0045877), unix.ENOTTY, unix.EBADF},  // FIFREEZE
		{"a Btrfs request", of("ioctl", badFD, 0x5000940e), unix.ENOTTY, unix.EBADF}, // BTRFS_IOC_SUBVOL_CREATE
		{"FICLONE", of("ioctl", badFD, unix.FICLONE), unix.EBADF, unix.EBADF},
		{"FS_IOC_GETFLAGS", of("ioctl", badFD, unix.FS_IOC_GETFLAGS), unix.EBADF, unix.EBADF},
		{"TCGETS", of("ioctl", badFD, unix.TCGETS), unix.EBADF, unix.EBADF},

		{"personality asked", of("personality", all), noErr, noErr},
		{"personality plain", of("personality", 0), noErr, noErr},
		{"personality ADDR_NO_RANDOMIZE", of("personality", 0x0040000), unix.EPERM, noErr},
		{"personality and garbage", of("personality", 0x0040000|garbage), unix.EPERM, noErr},

		{"mknod of a device", of("mknodat", badFD, math.MaxUint, unix.S_IFBLK|0o600, 8<<8), unix.EPERM, unix.EFAULT},
		{"mknod of a terminal", of("mknodat", badFD, math.MaxUint, unix.S_IFCHR|garbage, 5<<8), unix.EPERM, unix.EFAULT},
		{"rename with a whiteout", of("renameat2", badFD, math.MaxUint, badFD, math.MaxUint, unix.RENAME_WHITEOUT|unix.RENAME_NOREPLACE), unix.EINVAL, unix.EFAULT},
		{"rename", of("renameat2", badFD, math.MaxUint, badFD, math.MaxUint, unix.RENAME_NOREPLACE), unix.EFAULT, unix.EFAULT},
		{"mknod of a pipe", of("mknodat", badFD, math.MaxUint, unix.S_IFIFO|0o600), unix.EFAULT, unix.EFAULT},
		{"mknod of a file", of("mknodat", badFD, math.MaxUint, 0o600), unix.EFAULT, unix.EFAULT},

		// Unreadable addresses, so that calls that pass the filter change nothing.
		{"setrlimit CORE", of("setrlimit", unix.RLIMIT_CORE, 1), noErr, unix.EFAULT},
		{"setrlimit NOFILE", of("setrlimit", unix.RLIMIT_NOFILE, 1), unix.EFAULT, unix.EFAULT},
		{"prlimit CORE", of("prlimit64", 0, unix.RLIMIT_CORE, 1, 0), noErr, unix.EFAULT},
		{"prlimit CORE, high address", of("prlimit64", 0, unix.RLIMIT_CORE|garbage, 1<<62, 0), noErr, unix.EFAULT},
		{"prlimit CORE, both", of("prlimit64", 0, unix.RLIMIT_CORE, 1, 1<<62), unix.EPERM, unix.EFAULT},
		{"prlimit CORE, asked", of("prlimit64", 0, unix.RLIMIT_CORE, 0, 0), noErr, noErr},
		{"prlimit NOFILE", of("prlimit64", 0, unix.RLIMIT_NOFILE, 1, 0), unix.EFAULT, unix.EFAULT},

		{"prctl SET_MM", of("prctl", unix.PR_SET_MM, 1, 0, 0, 1), unix.EPERM, unix.EINVAL},
		{"prctl SET_PTRACER", of("prctl", unix.PR_SET_PTRACER, 1<<30), unix.EPERM, unix.EINVAL},
		{"prctl MCE_KILL and garbage", of("prctl", unix.PR_MCE_KILL|garbage, 99), unix.EPERM, unix.EINVAL},
		{"prctl of tomorrow", of("prctl", 3000), unix.EPERM, unix.EINVAL},
		{"prctl GET_DUMPABLE", of("prctl", unix.PR_GET_DUMPABLE), unix.Errno(0), unix.Errno(0)},

		{"clone of a process that shares files", call{nr(t, "clone"), [6]uintptr{unix.CLONE_SIGHAND | unix.CLONE_FILES}}, unix.EPERM, unix.EINVAL},
		{"clone of a thread that shares files", clone(unix.CLONE_FILES), unix.EINVAL, unix.EINVAL},

		{"seccomp listener", of("seccomp", unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, 0), unix.ENOSYS, unix.EFAULT},
		{"seccomp filter", of("seccomp", unix.SECCOMP_SET_MODE_FILTER, 0, 0), unix.ENOSYS, unix.EFAULT},
		{"prctl filter", of("prctl", unix.PR_SET_SECCOMP|garbage, unix.SECCOMP_MODE_FILTER, 0), unix.EINVAL, unix.EFAULT},

		{"fcntl OFD_SETLK", of("fcntl", badFD, unix.F_OFD_SETLK, 0), unix.EINVAL, unix.EBADF},
		{"fcntl OFD_SETLKW and garbage", of("fcntl", badFD, unix.F_OFD_SETLKW|garbage, 0), unix.EINVAL, unix.EBADF},
		{"fcntl SETLEASE", of("fcntl", badFD, unix.F_SETLEASE, 0), unix.EINVAL, unix.EBADF},
		{"fcntl SETLK", of("fcntl", badFD, unix.F_SETLK, 0), unix.EBADF, unix.EBADF},

		{"netfilter's tables", of("setsockopt", badFD, unix.SOL_IP, 64), unix.EPERM, unix.EBADF},
		{"netfilter's tables of IPv6", of("setsockopt", badFD, unix.SOL_IPV6|garbage, 64|garbage), unix.EPERM, unix.EBADF},
		{"socket filter", of("setsockopt", badFD, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER), unix.EPERM, unix.EBADF},
		{"time stamps", of("setsockopt", badFD, unix.SOL_SOCKET, unix.SO_TIMESTAMPING), unix.ENOPROTOOPT, unix.EBADF},
		{"TCP keys", of("setsockopt", badFD, unix.SOL_TCP|garbage, unix.TCP_MD5SIG), unix.ENOPROTOOPT, unix.EBADF},
		{"sendto MSG_MORE", of("sendto", badFD, 0, 0, unix.MSG_MORE|unix.MSG_NOSIGNAL), unix.EOPNOTSUPP, unix.EBADF},
		{"sendmsg MSG_MORE", of("sendmsg", badFD, 0, unix.MSG_MORE|garbage), unix.EOPNOTSUPP, unix.EBADF},
		{"sendmsg", of("sendmsg", badFD, 0, unix.MSG_NOSIGNAL), unix.EBADF, unix.EBADF},
		{"UDP_CORK", of("setsockopt", badFD, unix.SOL_UDP, unix.UDP_CORK), unix.ENOPROTOOPT, unix.EBADF},
		{"a group", of("setsockopt", badFD, unix.SOL_IP, unix.IP_ADD_MEMBERSHIP), unix.ENODEV, unix.EBADF},
		{"a group of IPv6", of("setsockopt", badFD, unix.SOL_IPV6, unix.MCAST_JOIN_GROUP|garbage), unix.ENODEV, unix.EBADF},
		{"IP_TTL", of("setsockopt", badFD, unix.SOL_IP, unix.IP_TTL), unix.EBADF, unix.EBADF},
		{"TLS in the kernel", of("setsockopt", badFD, unix.SOL_TCP, unix.TCP_ULP), unix.EPERM, unix.EBADF},
		{"TCP_NODELAY", of("setsockopt", badFD, unix.SOL_TCP, unix.TCP_NODELAY), unix.EBADF, unix.EBADF},
		{"UDP_ENCAP", of("setsockopt", badFD, unix.SOL_UDP, unix.UDP_ENCAP|garbage), unix.ENOPROTOOPT, unix.EBADF},
		{"IPsec policy", of("setsockopt", badFD, unix.SOL_IP, unix.IP_XFRM_POLICY), unix.ENOPROTOOPT, unix.EBADF},
		{"a socket's address family", of("setsockopt", badFD, unix.SOL_IPV6, unix.IPV6_ADDRFORM), unix.ENOPROTOOPT, unix.EBADF},
		{"zero-copy sending", of("setsockopt", badFD, unix.SOL_SOCKET, unix.SO_ZEROCOPY), unix.ENOPROTOOPT, unix.EBADF},
		{"an option of tomorrow", of("setsockopt", badFD, unix.SOL_TCP, 3000), unix.ENOPROTOOPT, unix.EBADF},
		{"a level of tomorrow", of("setsockopt", badFD, 3000|garbage, 1), unix.ENOPROTOOPT, unix.EBADF},
		{"IPV6_V6ONLY", of("setsockopt", badFD, unix.SOL_IPV6, unix.IPV6_V6ONLY), unix.EBADF, unix.EBADF},
		{"a socket's cookie", of("getsockopt", badFD, unix.SOL_SOCKET, unix.SO_COOKIE), unix.ENOPROTOOPT, unix.EBADF},
		{"SO_ERROR", of("getsockopt", badFD, unix.SOL_SOCKET, unix.SO_ERROR), unix.EBADF, unix.EBADF},
		{"urgent data", of("sendto", badFD, 0, 0, unix.MSG_OOB), unix.EOPNOTSUPP, unix.EBADF},

		{"fadvise DONTNEED", of("fadvise64", badFD, 0, 0, unix.FADV_DONTNEED), noErr, unix.EBADF},
		{"readahead", of("readahead", badFD, 0, 1), noErr, unix.EBADF},
		{"preadv2 NOWAIT", of("preadv2", badFD, 0, 0, 0, 0, unix.RWF_NOWAIT|garbage), unix.EOPNOTSUPP, unix.EBADF},
		{"preadv2 DONTCACHE", of("preadv2", badFD, 0, 0, 0, 0, unix.RWF_DONTCACHE), unix.EOPNOTSUPP, unix.EBADF},
		{"preadv2", of("preadv2", badFD, 0, 0, 0, 0, 0), unix.EBADF, unix.EBADF},
		{"madvise PAGEOUT", of("madvise", 0, 0, unix.MADV_PAGEOUT|garbage), unix.EINVAL, noErr},
		{"madvise COLD", of("madvise", 0, 0, unix.MADV_COLD), unix.EINVAL, noErr},
		{"madvise MERGEABLE", of("madvise", 0, 0, unix.MADV_MERGEABLE), unix.EINVAL, noErr},
		{"madvise FREE", of("madvise", 0, 0, unix.MADV_FREE), noErr, noErr},

		{"a timer of processor time", of("timer_create", unix.CLOCK_THREAD_CPUTIME_ID, 0, math.MaxUint), unix.ENOTSUP, unix.EFAULT},
		{"a timer of another process", of("timer_create", 0xffff_fff6|garbage, 0, math.MaxUint), unix.ENOTSUP, unix.EFAULT},
		{"a timer", of("timer_create", unix.CLOCK_MONOTONIC, 0, math.MaxUint), unix.EFAULT, unix.EFAULT},
		{"sleep by processor time", of("clock_nanosleep", unix.CLOCK_PROCESS_CPUTIME_ID, 0, math.MaxUint), unix.ENOTSUP, unix.EFAULT},
		{"a pipe", of("pipe2", math.MaxUint, unix.O_CLOEXEC), unix.EFAULT, unix.EFAULT},
	}
	var calls []call
	for _, test := range tests {
		calls = append(calls, test.call)
	}
	on, off := under(t, filter(t), calls...), under(t, nil, calls...)
	for i, test := range tests {
		if on[i] != test.on || off[i] != test.off {
			t.Errorf("%s: with the filter %v, want %v; without %v, want %v", test.name, on[i], test.on, off[i], test.off)
		}
	}
}

func TestSockets(t *testing.T) {
	const (
		ok           = syscall.Errno(0)
		noFamily     = unix.EAFNOSUPPORT
		noProtocol   = unix.EPROTONOSUPPORT
		raw, flags   = unix.SOCK_RAW, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
		stream, dgrm = unix.SOCK_STREAM, unix.SOCK_DGRAM
	)
	type socket struct {
		family, kind, protocol uintptr
		want                   syscall.Errno
	}
	tests := []socket{
		{unix.AF_UNIX, stream, 0, ok},
		{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, ok},
		{unix.AF_INET, stream | flags, 0, ok},
		{unix.AF_INET, stream, unix.IPPROTO_TCP, ok},
		{unix.AF_INET6, dgrm | flags, unix.IPPROTO_UDP, ok},
		{unix.AF_INET, raw, unix.IPPROTO_ICMP, unix.EPERM},
		{unix.AF_INET, raw | flags, unix.IPPROTO_RAW, unix.EPERM},
		{unix.AF_INET | garbage, raw | garbage, unix.IPPROTO_TCP, unix.EPERM},
		{unix.AF_INET6, raw, unix.IPPROTO_ICMPV6, unix.EPERM},
		{unix.AF_INET, unix.SOCK_PACKET, 0, unix.EPERM},
		{unix.AF_INET, unix.SOCK_DCCP, 0, unix.EPERM},
		{unix.AF_INET, unix.SOCK_SEQPACKET, 132, unix.EPERM}, // SCTP
		{unix.AF_INET, stream, 132, noProtocol},
		{unix.AF_INET6, stream | flags, unix.IPPROTO_MPTCP, noProtocol},
		{unix.AF_INET, dgrm, unix.IPPROTO_ICMP, noProtocol},
		{unix.AF_INET6, dgrm, 115, noProtocol}, // L2TP
		{unix.AF_INET6, dgrm, unix.IPPROTO_UDPLITE | garbage, noProtocol},
		{unix.AF_NETLINK, raw | flags, unix.NETLINK_ROUTE, unix.ENOBUFS}, // see LimitedNetlink
		{unix.AF_NETLINK | garbage, dgrm, unix.NETLINK_ROUTE, unix.ENOBUFS},
		{unix.AF_NETLINK, stream, unix.NETLINK_ROUTE, unix.ESOCKTNOSUPPORT},
		{unix.AF_NETLINK, raw, unix.NETLINK_NETFILTER, noProtocol},
		{unix.AF_NETLINK, raw, unix.NETLINK_XFRM, noProtocol},
		{unix.AF_NETLINK, dgrm, unix.NETLINK_KOBJECT_UEVENT, noProtocol},
		{unix.AF_PACKET, raw, 0, noFamily},
		{unix.AF_PACKET | garbage, dgrm, 0, noFamily},
		{unix.AF_ALG, unix.SOCK_SEQPACKET, 0, noFamily},
		{unix.AF_VSOCK, stream, 0, noFamily},
		{math.MaxUint, stream, 0, noFamily},
	}
	for family := uintptr(0); family < 64; family++ {
		switch family {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
		default:
			tests = append(tests, socket{family, stream, 0, noFamily})
		}
	}
	var calls []call
	for _, s := range tests {
		calls = append(calls, call{nr(t, "socket"), [6]uintptr{s.family, s.kind, s.protocol}})
	}
	on, off := under(t, filter(t), calls...), under(t, nil, calls...)
	for i, s := range tests {
		name := fmt.Sprintf("socket(%#x, %#x, %d)", s.family, s.kind, s.protocol)
		if on[i] != s.want {
			t.Errorf("%s: %v, want %v", name, on[i], s.want)
		}
		if s.want == unix.EPERM && off[i] == unix.EPERM {
			t.Errorf("%s: %v without the filter too: this proves nothing", name, off[i])
		}
	}
	for i, want := range under(t, nil, call{nr(t, "socket"), [6]uintptr{unix.AF_PACKET, raw}}, call{nr(t, "socket"), [6]uintptr{unix.AF_INET, raw, unix.IPPROTO_ICMP}}) {
		if want != ok {
			t.Errorf("%d: %v without the filter, as root", i, want)
		}
	}
}

// TestShellRuns runs a shell script under the filter. End-to-end tests run Node. Their calls
// were found with strace, see Allowed.
func TestShellRuns(t *testing.T) {
	const script = `cd /proc/self && d=$(mktemp -d) && mkfifo $d/p && (echo a b >$d/p &) &&
		read x y <$d/p && ln -s p $d/l && mv $d/l $d/m && cp -a $d $d.2 && rm -r $d $d.2 && echo $y | cat`
	out, state := helper(t, order{Filter: filter(t), Program: script})
	if string(out) != "b\n" || !state.Success() {
		t.Errorf("printed %q, %v", out, state)
	}
}

func BenchmarkCall(b *testing.B) {
	calls := []struct {
		name string
		call call
	}{
		{"plain", call{Nr: unix.SYS_GETPPID}},
		{"ioctl", call{Nr: unix.SYS_IOCTL, Args: [6]uintptr{math.MaxUint, 0x5421}}}, // FIONBIO
		{"prctl", call{Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_GET_DUMPABLE}}},
		{"socket", call{Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_UNIX, 99}}}, // fails, so there is nothing to close
		{"denied", call{Nr: unix.SYS_BPF}},
	}
	for _, c := range calls {
		for name, f := range map[string][]byte{"off": nil, "on": filter(b)} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				const rounds = 500_000
				var took float64
				for b.Loop() {
					r := runHelper(b, order{Filter: f, Calls: []call{c.call}, Rounds: rounds})
					took += float64(r.Took.Nanoseconds())
				}
				b.ReportMetric(took/rounds/float64(b.N), "ns/call")
				b.ReportMetric(0, "ns/op") // mostly the start of a process
			})
		}
	}
}

// BenchmarkLoad measures the load of the filter, a cost of each run.
func BenchmarkLoad(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		took = append(took, runHelper(b, order{Filter: filter(b)}).Loaded)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
	b.ReportMetric(0, "ns/op") // mostly the start of a process
}
