package escape

import (
	"fmt"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// refusedCalls lists system calls that guests cannot use, with the exact errno. Programs handle
// ENOSYS with a fallback and report EPERM, so they must not be killed. Package jail's
// TestEscapeKernelSurface runs without the filter.
var refusedCalls = []struct {
	name string
	nr   int
	args string // as testdata/escape/call.c takes them
	want syscall.Errno
}{
	{"bpf", unix.SYS_BPF, "0,z,128", unix.EPERM},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, "z,0,-1,-1,0", unix.EPERM},
	{"userfaultfd", unix.SYS_USERFAULTFD, "1", unix.EPERM}, // UFFD_USER_MODE_ONLY
	{"add_key", unix.SYS_ADD_KEY, "t,t,z,1,-3", unix.EPERM},
	{"request_key", unix.SYS_REQUEST_KEY, "t,t,z,-3", unix.EPERM},
	{"keyctl: join a session", unix.SYS_KEYCTL, "1,0", unix.EPERM},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, "8,z", unix.EPERM},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, "0,1,1,0", unix.EPERM},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, "0,0,z,0", unix.EPERM},

	{"fsopen", unix.SYS_FSOPEN, "t,0", unix.EPERM},
	{"fsconfig", unix.SYS_FSCONFIG, "0,6,0,0,0", unix.EPERM},
	{"fsmount", unix.SYS_FSMOUNT, "0,0,0", unix.EPERM},
	{"fspick", unix.SYS_FSPICK, "-100,t,0", unix.EPERM},
	{"move_mount", unix.SYS_MOVE_MOUNT, "-100,t,-100,t,0", unix.EPERM},
	{"open_tree", unix.SYS_OPEN_TREE, "-100,t,0", unix.EPERM},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, "-100,t,0,z,32", unix.EPERM},
	{"mount", unix.SYS_MOUNT, "t,t,t,4096,0", unix.EPERM},
	{"umount2", unix.SYS_UMOUNT2, "t,2", unix.EPERM},
	{"pivot_root", unix.SYS_PIVOT_ROOT, "t,t", unix.EPERM},
	{"chroot", unix.SYS_CHROOT, "t", unix.EPERM},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, "-100,t,z,z,0", unix.EPERM},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, "-100,z,0", unix.EPERM},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, "0,0", unix.EPERM},
	{"quotactl", unix.SYS_QUOTACTL, "0,0,0,z", unix.EPERM},

	{"unshare: user", unix.SYS_UNSHARE, "0x10000000", unix.EPERM},
	{"unshare: mount", unix.SYS_UNSHARE, "0x20000", unix.EPERM},
	{"unshare: files", unix.SYS_UNSHARE, "0x400", unix.EPERM},
	{"setns", unix.SYS_SETNS, "0,0", unix.EPERM},
	{"clone: parent", unix.SYS_CLONE, "0x00008011,0", unix.EPERM},
	{"clone: user", unix.SYS_CLONE, "0x10000011,0", unix.EPERM},
	{"clone: mount", unix.SYS_CLONE, "0x00020011,0", unix.EPERM},
	{"clone: a process that shares open files", unix.SYS_CLONE, "0x00000411,0", unix.EPERM},
	{"clone: net", unix.SYS_CLONE, "0x40000011,0", unix.EPERM},
	{"clone: user, and high bits", unix.SYS_CLONE, "0xffffffff10000011,0", unix.EPERM},
	{"clone3", unix.SYS_CLONE3, "z,88", unix.ENOSYS},

	{"socket: AF_PACKET", unix.SYS_SOCKET, "17,3,0", unix.EAFNOSUPPORT},
	{"socket: AF_ALG", unix.SYS_SOCKET, "38,5,0", unix.EAFNOSUPPORT},
	{"socket: AF_VSOCK", unix.SYS_SOCKET, "40,1,0", unix.EAFNOSUPPORT},
	{"socket: AF_VSOCK, and high bits", unix.SYS_SOCKET, "0x100000028,1,0", unix.EAFNOSUPPORT},
	{"socket: AF_XDP", unix.SYS_SOCKET, "44,3,0", unix.EAFNOSUPPORT},
	{"socket: AF_BLUETOOTH", unix.SYS_SOCKET, "31,3,0", unix.EAFNOSUPPORT},
	{"socket: netfilter", unix.SYS_SOCKET, "16,3,12", unix.EPROTONOSUPPORT},
	{"socket: generic netlink", unix.SYS_SOCKET, "16,3,16", unix.EPROTONOSUPPORT},
	{"socket: raw", unix.SYS_SOCKET, "2,3,1", unix.EPERM},
	{"socket: raw IPv6", unix.SYS_SOCKET, "10,3,58", unix.EPERM},
	{"socket: ping", unix.SYS_SOCKET, "2,2,1", unix.EPROTONOSUPPORT},
	{"socket: SCTP", unix.SYS_SOCKET, "2,1,132", unix.EPROTONOSUPPORT},
	{"setsockopt: iptables", unix.SYS_SETSOCKOPT, "0,0,64,z,84", unix.EPERM},
	{"setsockopt: a filter", unix.SYS_SETSOCKOPT, "0,1,26,z,16", unix.EPERM},

	{"ptrace: trace me", unix.SYS_PTRACE, "0,0,0,0", unix.EPERM},
	{"ptrace: attach to pid 1", unix.SYS_PTRACE, "16,1,0,0", unix.EPERM},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, "1,z,1,z,1,0", unix.EPERM},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, "1,z,1,z,1,0", unix.EPERM},
	{"process_madvise", unix.SYS_PROCESS_MADVISE, "0,z,1,21,0", unix.EPERM},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, "0,0,0", unix.EPERM},
	{"kcmp", unix.SYS_KCMP, "1,1,0,0,0", unix.EPERM},
	{"personality: no randomisation", unix.SYS_PERSONALITY, "0x40000", unix.EPERM},
	{"seccomp: a filter", unix.SYS_SECCOMP, "1,0,z", unix.ENOSYS},
	{"seccomp: a listener", unix.SYS_SECCOMP, "1,8,z", unix.ENOSYS},
	{"prctl: a filter", unix.SYS_PRCTL, "22,2,z", unix.EINVAL},
	{"fcntl: a lock of an open file", unix.SYS_FCNTL, "0,37,z", unix.EINVAL},
	{"sendfile", unix.SYS_SENDFILE, "1,0,0,1", unix.EINVAL},
	{"splice", unix.SYS_SPLICE, "0,0,1,0,1,0", unix.EINVAL},
	{"setxattr", unix.SYS_SETXATTR, "t,t,z,1,0", unix.EOPNOTSUPP},
	{"socket: MPTCP", unix.SYS_SOCKET, "2,1,262", unix.EPROTONOSUPPORT},
	{"fcntl: a lease", unix.SYS_FCNTL, "0,1024,0", unix.EINVAL},

	{"kexec_load", unix.SYS_KEXEC_LOAD, "0,0,z,0", unix.EPERM},
	{"init_module", unix.SYS_INIT_MODULE, "z,16,z", unix.EPERM},
	{"finit_module", unix.SYS_FINIT_MODULE, "0,z,0", unix.EPERM},
	{"delete_module", unix.SYS_DELETE_MODULE, "t,0", unix.EPERM},
	{"swapon", unix.SYS_SWAPON, "t,0", unix.EPERM},
	{"swapoff", unix.SYS_SWAPOFF, "t", unix.EPERM},
	{"reboot", unix.SYS_REBOOT, "0,0,0,0", unix.EPERM}, // no magic numbers: EINVAL even for root
	{"syslog", unix.SYS_SYSLOG, "3,z,4096", unix.EPERM},
	{"acct", unix.SYS_ACCT, "t", unix.EPERM},
	{"sethostname", unix.SYS_SETHOSTNAME, "t,4", unix.EPERM},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, "z,z", unix.EPERM},
	{"mknod: a block device", unix.SYS_MKNODAT, "-100,t,0x61b0,0x800", unix.EPERM},
	{"mknod: an overlay's whiteout", unix.SYS_MKNODAT, "-100,t,0x21b0,0", unix.EPERM},
	{"mknod: set-user-ID", unix.SYS_MKNODAT, "-100,t,0x89ed,0", unix.EPERM},
	{"chmod: set-group-ID", unix.SYS_FCHMODAT, "-100,t,0x5ed", unix.EPERM},
	{"chmod: set-user-ID, and high bits", unix.SYS_FCHMOD, "0,0x1000009ed", unix.EPERM},
	{"fchmodat2: set-user-ID", unix.SYS_FCHMODAT2, "-100,t,0x9ed,0", unix.EPERM},
	{"openat: a set-user-ID file", unix.SYS_OPENAT, "-100,t,0x41,0x9ed", unix.EPERM},
	{"openat: an unnamed set-user-ID file", unix.SYS_OPENAT, "-100,t,0x410002,0x9ed", unix.EPERM},
	{"openat2", unix.SYS_OPENAT2, "-100,t,z,24", unix.ENOSYS},
	{"renameat2: a whiteout", unix.SYS_RENAMEAT2, "-100,t,-100,t,4", unix.EINVAL},

	{"shmget", unix.SYS_SHMGET, "0,4096,0x380", unix.EPERM},
	{"semget", unix.SYS_SEMGET, "0,1,0x380", unix.EPERM},
	{"msgget", unix.SYS_MSGGET, "0,0x380", unix.EPERM},
	{"mq_open", unix.SYS_MQ_OPEN, "t,0x42,0x180,0", unix.EPERM},
	{"a call that does not exist", 9999, "0", unix.ENOSYS},

	// An allowed call succeeds.
	{"getpid", unix.SYS_GETPID, "0", 0},
	{"socket: TCP", unix.SYS_SOCKET, "2,1,6", 0},
	{"socket: route", unix.SYS_SOCKET, "16,3,0", 0},
}

func TestEscapeKernelSurface(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	program := harness.Install(t, rt, "call")
	var args []string
	for _, c := range refusedCalls {
		args = append(args, strconv.Itoa(c.nr)+","+c.args)
	}
	answers := strings.Fields(harness.Output(t, rt, runtime.RunOptions{}, program, args...))
	if len(answers) != len(refusedCalls) {
		t.Fatalf("%d answers to %d calls", len(answers), len(refusedCalls))
	}
	for i, c := range refusedCalls {
		if c.name == "socket: route" && harness.InGVisor() {
			c.want = unix.ENOBUFS // no process gets one
		}
		if n, err := strconv.Atoi(answers[i]); err != nil || syscall.Errno(n) != c.want {
			t.Errorf("%s: %q (%v), want %v", c.name, syscall.Errno(n), err, c.want)
		}
	}
}

// System calls with the numbers of another architecture would bypass the filter's tables.
func TestEscapeForeignCalls(t *testing.T) {
	if goruntime.GOARCH != "amd64" {
		t.Skip("only amd64 has such doors")
	}
	rt := harness.Create(t, runtime.Options{})
	program := harness.Install(t, rt, "call")
	for _, door := range []string{"int80", "x32"} {
		res, err := rt.Command(t.Context(), program, []string{door}, runtime.RunOptions{})
		killed := res != nil && (res.Signal == "SIGSYS" || door == "int80" && res.Signal == "SIGSEGV") // some hypervisors do not pass the interrupt on
		if err != nil || !killed || res.Cause != runtime.CauseSignal || len(res.Stdout) > 0 {
			t.Errorf("%s: %+v, %v, want death by SIGSYS", door, res, err)
		}
	}
}

// CVE-2022-0492: in a new user namespace a guest may mount a cgroup tree, whose
// release_agent is a program that the host starts.
func TestEscapeReleaseAgent(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	program := harness.Install(t, rt, "call")
	for _, c := range []struct{ name, call string }{
		{"unshare: user and cgroup", fmt.Sprintf("%d,0x12000000", unix.SYS_UNSHARE)},
		{"clone: user and mount", fmt.Sprintf("%d,0x10020011,0", unix.SYS_CLONE)},
		{"mount", fmt.Sprintf("%d,t,t,t,0,0", unix.SYS_MOUNT)},
	} {
		if got := harness.Output(t, rt, runtime.RunOptions{}, program, c.call); got != "1" { // EPERM
			t.Errorf("%s: errno %s", c.name, got)
		}
	}
	// /sys/fs/cgroup shows the jail's own files, which show its limits.
	res := harness.Run(t, rt, `import fs from 'node:fs'; const changed = [];
		for (const dir of ['/sys', '/sys/fs/cgroup', '/sys/fs/cgroup/memory', '/']) try { fs.mkdirSync(dir + '/x'); changed.push(dir) } catch {}
		for (const f of fs.readdirSync('/sys', { recursive: true }).map(name => '/sys/' + name)) {
			if (f.includes('release_agent')) changed.push(f);
			try { fs.closeSync(fs.openSync(f, 'r+')); changed.push(f) } catch {}
			try { fs.chmodSync(f, 0o777); changed.push(f) } catch {}
		}
		const types = fs.readFileSync('/proc/self/mounts', 'utf8').split('\n').map(line => line.split(' ')[2]).join();
		__return([changed, /cgroup|sysfs|debugfs|tracefs|securityfs|bpf/.test(types)])`, runtime.RunOptions{})
	if string(res.Value) != "[[],false]" {
		t.Errorf("found %s %s", res.Value, res.Stderr)
	}
}
