package audit

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gaol/jail/landlock"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// guest is a process that enforces its domain when start is closed.
type guest struct {
	*exec.Cmd
	start io.Closer
}

func begin(t *testing.T, ruleset *os.File, flags int, args ...string) guest {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{helperEnv + "=" + strconv.Itoa(flags)}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{ruleset}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return guest{cmd, in}
}

func (g guest) run(t *testing.T) {
	t.Helper()
	g.start.Close()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func readRuleset(t *testing.T) *os.File {
	t.Helper()
	// Everything but the secrets can be read.
	ruleset, err := makeRuleset(&landlock.Ruleset{Handled: landlock.ReadFile, Rules: []landlock.Rule{
		{Path: "/usr", Tree: true, Access: landlock.ReadFile},
		{Path: "/etc", Tree: true, Access: landlock.ReadFile},
		{Path: "/proc", Tree: true, Access: landlock.ReadFile},
		{Path: "/sys", Tree: true, Access: landlock.ReadFile},
		{Path: "/dev", Tree: true, Access: landlock.ReadFile},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ruleset.Close() })
	return ruleset
}

// secret makes a file that guests may not read.
func secret(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nextDenial waits for a denial.
func nextDenial(t *testing.T, denials <-chan Denial) Denial {
	t.Helper()
	select {
	case d := <-denials:
		return d
	case <-time.After(time.Minute):
		t.Fatal("no denial was reported")
		return Denial{}
	}
}

// open enables audit, opens a reader until the test ends and checks for leaks.
func open(t *testing.T) *Reader {
	t.Helper()
	enableAudit(t)
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		goleak.VerifyNone(t)
	})
	return r
}

func TestReader(t *testing.T) {
	r := open(t)
	ruleset := readRuleset(t)
	plain, hostile := secret(t, "plain"), secret(t, "a domain=1 path=\"x\n")
	mine := begin(t, ruleset, unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON, plain, hostile)
	other := begin(t, ruleset, 0, plain)
	denials, otherDenials := make(chan Denial, 16), make(chan Denial, 16)
	defer r.Watch(mine.Process.Pid, func(d Denial) { denials <- d })()
	stop := r.Watch(other.Process.Pid, func(d Denial) { otherDenials <- d })
	mine.run(t)
	for _, path := range []string{plain, hostile} {
		d := nextDenial(t, denials)
		if d.Path != path || d.PID != mine.Process.Pid || !slices.Equal(d.Blockers, []string{"fs.read_file"}) {
			t.Errorf("%+v, want a denial of %q", d, path)
		}
	}
	stop() // before the other process is denied anything
	other.run(t)
	time.Sleep(100 * time.Millisecond)
	if len(denials)+len(otherDenials) != 0 {
		t.Errorf("unexpected denial: %+v", <-denials)
	}
}

// TestWatchLate watches a process that has already ended.
func TestWatchLate(t *testing.T) {
	r := open(t)
	path := secret(t, "file")
	for range 5 { // a busy machine may watch it too late
		g := begin(t, readRuleset(t), 0, path)
		g.run(t)
		ended := time.Now()
		time.Sleep(100 * time.Millisecond)
		denials := make(chan Denial, 16)
		defer r.Watch(g.Process.Pid, func(d Denial) { denials <- d })()
		if time.Since(ended) > retention/2 {
			continue
		}
		if d := nextDenial(t, denials); d.Path != path {
			t.Errorf("%+v", d)
		}
		return
	}
	t.Error("the machine is too busy")
}

// TestFlags checks which denials are recorded: by default none after the next execve, but
// those of a guest's own domain.
func TestFlags(t *testing.T) {
	r := open(t)
	ruleset, path := readRuleset(t), secret(t, "file")
	for _, tc := range []struct {
		name  string
		flags int
		acts  []string
		want  int
	}{
		{"execve", 0, []string{path, path}, 1},
		{"execve, recorded", unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON, []string{path, path}, 2},
		{"before execve, not recorded", unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF, []string{path}, 0},
		{"own domain", 0, []string{"nest"}, 1},
		{"own domain, not recorded", unix.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF, []string{"nest"}, 0},
	} {
		g := begin(t, ruleset, tc.flags, tc.acts...)
		denials := make(chan Denial, 16)
		stop := r.Watch(g.Process.Pid, func(d Denial) { denials <- d })
		g.run(t)
		for range tc.want {
			nextDenial(t, denials)
		}
		time.Sleep(200 * time.Millisecond)
		stop()
		if len(denials) > 0 {
			t.Errorf("%s: %d denials, want %d", tc.name, tc.want+len(denials), tc.want)
		}
	}
}

// TestOverflow blocks a reader until the socket has dropped records. Later denials are
// delivered all the same.
func TestOverflow(t *testing.T) {
	r := open(t)
	if err := r.socket.SetReceiveBufferSize(1, false); err != nil {
		t.Fatal(err)
	}
	path := secret(t, "file")
	const many = 20
	g := begin(t, readRuleset(t), unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON, slices.Repeat([]string{path}, many)...)
	dropped := make(chan struct{})
	defer r.Watch(g.Process.Pid, func(Denial) { <-dropped })()
	g.run(t)
	for deadline := time.Now().Add(time.Minute); drops(t, r) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the socket drops nothing")
			break
		}
	}
	close(dropped)
	for deadline := time.Now().Add(time.Minute); !reports(t, r, path); { // the kernel drops records until the socket is empty
		if time.Now().After(deadline) {
			t.Fatal("no later denial was reported")
		}
	}
}

// reports reports whether a reader delivers a denial within a second, or is late.
func reports(t *testing.T, r *Reader, path string) bool {
	t.Helper()
	denials, g := make(chan Denial, 1), begin(t, readRuleset(t), 0, path)
	defer r.Watch(g.Process.Pid, func(d Denial) { denials <- d })()
	g.run(t)
	select {
	case <-denials:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// drops returns how many messages the reader's socket has dropped.
func drops(t *testing.T, r *Reader) (n int) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(r.socket.GetFd(), &st); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/net/netlink")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 && f[9] == strconv.FormatUint(st.Ino, 10) {
			if n, err = strconv.Atoi(f[8]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

func TestClose(t *testing.T) {
	r := open(t)
	stop := r.Watch(1, func(Denial) {})
	r.Close()
	stop()
	r.Close() // again
}

// TestAvailable checks Available with audit as the machine has it.
func TestAvailable(t *testing.T) {
	on, errOn := enabled()
	err := Available()
	if err == nil {
		if errOn != nil || on == 0 {
			t.Errorf("available, but audit is %d, %v", on, errOn)
		}
		return
	}
	u, ok := errors.AsType[*UnavailableError](err)
	if !ok || u.Reason == "" || u.Cure == "" {
		t.Errorf("%#v", err)
	}
	if _, openErr := Open(); openErr == nil || openErr.Error() != err.Error() {
		t.Errorf("open: %v", openErr)
	}
}
