package enter

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// build compiles the program with address and undefined behaviour sanitizers.
func build(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gaol-enter-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // it runs without rights
		t.Fatal(err)
	}
	path := filepath.Join(dir, "enter")
	cc := exec.Command("cc", "-x", "c", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", path, "-")
	cc.Stdin = strings.NewReader(Source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// runProgram runs the program as an unprivileged user and returns its reports.
func runProgram(t testing.TB, program, message string) (reports string, code int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	host, child := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "child")
	defer host.Close()
	cmd := exec.Command(program, "3", Version)
	cmd.Env = []string{"ASAN_OPTIONS=detect_leaks=0:exitcode=99", "UBSAN_OPTIONS=exitcode=99"}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{child}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child.Close()
	go func() {
		_, _ = io.WriteString(host, message)
		_ = unix.Shutdown(fds[0], unix.SHUT_WR)
	}()
	text, _ := io.ReadAll(host)
	_ = cmd.Wait()
	if code = cmd.ProcessState.ExitCode(); code == 99 || code < 0 {
		t.Errorf("%q: %v: %s", message, cmd.ProcessState, &stderr)
	}
	return string(text), code
}

// Malformed messages are rejected before the first step.
func TestProgramRejectsMalformedMessages(t *testing.T) {
	program := build(t)
	const invalid = uint32(syscall.EINVAL)
	bad := words(maxSteps+1, invalid)
	step := func(op, number uint32, value uint64, text ...uint32) string {
		return words(op, number) + long(value) + words(append(text, make([]uint32, maxStrings-len(text))...)...)
	}
	for _, tc := range []struct {
		name, message, reports string
		code                   int
	}{
		{"nothing", "", "", 127},
		{"half a header", words(1, 0), "", 127},
		{"many steps", words(maxSteps+1, 0, 0), bad, 126},
		{"many instructions", words(0, 4097, 0), bad, 126},
		{"long text", words(0, 0, maxText+1), bad, 126},
		{"a missing step", words(1, 0, 0), "", 127},
		{"a missing instruction", words(0, 1, 0) + "1234567", "", 127},
		{"missing text", words(0, 0, 2) + "a", "", 127},
		{"offset after the text", words(1, 0, 2) + step(opChdir, 0, 0, 3) + "/\x00", bad, 126},
		{"offset of the fourth string", words(1, 0, 2) + step(opChdir, 0, 0, 0, 0, 0, 1<<31) + "/\x00", bad, 126},
		{"text without an end", words(1, 0, 3) + step(opChdir, 0, 0, 0) + "/no", words(1, uint32(syscall.ENOENT)), 126},
		{"no such step", words(1, 0, 0) + step(opTerminal+1, 0, 0), words(1, invalid), 126},
		{"step 0", words(1, 0, 0) + step(0, 0, 0), words(1, invalid), 126},
		{"second step", words(2, 0, 2) + step(opChdir, 0, 0) + step(99, 0, 0) + "/\x00", words(2, invalid), 126},
		{"list without execute", words(1, 0, 2) + step(opChdir, 0, 0) + "/\x00", "", 125},
		{"no arguments", words(1, 0, 2) + step(opExecute, 0, 0) + "a\x00", words(1, invalid), 126},
		{"too many arguments", words(1, 0, 2) + step(opExecute, 2, 0) + "a\x00", words(1, invalid), 126},
		{"very many variables", words(1, 0, 2) + step(opExecute, 1, 1<<63) + "a\x00", words(1, invalid), 126},
		{"too many variables", words(1, 0, 2) + step(opExecute, 1, 1) + "a\x00", words(1, invalid), 126},
		{"host is gone", words(1, 0, 0) + step(opAwaitHost, 0, 0), "", 127},
		{"another reply", words(1, 0, 0) + step(opAwaitHost, 0, 0) + "\x02", words(1, uint32(syscall.EPROTO)), 126},
		// The host ended before its reply, or wrote only earlier ones.
		{"a dead host", words(1, 0, 0) + step(opDeathSignal, 9, 0), words(reportArmed, 0), 127},
		{"early reply", words(1, 0, 0) + step(opDeathSignal, 9, 0) + "\x01", words(reportArmed, 0, 1, uint32(syscall.EPROTO)), 126},
		{"a live host", words(2, 0, 12) + step(opDeathSignal, 9, 0) + step(opExecute, 1, 1) + "/bin/true\x00A\x00\x02", words(reportArmed, 0, 0, 0), 0},
		{"no terminal", words(1, 0, 0) + step(opTerminal, 3, 0), words(1, uint32(syscall.ENOTTY)), 126}, // 3 is the socket
		{"no rights", words(1, 0, 0) + step(opBoundingSet, 0, 0), words(1, uint32(syscall.EPERM)), 126},
		{"no right to mount", words(1, 0, 6) + step(opHideEntries, 0, 0) + "/proc\x00", words(1, uint32(syscall.EPERM)), 126},
		{"no folder to hide in", words(1, 0, 5) + step(opHideEntries, 0, 0) + "/nos\x00", words(1, uint32(syscall.ENOENT)), 126},
		{"no program", words(1, 0, 5) + step(opExecute, 1, 0) + "/nos\x00", words(0, 0, 1, uint32(syscall.ENOENT)), 126},
		{"runs", words(1, 0, 12) + step(opExecute, 1, 1) + "/bin/true\x00A\x00", words(0, 0), 0},
	} {
		reports, code := runProgram(t, program, tc.message)
		if reports != tc.reports || code != tc.code {
			t.Errorf("%s: %q, exit %d, want %q, %d", tc.name, reports, code, tc.reports, tc.code)
		}
	}
}

// Randomly changed lists do not crash the program.
func TestProgramSurvivesChangedLists(t *testing.T) {
	program := build(t)
	list := List{
		Steps:  []Step{Session(), {Name: "descriptors", op: opClose, number: 4}, Umask(0o22), Limit{7, 64}.Step(), Chdir("/"), HideEntries("/", []string{"x"}, "/y", "/z"), NoNewPrivs(), Execute([]string{"/nosuch", "b"}, []string{"C=d"})},
		Filter: make([]byte, 2*InstructionLen),
	}
	message, err := list.encode()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		changed := bytes.Clone(message)
		for range 1 + r.IntN(4) {
			// Not the strings: they name files and programs.
			changed[r.IntN(len(message)-50)] = byte(r.IntN(256))
		}
		runProgram(t, program, string(changed[:len(changed)-r.IntN(2)*r.IntN(len(changed))]))
	}
}
