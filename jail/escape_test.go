package jail

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/seccomp"
)

// These tests attack a jail with a protection switched off, and again with it on. The
// first shows that the attack works; the escape tests of package test only have the second.

// withAttack compiles a program of test/testdata/escape and adds it as /attack.
func withAttack(t *testing.T, name string) func(*Spec) {
	t.Helper()
	to := filepath.Join(t.TempDir(), name)
	cc := exec.Command("cc", "-static", "-Os", "-s", "-o", to, filepath.Join("../test/testdata/escape", name+".c"))
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return func(s *Spec) { s.Layer = append(s.Layer, File{Path: "/attack", Mode: 0o755, Data: program}) }
}

// noFilter installs a filter that allows every call.
func noFilter(s *Spec) {
	b := binary.NativeEndian.AppendUint16(nil, unix.BPF_RET|unix.BPF_K)
	b = binary.NativeEndian.AppendUint32(append(b, 0, 0), unix.SECCOMP_RET_ALLOW)
	s.Filter = &seccomp.Filter{Program: b}
}

// patchEntryProgram replaces a piece of the entry program's source for one test.
func patchEntryProgram(t *testing.T, piece, other string) {
	t.Helper()
	image, err := tinyImage()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(enter.Source, piece) {
		t.Fatalf("the entry program has no %q", piece)
	}
	if err := compileEnter(image, strings.Replace(enter.Source, piece, other, 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := compileEnter(image, enter.Source); err != nil {
			t.Error(err)
		}
	})
}

// Before the filter is in force, a process that enters the jail may already have the
// guest's user id.
func TestEscapeWindowBeforeTheFilter(t *testing.T) {
	attack := func(t *testing.T, change ...func(*Spec)) string {
		j := newJail(t, append(change, withAttack(t, "window"))...)
		command := "/attack 3" // seconds
		if testing.Short() {
			command = "/attack 1"
		}
		_, read := start(t, j, command)
		ended := make(chan string)
		go func() { ended <- read() }()
		for {
			select {
			case found := <-ended:
				return found
			default:
				output(t, j, "true")
			}
		}
	}
	t.Run("guard on", func(t *testing.T) {
		for range 60 { // on a busy machine the attack may find no process for seconds
			found := attack(t)
			t.Log(found)
			if strings.Count(found, "\n") != 2 { // "up", and the attempts
				t.Fatalf("got hold of a process: %s", found)
			}
			if !strings.Contains(found, "attempts 0\n") {
				return
			}
		}
		t.Error("no process was attacked: the test proves nothing")
	})
	t.Run("guard off", func(t *testing.T) {
		const piece = "case STEP_SIGNALS:"
		patchEntryProgram(t, piece, piece+" prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);")
		for range 60 { // on a busy machine the attack may miss the window for seconds
			found := attack(t)
			t.Log(found)
			if strings.Contains(found, "mem read") {
				return
			}
		}
		t.Error("a dumpable entry program is not attacked: the test proves nothing")
	})
}

// A descriptor of a host folder leads out of the root (CVE-2024-21626, CVE-2016-9962).
func TestEscapeLeakedDescriptor(t *testing.T) {
	j := newJail(t, withAttack(t, "climb"))
	if got := output(t, j, "/attack"); got != "" {
		t.Errorf("guard on: %s", got)
	}
	leak, err := os.Open("/usr")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	_, read := start(t, j, "/attack", func(c *Command) { c.Files = append(c.Files, leak) })
	if got := read(); !strings.Contains(got, "fd 3 outside") {
		t.Errorf("guard off: %q: the test proves nothing", got)
	}
}

// The host has many descriptors open while processes start; none is inherited.
func TestEscapeHostDescriptorsStayOutside(t *testing.T) {
	j := newJail(t, withAttack(t, "climb"))
	for range 50 { // without O_CLOEXEC, as a careless library would
		fd, err := unix.Open("/usr", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	const high = 700
	if err := unix.Dup3(1, high, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(high)
	if got := output(t, j, "/attack"); got != "" {
		t.Errorf("got in: %s", got)
	}
	// The size of the table would show how many descriptors the host has open.
	if got := output(t, newJail(t), "busybox grep FDSize /proc/1/status /proc/$$/status | busybox cut -f2"); got != "64\n64" {
		t.Errorf("tables of descriptors: %q", got)
	}
}

// CVE-2017-5226: characters that TIOCSTI types into the terminal run as commands of its owner.
func TestEscapeTIOCSTI(t *testing.T) {
	const closed = "/dev/tty 6\n" // ENXIO: no controlling terminal
	for _, tc := range []struct {
		name   string
		change []func(*Spec)
		errno  unix.Errno
	}{{"guard on", nil, unix.EPERM}, {"guard off", []func(*Spec){noFilter}, 0}} {
		got := output(t, newJail(t, append(tc.change, withAttack(t, "terminal"))...), "/attack")
		want := closed
		for _, request := range []string{"0x5412", "0x100005412", "0xffffffff00005412"} {
			want += request + " " + strconv.Itoa(int(tc.errno)) + "\n"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", tc.name, got, want)
		}
	}
}

// These calls succeed without the filter.
func TestEscapeKernelSurface(t *testing.T) {
	calls := []struct {
		name string
		call string // as call.c takes it
	}{
		{"unshare(CLONE_NEWUSER)", formatCall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
		{"keyctl(KEYCTL_GET_KEYRING_ID)", formatCall(unix.SYS_KEYCTL, 0, 0xffff_ffff_ffff_fffd, 1)},
		{"ptrace(PTRACE_TRACEME)", formatCall(unix.SYS_PTRACE, 0)},
		{"personality(ADDR_NO_RANDOMIZE)", formatCall(unix.SYS_PERSONALITY, 0x40000)},
		{"socket(AF_VSOCK)", formatCall(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{"socket(AF_NETLINK, NETLINK_AUDIT)", formatCall(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)},
		{"shmget", formatCall(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, 0o600)},
		{"msgget", formatCall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600)},
	}
	var list []string
	for _, c := range calls {
		list = append(list, c.call)
	}
	script := "/attack " + strings.Join(list, " ")
	on := strings.Fields(output(t, newJail(t, withAttack(t, "call")), script))
	off := strings.Fields(output(t, newJail(t, withAttack(t, "call"), noFilter), script))
	if len(on) != len(calls) || len(off) != len(calls) {
		t.Fatalf("answers %v and %v", on, off)
	}
	for i, c := range calls {
		if on[i] == "0" || off[i] != "0" {
			t.Errorf("%s: errno %s with the filter and %s without, want only the former to fail", c.name, on[i], off[i])
		}
	}
}

// formatCall formats a call for call.c.
func formatCall(nr int, args ...uint64) string {
	words := []string{strconv.Itoa(nr)}
	for _, a := range args {
		words = append(words, strconv.FormatUint(a, 10))
	}
	return strings.Join(words, ",")
}
