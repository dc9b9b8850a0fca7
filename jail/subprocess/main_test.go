package subprocess

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
)

const (
	cgroupParent = "/gaol-test-subprocess"
	hostVariable = "GAOL_TEST_SUBPROCESS_HOST" // the program is a host with one subprocess
	testLimit    = 128 << 20
)

func spec(stateDir string) Spec {
	return Spec{StateDir: stateDir, CgroupParent: cgroupParent, Limits: cgroup.Limits{Memory: testLimit, CPUs: 1, Pids: 32}, OpenFiles: 16}
}

var (
	probe       = Register(Role{Name: "probe", Serve: serveProbe})
	hostNetwork = Register(Role{Name: "probe-net", HostNetwork: true, Packets: true, Serve: serveProbe})
)

// leaked is opened by a package initializer, as an embedder's could do, without O_CLOEXEC.
var leaked, _ = unix.Open("/etc/passwd", unix.O_RDONLY, 0)

// serveProbe obeys orders.
func serveProbe(conn *os.File) error {
	b := make([]byte, 100)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return err
		}
		var reply any = "done"
		switch order := string(b[:n]); order {
		case "try":
			reply = tryAll()
		case "panic":
			panic("as ordered\nsecond line")
		case "memory":
			var all [][]byte
			for {
				all = append(all, make([]byte, 1<<20))
				for i := range all[len(all)-1] {
					all[len(all)-1][i] = 1
				}
			}
		case "print":
			fmt.Fprint(os.Stderr, strings.Repeat("a line\n", 100_000)) // more than a pipe holds
		case "exit":
			os.Exit(7)
		}
		text, err := json.Marshal(reply)
		if err != nil {
			return err
		}
		if _, err := conn.Write(append(text, '\n')); err != nil {
			return err
		}
	}
}

// attempts are actions that must fail in a subprocess.
var attempts = map[string]func() error{
	"open a file":          func() error { _, err := os.Open("/etc/passwd"); return err },
	"open a folder":        func() error { _, err := os.Open("/"); return err },
	"execute":              func() error { return exec.Command("/bin/true").Run() },
	"read leaked":          func() error { _, err := unix.Pread(leaked, make([]byte, 10), 0); return err },
	"create a TCP socket":  func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) },
	"create a unix socket": func() error { return closing(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)) },
	"listen": func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			l.Close()
		}
		return err
	},
	"fork": func() error {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 && errno == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if errno != 0 {
			return errno
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	},
	"map code": func() error {
		m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err == nil {
			_ = unix.Munmap(m)
		}
		return err
	},
	"create a file in memory": func() error { return closing(unix.MemfdCreate("x", 0)) },
}

func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func tryAll() map[string]string {
	errs := map[string]string{}
	for name, try := range attempts {
		errs[name] = ""
		if err := try(); err != nil {
			errs[name] = err.Error()
		}
	}
	return errs
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostVariable); dir != "" {
		beHost(dir)
	}
	code := m.Run()
	if err := cgroup.Remove(context.Background(), cgroupParent); err != nil && os.Geteuid() == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// beHost starts a subprocess and reports its pid, cgroup and the error of an order.
func beHost(dir string) {
	p, err := probe.Start(context.Background(), spec(dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.command.Process.Pid, p.group.Path())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until it is killed
	os.Exit(0)
}

func start(t *testing.T, r *Role) *Process {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	p, err := r.Start(t.Context(), spec(stateDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for _, dir := range p.group.Dirs() {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("after Close: %s: %v", dir, err)
			}
		}
	})
	return p
}

func stateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	t.Cleanup(func() {
		if slots, _ := filepath.Glob(dir + "/jails/*"); len(slots) > 0 {
			t.Errorf("left behind: %v", slots)
		}
	})
	return dir
}

func order(t *testing.T, p *Process, what string, reply any) {
	t.Helper()
	if _, err := p.Conn().Write([]byte(what)); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(p.Conn()).Decode(reply); err != nil {
		t.Fatal(err, p.Err())
	}
}

// status returns the fields of a status file of /proc.
func status(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}
