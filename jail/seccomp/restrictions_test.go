package seccomp

import (
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var restrictions = map[string][]Row{
	"NoSpawn": NoSpawn, "NoMemfd": NoMemfd, "NoInternet": NoInternet, "NoDatagrams": NoDatagrams, "NoStreams": NoStreams, "NoForeignLimits": NoForeignLimits,
	"OnlyTCP": OnlyTCP, "NoMetadata": NoMetadata, "NoRename": NoRename, "NoWatch": NoWatch, "NoNamedSockets": NoNamedSockets,
}

func TestLimitedNetlink(t *testing.T) {
	f, err := Compile(LimitedNetlink, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		family, kind, protocol uint64
		asks                   bool
	}{
		{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE, true},
		{unix.AF_NETLINK | garbage, unix.SOCK_DGRAM | garbage, unix.NETLINK_ROUTE | garbage, true},
		{unix.AF_NETLINK, unix.SOCK_STREAM, unix.NETLINK_ROUTE, false},
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, false},
		{unix.AF_INET, unix.SOCK_RAW, unix.NETLINK_ROUTE, false},
	} {
		r, asks := f.Refusal(unix.SYS_SOCKET, [6]uint64{test.family, test.kind, test.protocol})
		if asks != test.asks || asks && r.Label != Netlink {
			t.Errorf("%+v: %+v, %t", test, r, asks)
		}
	}
}

func TestRestrictionRows(t *testing.T) {
	known := map[string]bool{}
	for call := range calls(slices.Concat(Allowed, Denied)) {
		known[call] = true
	}
	for name, rows := range restrictions {
		seen := map[string]bool{}
		for call, r := range calls(rows) {
			if r.Reason == "" || len(r.Refuse) == 0 {
				t.Errorf("%s: %s lacks a reason or a refusal", name, call)
			}
			if !known[call] || seen[call] {
				t.Errorf("%s: %s is in no table or a duplicate", name, call)
			}
			seen[call] = true
			for _, refusal := range r.Refuse {
				if refusal.Label == "" {
					t.Errorf("%s: %s has no label", name, call)
				}
			}
		}
	}
}

// TestRestrictions makes calls with invalid arguments, with a restriction and with the tables
// alone. TestRestrictedCalls tests calls that are always refused.
func TestRestrictions(t *testing.T) {
	const (
		bad, ok         = math.MaxUint, syscall.Errno(0)
		stream, dgram   = unix.SOCK_STREAM, unix.SOCK_DGRAM
		badClone        = unix.CLONE_SIGHAND // without CLONE_VM: EINVAL
		eacces          = unix.EACCES
		eperm, efault   = unix.EPERM, unix.EFAULT
		fellBack, notUp = unix.EPROTONOSUPPORT, unix.EOPNOTSUPP
	)
	// Kernels before 6.3 reject MFD_EXEC and MFD_NOEXEC_SEAL.
	_, _, memfd := unix.Syscall(unix.SYS_MEMFD_CREATE, bad, unix.MFD_NOEXEC_SEAL, 0)
	type test struct {
		name    string
		args    [6]uintptr
		on, off syscall.Errno
	}
	tests := map[string][]test{
		"NoSpawn": {
			{"clone", [6]uintptr{badClone}, eperm, unix.EINVAL},
			{"clone", [6]uintptr{badClone | garbage}, eperm, unix.EINVAL},
			{"clone", [6]uintptr{badClone | unix.CLONE_THREAD}, unix.EINVAL, unix.EINVAL},
		},
		"NoMemfd": {
			{"memfd_create", [6]uintptr{bad, 0}, eperm, efault},
			{"memfd_create", [6]uintptr{bad, unix.MFD_EXEC | unix.MFD_CLOEXEC}, eperm, memfd},
			{"memfd_create", [6]uintptr{bad, unix.MFD_NOEXEC_SEAL}, memfd, memfd},
		},
		"NoInternet": {
			{"socket", [6]uintptr{unix.AF_INET, stream}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET6 | garbage, dgram}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET, unix.SOCK_RAW, 1}, eacces, eperm},
			{"socket", [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW}, unix.ENOBUFS, unix.ENOBUFS},
			{"socket", [6]uintptr{unix.AF_UNIX, stream}, ok, ok},
			{"socket", [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
		},
		"NoNamedSockets": {
			{"socket", [6]uintptr{unix.AF_UNIX, stream}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_UNIX | garbage, dgram | unix.SOCK_CLOEXEC}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET, stream}, ok, ok},
			{"socketpair", [6]uintptr{unix.AF_UNIX, dgram, 0, bad}, eacces, efault},
			{"socketpair", [6]uintptr{unix.AF_UNIX, dgram | unix.SOCK_NONBLOCK | garbage, 0, bad}, eacces, efault},
			{"socketpair", [6]uintptr{unix.AF_UNIX, unix.SOCK_RAW, 0, bad}, eacces, efault}, // becomes a datagram socket
			{"socketpair", [6]uintptr{unix.AF_UNIX, stream | unix.SOCK_CLOEXEC, 0, bad}, efault, efault},
			{"socketpair", [6]uintptr{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, bad}, efault, efault},
		},
		"NoDatagrams": {
			{"socket", [6]uintptr{unix.AF_INET, dgram | unix.SOCK_CLOEXEC}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET6, dgram | garbage, unix.IPPROTO_UDP}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET, stream}, ok, ok},
			{"socket", [6]uintptr{unix.AF_UNIX, dgram}, ok, ok},
		},
		"NoForeignLimits": {
			{"prlimit64", [6]uintptr{1, bad, bad, 0}, eperm, efault},
			{"prlimit64", [6]uintptr{1, bad, 0, 0}, unix.EINVAL, unix.EINVAL},
			{"prlimit64", [6]uintptr{0, bad, bad, 0}, efault, efault},
		},
		"NoStreams": {
			{"socket", [6]uintptr{unix.AF_INET, stream | unix.SOCK_CLOEXEC}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET6, stream | garbage, unix.IPPROTO_TCP}, eacces, ok},
			{"socket", [6]uintptr{unix.AF_INET, stream, unix.IPPROTO_MPTCP}, eacces, fellBack},
			{"socket", [6]uintptr{unix.AF_INET, dgram}, ok, ok},
			{"socket", [6]uintptr{unix.AF_UNIX, stream}, ok, ok},
		},
		"OnlyTCP": {
			{"socket", [6]uintptr{unix.AF_INET, stream, unix.IPPROTO_TCP}, ok, ok},
			{"socket", [6]uintptr{unix.AF_INET6, stream, 0}, ok, ok},
			{"socket", [6]uintptr{unix.AF_INET, dgram, unix.IPPROTO_UDP}, ok, ok},
			{"socket", [6]uintptr{unix.AF_UNIX, stream, unix.IPPROTO_MPTCP}, fellBack, fellBack}, // the kernel's errno
			{"sendto", [6]uintptr{bad, 0, 0, unix.MSG_FASTOPEN}, notUp, unix.EBADF},
			{"sendto", [6]uintptr{bad, 0, 0, unix.MSG_DONTWAIT}, unix.EBADF, unix.EBADF},
			{"sendmsg", [6]uintptr{bad, bad, unix.MSG_FASTOPEN | garbage}, notUp, unix.EBADF},
			{"sendmmsg", [6]uintptr{bad, bad, 1, unix.MSG_FASTOPEN}, notUp, unix.EBADF},
		},
		"NoMetadata": {
			{"ioctl", [6]uintptr{bad, unix.FS_IOC_SETFLAGS}, eperm, unix.EBADF},
			{"ioctl", [6]uintptr{bad, fsSetXattr}, eperm, unix.EBADF},
			{"ioctl", [6]uintptr{bad, unix.FS_IOC_GETFLAGS}, unix.EBADF, unix.EBADF},
		},
	}
	for set, list := range tests {
		var calls []call
		var made []test
		for _, test := range list {
			if nr, exists := native(t).number(test.name); exists {
				calls, made = append(calls, call{uintptr(nr), test.args}), append(made, test)
			}
		}
		on, off := under(t, restricted(t, restrictions[set]), calls...), under(t, filter(t), calls...)
		for i, test := range made {
			if on[i] != test.on || off[i] != test.off {
				t.Errorf("%s: %s(%#x): %v, want %v; without it %v, want %v",
					set, test.name, test.args, on[i], test.on, off[i], test.off)
			}
		}
	}
}

// permittedArgs are invalidArgs with a mode that the tables permit.
func permittedArgs(name string) [6]uintptr {
	args := invalidArgs
	if strings.Contains(name, "chmod") {
		args[1], args[2] = 0o777, 0o777
	}
	return args
}

// TestRestrictedCalls makes each call that a restriction always refuses, with invalid
// arguments. Without the restriction the call gets another errno. fork and vfork are not
// made without it, as they would succeed.
func TestRestrictedCalls(t *testing.T) {
	for set, rows := range restrictions {
		var on, off []call
		var made []string
		var want []syscall.Errno
		for name, r := range calls(rows) {
			nr, exists := native(t).number(name)
			if !exists || len(r.Refuse[0].Match) > 0 {
				continue
			}
			made, want, on = append(made, name), append(want, r.Refuse[0].Errno), append(on, call{uintptr(nr), permittedArgs(name)})
			if name == "fork" || name == "vfork" {
				nr = uint32(unix.SYS_GETPPID)
			}
			off = append(off, call{uintptr(nr), permittedArgs(name)})
		}
		with, without := under(t, restricted(t, rows), on...), under(t, filter(t), off...)
		for i, name := range made {
			if with[i] != want[i] || without[i] == want[i] {
				t.Errorf("%s: %s: %v, without it %v", set, name, with[i], without[i])
			}
		}
	}
}

// TestOnlyTCPRefusesMPTCP needs a kernel with MPTCP.
func TestOnlyTCPRefusesMPTCP(t *testing.T) {
	mptcp := call{unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}}
	if got := under(t, restricted(t, OnlyTCP), mptcp)[0]; got != unix.EPROTONOSUPPORT {
		t.Errorf("MPTCP: %v", got)
	}
	if got := under(t, filter(t), mptcp)[0]; got != unix.EPROTONOSUPPORT {
		t.Errorf("MPTCP, tables only: %v", got)
	}
	if got := under(t, nil, mptcp)[0]; got != 0 {
		t.Skipf("this kernel lacks MPTCP: %v", got)
	}
}

func restricted(t testing.TB, rows []Row) []byte {
	t.Helper()
	f, err := Compile(rows, false)
	if err != nil {
		t.Fatal(err)
	}
	return f.Program
}
