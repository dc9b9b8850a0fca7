package escape

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// entryPoint is a way into the kernel by which public exploits became root or left a container.
type entryPoint struct {
	name   string
	cves   string // of 2022 to 2026, unless none of these is known
	calls  []string
	want   syscall.Errno // of the last call
	docker string        // effect of the default seccomp profile and capabilities of Docker Engine 29
}

const (
	passed     = "allowed"
	stopped    = "refused"
	privileged = "allowed; the kernel requires a capability"
)

// call formats a call for testdata/escape/call.c.
func call(nr int, args string) string { return strconv.Itoa(nr) + "," + args }

// onSocket formats setting an option of a new socket.
func onSocket(socket, option string) []string {
	return []string{call(unix.SYS_SOCKET, socket), call(unix.SYS_SETSOCKOPT, "r,"+option)}
}

func oneCall(nr int, args string) []string { return []string{call(nr, args)} }

// entryPoints is the table of SECURITY.md. A call that could succeed has a descriptor or an address that is
// not valid, if the errnos of filter and kernel differ in that case, too.
var entryPoints = []entryPoint{
	{"`AF_ALG` sockets", "CVE-2026-31431", oneCall(unix.SYS_SOCKET, "38,5,0"), unix.EAFNOSUPPORT, "refused since 29.4.2"},
	{"netlink sockets of IPsec (XFRM)", "CVE-2022-27666, CVE-2026-43284", oneCall(unix.SYS_SOCKET, "16,3,6"), unix.EPROTONOSUPPORT, privileged},
	{"`UDP_ENCAP`", "CVE-2026-43284", onSocket("2,2,0", "17,100,i2,4"), unix.ENOPROTOOPT, passed},
	{"`IP_XFRM_POLICY`", "CVE-2026-43284", onSocket("2,2,0", "0,17,z,4"), unix.ENOPROTOOPT, privileged},
	{"`AF_RXRPC` sockets", "CVE-2026-43500", oneCall(unix.SYS_SOCKET, "33,2,2"), unix.EAFNOSUPPORT, passed},
	{"`TCP_ULP`: TLS, ESP in TCP", "CVE-2023-0461, CVE-2026-46300", onSocket("2,1,0", "6,31,stls,3"), unix.EPERM, passed},
	{"netlink sockets of netfilter (nf_tables)", "CVE-2022-32250, CVE-2023-32233, CVE-2024-1086", oneCall(unix.SYS_SOCKET, "16,3,12"), unix.EPROTONOSUPPORT, privileged},
	{"user namespaces: `unshare`", "CVE-2022-0492, CVE-2022-2588, CVE-2023-4623, CVE-2023-4921", oneCall(unix.SYS_UNSHARE, "0x10000000"), unix.EPERM, stopped},
	{"user namespaces: `clone3`", "as `unshare`", oneCall(unix.SYS_CLONE3, "z,1"), unix.ENOSYS, stopped},
	{"io_uring", "CVE-2022-29582, CVE-2023-2598, CVE-2024-0582", oneCall(unix.SYS_IO_URING_SETUP, "8,z"), unix.EPERM, "refused since 25.0"},
	{"`userfaultfd`", "CVE-2022-2590", oneCall(unix.SYS_USERFAULTFD, "1"), unix.EPERM, stopped},
	{"`fsopen`, `fsconfig`", "CVE-2022-0185", oneCall(unix.SYS_FSCONFIG, "-1,0,z,z,0"), unix.EPERM, stopped},
	{"`mount`, `move_mount`: overlayfs, cgroups", "CVE-2022-0492, CVE-2023-0386, CVE-2023-2640", oneCall(unix.SYS_MOVE_MOUNT, "-1,t,-1,t,0"), unix.EPERM, stopped},
	{"`add_key`, `keyctl`", "CVE-2022-34918 (allocations of a chosen size)", oneCall(unix.SYS_KEYCTL, "0,-3,1"), unix.EPERM, stopped},
	{"packet sockets", "CVE-2025-38617", oneCall(unix.SYS_SOCKET, "17,3,0"), unix.EAFNOSUPPORT, passed},
	{"vsock", "CVE-2024-50264, CVE-2025-21756", oneCall(unix.SYS_SOCKET, "40,1,0"), unix.EAFNOSUPPORT, stopped},
	{"TIPC", "CVE-2022-0435", oneCall(unix.SYS_SOCKET, "30,5,0"), unix.EAFNOSUPPORT, passed},
	{"CAN", "CVE-2021-3609", oneCall(unix.SYS_SOCKET, "29,3,1"), unix.EAFNOSUPPORT, passed},
	{"Bluetooth", "CVE-2022-42896", oneCall(unix.SYS_SOCKET, "31,5,0"), unix.EAFNOSUPPORT, passed},
	{"L2TP and PPP sockets", "CVE-2022-4129", oneCall(unix.SYS_SOCKET, "24,2,1"), unix.EAFNOSUPPORT, passed},
	{"`AF_KEY` sockets", "CVE-2022-1353", oneCall(unix.SYS_SOCKET, "15,3,2"), unix.EAFNOSUPPORT, privileged},
	{"AX.25, ROSE", "CVE-2022-1204, CVE-2022-2961", oneCall(unix.SYS_SOCKET, "11,5,0"), unix.EAFNOSUPPORT, passed},
	{"`bpf`", "CVE-2022-23222, CVE-2023-2163", oneCall(unix.SYS_BPF, "0,z,128"), unix.EPERM, stopped},
	{"`perf_event_open`", "CVE-2022-1729, CVE-2023-2235, CVE-2023-5717", oneCall(unix.SYS_PERF_EVENT_OPEN, "0,0,-1,-1,0"), unix.EPERM, stopped},
	{"`ptrace`", "CVE-2022-30594", oneCall(unix.SYS_PTRACE, "16,0,0,0"), unix.EPERM, passed},
	{"`splice`", "CVE-2022-0847, CVE-2026-31431, CVE-2026-43284", oneCall(unix.SYS_SPLICE, "-1,0,-1,0,1,0"), unix.EINVAL, passed},
	{"`vmsplice`", "CVE-2026-43284", oneCall(unix.SYS_VMSPLICE, "-1,z,1,0"), unix.EPERM, passed},
	{"`sendfile`", "as `splice`", oneCall(unix.SYS_SENDFILE, "-1,-1,0,1"), unix.EINVAL, passed},
	{"pipes of notifications", "CVE-2022-0995", oneCall(unix.SYS_PIPE2, "0,0x80"), unix.EINVAL, passed},
	{"urgent data of unix sockets (`MSG_OOB`)", "CVE-2025-38236", oneCall(unix.SYS_SENDTO, "-1,z,1,1,0,0"), unix.EOPNOTSUPP, passed},
	{"timers of processor time", "CVE-2022-2585, CVE-2025-38352", oneCall(unix.SYS_TIMER_CREATE, "3,0,z"), unix.ENOTSUP, passed},
	{"line disciplines (`TIOCSETD`, n_gsm)", "CVE-2023-6546", oneCall(unix.SYS_IOCTL, "-1,0x5423,i21"), unix.EPERM, passed},
	{"System V messages", "CVE-2022-0185, CVE-2022-27666 (allocations of a chosen size)", oneCall(unix.SYS_MSGGET, "0,0x380"), unix.EPERM, passed},
	{"memory policies: `mbind`", "CVE-2023-4611", oneCall(unix.SYS_MBIND, "0,0,0,0,0,0"), unix.EPERM, stopped},
	{"device files, such as `/dev/fuse`", "CVE-2023-0386", oneCall(unix.SYS_OPENAT, "-100,s/dev/fuse,0"), unix.ENOENT, "no such files"},
	{"`mmap`, `mremap`", "CVE-2023-3269", oneCall(unix.SYS_MMAP, "0,4096,3,0x22,-1,0"), 0, passed},
	{"unix sockets: descriptors in messages", "CVE-2025-40214", oneCall(unix.SYS_SOCKETPAIR, "1,1,0,z"), 0, passed},
}

// The entry points of public exploits are refused by the filter: without it, the kernel gives another
// answer to a process that has nothing, or to root, in new namespaces of the host.
func TestPublicCVEs(t *testing.T) {
	var args []string
	for _, e := range entryPoints {
		args = append(args, e.calls...)
	}
	rt := harness.Create(t, runtime.Options{})
	inside := strings.Fields(harness.Output(t, rt, runtime.RunOptions{}, harness.Install(t, rt, "call"), args...))
	if len(inside) != len(args) {
		t.Fatalf("%d results of %d calls", len(inside), len(args))
	}
	program := hostProgram(t, "call")
	unreachable := 0
	for _, e := range entryPoints {
		got := errno(t, inside[len(e.calls)-1])
		inside = inside[len(e.calls):]
		user, root := control(t, program, e.calls, unix.CLONE_NEWUSER), control(t, program, e.calls, 0)
		t.Logf("%s: %v; without the filter %v, and %v as root", e.name, got, user, root)
		if got != e.want {
			t.Errorf("%s: %v, want %v", e.name, got, e.want)
		}
		if e.want != 0 && user == e.want && root == e.want {
			unreachable++ // this kernel does not have it
			if !lacks(e.want) {
				t.Errorf("%s: %v without the filter, too: the test proves nothing", e.name, e.want)
			}
		}
	}
	if unreachable > len(entryPoints)/3 {
		t.Errorf("%d of %d entry points do not exist in this kernel: the test proves little", unreachable, len(entryPoints))
	}
}

// lacks reports whether the errno is that of a kernel without the feature.
func lacks(errno syscall.Errno) bool {
	return errno == unix.EAFNOSUPPORT || errno == unix.EPROTONOSUPPORT || errno == unix.ENOPROTOOPT || errno == unix.ENOENT || errno == unix.ENOSYS
}

func errno(t *testing.T, text string) syscall.Errno {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Errno(n)
}

// hostProgram compiles a program and opens it for control.
func hostProgram(t *testing.T, name string) *os.File {
	t.Helper()
	program, err := harness.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// control makes the calls on the host, in a process in new namespaces, and returns the last one's errno. With
// CLONE_NEWUSER the process is a user who has all capabilities there, as exploits do.
func control(t *testing.T, program *os.File, calls []string, flags uintptr) syscall.Errno {
	t.Helper()
	cmd := exec.Command("/proc/self/fd/3", calls...) // the user may not enter the file's folder
	cmd.ExtraFiles = []*os.File{program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWPID}
	if flags&unix.CLONE_NEWUSER != 0 {
		nobody := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = nobody, nobody
		cmd.SysProcAttr.Credential = &syscall.Credential{NoSetGroups: true}
	}
	out, err := cmd.Output()
	lines := strings.Fields(string(out))
	if err != nil || len(lines) != len(calls) {
		t.Fatalf("%q: %q, %v", calls, out, err)
	}
	return errno(t, lines[len(lines)-1])
}

// SECURITY.md contains the table.
func TestPublicCVEsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| entry point | known bugs | gaol | Docker |\n| --- | --- | --- | --- |\n")
	for _, e := range entryPoints {
		here := "reachable"
		if e.want != 0 {
			here = "refused: " + unix.ErrnoName(e.want)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", e.name, e.cves, here, e.docker)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("SECURITY.md does not have this table:\n%s", table.String())
	}
}
