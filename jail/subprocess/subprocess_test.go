package subprocess

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

func TestConfined(t *testing.T) {
	p := start(t, probe)
	errs := map[string]string{}
	order(t, p, "try", &errs)
	if len(errs) != len(attempts) {
		t.Errorf("%d attempts of %d", len(errs), len(attempts))
	}
	for name, err := range errs {
		if err == "" {
			t.Errorf("the subprocess can %s", name)
		}
	}
	proc := fmt.Sprintf("/proc/%d", p.command.Process.Pid)
	threads, err := filepath.Glob(proc + "/task/*/status")
	if err != nil || len(threads) < 2 {
		t.Fatal(threads, err)
	}
	id := fmt.Sprint(p.identity.ID())
	ids := strings.Join([]string{id, id, id, id}, " ")
	for _, path := range threads {
		s := status(t, path)
		for name, want := range map[string]string{
			"Uid": ids, "Gid": ids, "Groups": "", "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "1",
			"CapPrm": zeros, "CapEff": zeros, "CapBnd": zeros, "CapAmb": zeros,
		} {
			if s[name] != want {
				t.Errorf("%s: %s is %q, want %q", path, name, s[name], want)
			}
		}
	}
	checkNamespaces(t, proc, "pid_for_children", "ipc", "uts", "net")
	checkDescriptors(t, proc)
}

const zeros = "0000000000000000"

func checkNamespaces(t *testing.T, proc string, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		own, err1 := os.Readlink("/proc/self/ns/" + kind)
		its, err2 := os.Readlink(proc + "/ns/" + kind)
		if own == its || err1 != nil || err2 != nil {
			t.Errorf("namespace %s: %s, %v; the host's is %s, %v", kind, its, err2, own, err1)
		}
	}
}

func checkDescriptors(t *testing.T, proc string) {
	t.Helper()
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, fd := range fds {
		target, _ := os.Readlink(proc + "/fd/" + fd.Name())
		kind, _, _ := strings.Cut(target, "[")
		kinds = append(kinds, kind)
	}
	want := []string{"/dev/null", "pipe:", "pipe:", "socket:"}
	if len(kinds) < len(want) || !slices.Equal(kinds[:len(want)], want) {
		t.Errorf("descriptors: %q", kinds)
	}
	for _, kind := range kinds[len(want):] {
		if kind != "anon_inode:" { // the poller's
			t.Errorf("descriptors: %q", kinds)
		}
	}
	limits, err := os.ReadFile(proc + "/limits")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), "Max open files 16 16 files") {
		t.Errorf("limits: %s, %v", limits, err)
	}
	if root, err := os.ReadDir(proc + "/root/"); err != nil || len(root) != 0 {
		t.Errorf("root directory: %v, %v", root, err)
	}
}

// The attempts succeed where nothing confines them.
func TestAttemptsUnconfined(t *testing.T) {
	for name, err := range tryAll() {
		if err != "" {
			t.Errorf("%s: %s", name, err)
		}
	}
}

func TestHostNetwork(t *testing.T) {
	p := start(t, hostNetwork)
	own, _ := os.Readlink("/proc/self/ns/net")
	if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.command.Process.Pid)); its != own {
		t.Errorf("network namespace %s, %v; want %s", its, err, own)
	}
	var reply string
	if order(t, p, "x", &reply); reply != "done" {
		t.Error(reply)
	}
}

func TestCgroup(t *testing.T) {
	p := start(t, probe)
	pids, err := p.group.PIDs()
	if err != nil || !slices.Equal(pids, []int{p.command.Process.Pid}) {
		t.Errorf("the cgroup has %v, %v; want %d", pids, err, p.command.Process.Pid)
	}
	files := map[string]string{"memory.max": fmt.Sprint(testLimit), "pids.max": "32"}
	if v, _ := cgroup.Detect(); v == cgroup.V1 {
		files = map[string]string{
			"memory.limit_in_bytes": fmt.Sprint(testLimit), "memory.kmem.tcp.limit_in_bytes": fmt.Sprint(testLimit),
			"pids.max": "32", "cpu.cfs_quota_us": "100000",
		}
	}
	for _, dir := range p.group.Dirs() {
		for name, want := range files {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if delete(files, name); err != nil || strings.TrimSpace(string(text)) != want {
				t.Errorf("%s: %q, %v; want %s", name, text, err, want)
			}
		}
	}
	if len(files) > 0 {
		t.Errorf("missing: %v", files)
	}
}

func TestEnds(t *testing.T) {
	for _, tc := range []struct {
		order string
		want  ExitError
	}{
		{"exit", ExitError{Role: "probe", State: 7 << 8}},
		{"panic", ExitError{Role: "probe", State: 2 << 8, Output: "panic: as ordered"}},
		{"memory", ExitError{Role: "probe", Memory: true, State: syscall.WaitStatus(unix.SIGKILL)}},
	} {
		t.Run(tc.order, func(t *testing.T) {
			p := start(t, probe)
			if _, err := p.Conn().Write([]byte(tc.order)); err != nil {
				t.Fatal(err)
			}
			if got := p.Err(); *got != tc.want || errors.Is(got, ErrMemory) != tc.want.Memory {
				t.Errorf("%+v, want %+v", *got, tc.want)
			}
		})
	}
	t.Run("much output", func(t *testing.T) {
		p := start(t, probe)
		var reply string
		order(t, p, "print", &reply)
		if err := p.Conn().CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := p.Err(); reply != "done" || got.State.ExitStatus() != 1 || got.Output != "a line" {
			t.Errorf("%q, %+v", reply, *got)
		}
	})
	t.Run("closed socket", func(t *testing.T) {
		p := start(t, probe)
		if err := p.Conn().CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := p.Err(); got.State.ExitStatus() != 1 || got.Output != "EOF" {
			t.Errorf("%+v", *got)
		}
	})
}

func TestStartCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := probe.Start(ctx, spec(stateDir(t))); !errors.Is(err, context.Canceled) {
		t.Error(p, err)
	}
}

// The host is a copy in a folder that only root can enter, linked with shared libraries or not.
func TestHostIsKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "host")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(program, self, 0o700), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	state := stateDir(t)
	host := exec.Command(program)
	host.Env = append(os.Environ(), hostVariable+"="+state)
	if _, err := host.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var pid int
	var group string
	if _, scanErr := fmt.Sscan(line, &pid, &group); err != nil || scanErr != nil {
		_ = host.Process.Kill()
		t.Fatalf("the host prints %q, %v", line, err)
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	_ = host.Process.Kill()
	_ = host.Wait()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(time.Minute/time.Millisecond)); n != 1 {
		t.Fatalf("the subprocess is alive: %d, %v", n, err)
	}
	// The next host removes the rest.
	p, err := probe.Start(t.Context(), spec(state))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	left, err := cgroup.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range left.Dirs() {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// The variable does not make the program a subprocess that a user has started.
func TestVariableAlone(t *testing.T) {
	c := exec.Command("/proc/self/exe", "-test.run=^$")
	c.Env = append(os.Environ(), variable+`={"Role":"probe"}`)
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		p, err := probe.Start(b.Context(), spec(dir))
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
