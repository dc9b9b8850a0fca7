package jail

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/seccomp"
)

func newJail(t *testing.T, change ...func(*Spec)) *Jail {
	t.Helper()
	spec := testSpec(t)
	for _, f := range change {
		f(&spec)
	}
	j, err := Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// start starts a shell script. The function that it returns reads its output to the end.
func start(t *testing.T, j *Jail, script string, change ...func(*Command)) (*Process, func() string) {
	t.Helper()
	in, inW, err1 := os.Pipe()
	out, outW, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	inW.Close()
	defer in.Close()
	defer outW.Close()
	c := Command{
		Program: Program{
			Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/bin", "A=b"}, Dir: "/work", Files: []*os.File{in, outW, outW},
		},
		OpenFiles: 64, FileSize: 1 << 20, Limits: cgroup.Limits{Memory: 32 << 20, CPUs: 1, Pids: 16},
	}
	for _, f := range change {
		f(&c)
	}
	p, err := j.Start(t.Context(), c)
	if err != nil {
		out.Close()
		t.Fatal(err)
	}
	return p, func() string {
		defer out.Close()
		text, err := io.ReadAll(out)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

func output(t *testing.T, j *Jail, script string, change ...func(*Command)) string {
	t.Helper()
	p, read := start(t, j, script, change...)
	text := read()
	if exit, err := p.Wait(); err != nil || exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("%s: %+v, %v: %s", script, exit, err, text)
	}
	return strings.TrimSpace(text)
}

func TestGuestSees(t *testing.T) {
	for _, s := range []syscall.Signal{unix.SIGHUP, 32} { // as nohup does, and some C libraries
		signal.Ignore(s) // the guest must not notice
		defer signal.Reset(s)
	}
	j := newJail(t)
	for _, tc := range []struct{ script, want string }{
		{"id -u; id -g", "1000\n1000"},
		{"echo $A-$HOME-$USER", "b--"},
		{"pwd; umask", "/work\n0022"},
		{"cat /etc/gaol/note", "from the layer"},
		{"cat /proc/sys/kernel/hostname", "cell"},
		{"ls /dev | grep -vx core", "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"}, // core: a link to /proc/kcore, if there is one
		{"find /sys/fs/cgroup -type f | sort | sed 's,^/sys/fs/cgroup/,,'", "cgroup.controllers\ncpu.max\nmemory.high\nmemory.max\nmemory/memory.limit_in_bytes\nmemory/memory.soft_limit_in_bytes"},
		{"ulimit -c; ulimit -n", "0\n64"},
		{"cat /proc/net/dev | grep -v lo: | grep -c :", "0"},
		{"grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | sed 's/.*\\t//' | sort -u", "0000000000000000\n1\n2"},
		{"cat /proc/1/comm", "catatonit"},
		{"cat /proc/self/oom_score_adj", "1000"},
		{"grep -E '^Sig(Blk|Ign)' /proc/self/status | sed 's/.*\\t//' | sort -u", "0000000000000000"},
		{"cat /proc/cmdline /proc/keys /proc/timer_list | wc -c", "0"},
		{"sed 's/.*://' /proc/self/cgroup | sort -u", "/"},
		{"for f in /proc/$$/fd/*; do readlink $f; done | sed 's/:.*//'", "pipe\npipe\npipe"},
		{"echo x > /dev/stderr", "x"},
	} {
		script := strings.NewReplacer("grep", "busybox grep", "sed", "busybox sed", "sort", "busybox sort", "wc", "busybox wc").Replace(tc.script)
		if got := output(t, j, script+"; true"); got != tc.want {
			t.Errorf("%s\n got %q\nwant %q", tc.script, got, tc.want)
		}
	}
}

func TestGuestCannotWrite(t *testing.T) {
	j := newJail(t)
	for _, path := range []string{
		"/x", "/bin/x", "/bin/busybox", "/etc/gaol/note", "/dev/x", "/proc/sys/kernel/hostname", "/proc/1/oom_score_adj",
		"/proc/sysrq-trigger", "/proc/self/uid_map", "/proc/self/setgroups", "/proc/1/mem", "/proc/1/environ",
	} {
		if got := output(t, j, "echo 1 2>/dev/null >"+path+" && echo written; true"); got != "" {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := output(t, j, "echo 1 >/work/a && echo 2 >/tmp/b && echo 3 >/dev/shm/c && cat /work/a /tmp/b /dev/shm/c"); got != "1\n2\n3" {
		t.Errorf("the guest's own folders: %q", got)
	}
	if got := output(t, j, "cat /work/a"); got != "1" {
		t.Errorf("files do not last from run to run: %q", got)
	}
}

func TestDiskIsBounded(t *testing.T) {
	j := newJail(t)
	got := output(t, j, "dd if=/dev/zero of=a bs=64k 2>/dev/null; dd if=/dev/zero of=b bs=64k 2>/dev/null; busybox du -k a b | busybox awk '{s+=$1} END {print s}'")
	if kib, err := strconv.Atoi(got); err != nil || kib < 1000 || kib > 1024 {
		t.Errorf("wrote %s KiB on a disk of 1024", got)
	}
	output(t, j, "busybox rm a b")
	got = output(t, j, "i=0; while echo >f$i; do i=$((i+1)); done 2>/dev/null; echo $i")
	var made int
	if _, err := fmt.Sscan(got, &made); err != nil || made < 60 || made > 64 {
		t.Errorf("made %s files on a disk of 64 inodes", got)
	}
}

func TestExits(t *testing.T) {
	j := newJail(t)
	for _, tc := range []struct {
		script string
		code   int
		signal syscall.Signal
	}{
		{"exit 0", 0, 0}, {"exit 7", 7, 0}, {"kill -9 $$", 0, unix.SIGKILL}, {"kill -SEGV $$", 0, unix.SIGSEGV},
		{"sleep 100 & exit 3", 3, 0}, // processes that it leaves running are killed
		{"(sleep 100 &) ; exit 4", 4, 0},
	} {
		began := time.Now()
		p, read := start(t, j, tc.script)
		exit, err := p.Wait()
		read()
		if err != nil || exit.Code != tc.code || exit.Signal != tc.signal {
			t.Errorf("%s: %+v, %v", tc.script, exit, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %v", tc.script, took)
		}
	}
}

func TestStartErrors(t *testing.T) {
	j := newJail(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tc := range []struct {
		path, dir string
		want      error
	}{
		{"nosuch", "/work", fs.ErrNotExist},
		{"/etc/gaol/note", "/work", fs.ErrPermission},
		{"sh", "/nosuch", fs.ErrNotExist},
		{"sh", "/etc/gaol/note", unix.ENOTDIR},
	} {
		_, err := j.Start(t.Context(), Command{
			Program:   Program{Args: []string{tc.path}, Dir: tc.dir, Env: []string{"PATH=/bin"}, Files: []*os.File{null, null, null}},
			OpenFiles: 64,
		})
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s in %s: %v, want %v", tc.path, tc.dir, err, tc.want)
		}
	}
	for _, p := range []Program{{Args: []string{"sh"}, Files: []*os.File{null, null}}, {Files: []*os.File{null, null, null}}} {
		if _, err := j.Start(t.Context(), Command{Program: p, OpenFiles: 64}); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if got := output(t, j, "echo fine"); got != "fine" {
		t.Errorf("after failed starts: %q", got)
	}
}

func TestKill(t *testing.T) {
	j := newJail(t)
	for name, script := range map[string]string{
		"sleeper": "sleep 100", "stopped": "kill -STOP $$", "tree": "sleep 100 & sleep 100 & wait",
		"fork bomb": "f() { f & f & }; f; sleep 100", "deaf": "trap '' TERM INT HUP; while :; do :; done",
	} {
		p, read := start(t, j, script)
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		p.Kill()
		exit, err := p.Wait()
		read()
		if err != nil || exit.Signal != unix.SIGKILL {
			t.Errorf("%s: %+v, %v", name, exit, err)
		}
		t.Logf("%s: gone after %v", name, time.Since(began))
	}
}

// A lock of a guest in one jail does not hold in another.
func TestJailsAreApart(t *testing.T) {
	a, b := newJail(t), newJail(t)
	if a.identity.ID() == b.identity.ID() {
		t.Fatal("two live jails have the same ids")
	}
	const files = "/dev/null /dev/zero /bin/busybox /etc/gaol/note /work"
	p, read := start(t, a, "lock "+files+" && touch /work/locked && sleep 100")
	waitFor(t, "the locks", func() bool { return output(t, a, "ls /work") == "locked" })
	if got := output(t, a, "lock /dev/null || echo taken"); got != "taken" {
		t.Errorf("in the same jail the lock is %q: this test proves nothing", got)
	}
	for _, f := range strings.Fields(files) {
		if got := output(t, b, "lock "+f+" && echo free"); got != "free" {
			t.Errorf("%s is locked in the other jail", f)
		}
	}
	p.Kill()
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	read()
}

func TestCreateErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Spec)
		step   string
	}{
		"no image":        {func(s *Spec) { s.Image = "/nosuch" }, "mount"},
		"no reaper":       {func(s *Spec) { s.Reaper = []string{"/nosuch"} }, "exec"},
		"bad filter":      {func(s *Spec) { s.Filter = &seccomp.Filter{Program: make([]byte, 8)} }, "seccomp"},
		"no filter":       {func(s *Spec) { s.Filter = nil }, "seccomp"},
		"guard":           {func(s *Spec) { s.Dirs = []string{"/usr/libexec/gaol"} }, "make"},
		"guard's parent":  {func(s *Spec) { s.Dirs = []string{"/usr"} }, "make"},
		"relative folder": {func(s *Spec) { s.Dirs = []string{"x"} }, "make"},
		"unclean folder":  {func(s *Spec) { s.Dirs = []string{"/x/../usr"} }, "make"},
		"root":            {func(s *Spec) { s.Dirs = []string{"/"} }, "make"},
		"over a file":     {func(s *Spec) { s.Dirs = []string{"/bin/busybox"} }, "make"},
		"below a file":    {func(s *Spec) { s.Dirs = []string{"/etc/gaol/note/x"} }, "make"},
		"over a link":     {func(s *Spec) { s.Dirs = []string{"/bin/sh/x"} }, "make"},
		"no disk":         {func(s *Spec) { s.Disk, s.Inodes = 4096, -40 }, ""},
		"state":           {func(s *Spec) { s.StateDir = "/proc/nosuch" }, "make"},
	} {
		spec := testSpec(t)
		tc.change(&spec)
		j, err := Create(t.Context(), spec)
		if err == nil {
			t.Errorf("%s: no error", name)
			j.Close()
			continue
		}
		step, ok := errors.AsType[*StepError](err)
		if !ok || tc.step != "" && step.Step != tc.step {
			t.Errorf("%s: %v, want a failed %s", name, err, tc.step)
		}
	}
}

func TestClose(t *testing.T) {
	spec := testSpec(t)
	j, err := Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	p, read := start(t, j, "sleep 100 & sleep 100")
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Signal != unix.SIGKILL {
		t.Errorf("%+v, %v", exit, err)
	}
	read()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	if _, err := j.Start(t.Context(), Command{Program: Program{Args: []string{"sh"}, Files: []*os.File{null, null, null}}}); !errors.Is(err, ErrClosed) {
		t.Errorf("start in a closed jail: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(jailsDir(stateDir), j.identity.name()+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
