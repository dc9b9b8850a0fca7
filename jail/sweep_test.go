package jail

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/mounts"
	"gaol/test/tier"
)

// stateDir is a folder for these tests only, so that they see no other jails. Child
// processes get it in the environment.
var stateDir = os.Getenv("GAOL_TEST_STATE")

// cgroupParent separates the jails of these tests from jails of tests that run at the
// same time.
var cgroupParent = cmp.Or(os.Getenv("GAOL_TEST_CGROUP"), fmt.Sprintf("/gaol-test-jail-%d", os.Getpid()))

func TestMain(m *testing.M) {
	if stateDir != "" {
		runHost()
		return
	}
	var err error
	if stateDir, err = os.MkdirTemp("/run", "gaol-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if image, err := tinyImage(); err == nil {
		os.RemoveAll(image)
	}
	if left := leftovers(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "left behind:", left)
		code = 1
	}
	os.RemoveAll(stateDir)
	removeTestGroups()
	os.Exit(code)
}

// leftovers returns the state files and the cgroups of jails that still exist.
func leftovers() []string {
	state, _ := filepath.Glob(filepath.Join(jailsDir(stateDir), "*"))
	v1, _ := filepath.Glob("/sys/fs/cgroup/*" + cgroupParent + "/j*")
	v2, _ := filepath.Glob("/sys/fs/cgroup" + cgroupParent + "/j*")
	return append(append(state, v1...), v2...)
}

// gaol keeps the parent cgroup, as other processes may use it.
func removeTestGroups() {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*" + cgroupParent)
	for _, dir := range append(v1, "/sys/fs/cgroup"+cgroupParent) {
		_ = os.Remove(dir)
	}
}

// runHost creates a jail in which processes have run and are running, prints its number, and
// waits to be killed.
func runHost() {
	image := os.Getenv("GAOL_TEST_IMAGE")
	tinyImage = func() (string, error) { return image, nil }
	fmt.Println("up")
	number, err := createBusyJail()
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println("jail", number)
	select {}
}

func createBusyJail() (number int, err error) {
	j, err := Create(context.Background(), testSpec(&testing.T{}))
	if err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	// The second run reuses the cgroup of the first; that of the last is spare.
	for _, script := range []string{"", "sleep 1000 & sleep 1000", ""} {
		p, err := j.Start(context.Background(), Command{
			Program: Program{Args: []string{"/bin/sh", "-c", script}, Dir: "/", Files: []*os.File{null, null, null}}, OpenFiles: 64,
		})
		if err == nil && script == "" {
			_, err = p.Wait()
		}
		if err != nil {
			return 0, err
		}
	}
	return j.identity.number, nil
}

// startHost starts a host process and reads its first line.
func startHost(t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	image, err := tinyImage()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), "GAOL_TEST_STATE="+stateDir, "GAOL_TEST_CGROUP="+cgroupParent, "GAOL_TEST_IMAGE="+image)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "up\n" {
		t.Fatalf("the host says %q, %v", line, err)
	}
	return host, lines
}

func TestHostIsKilled(t *testing.T) {
	host, lines := startHost(t)
	line, _ := lines.ReadString('\n')
	var number int
	if _, err := fmt.Sscanf(line, "jail %d", &number); err != nil {
		t.Fatalf("the host says %q", line)
	}
	s := Identity{number: number}
	waitFor(t, "three processes to be up", func() bool { return len(processesOf(t, &s)) == 3 }) // reaper, shell, child
	if err := host.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	waitFor(t, "the jail to die", func() bool { return len(processesOf(t, &s)) == 0 })
	if len(leftovers()) == 0 {
		t.Fatal("a killed host leaves nothing: this test proves nothing")
	}
	if err := sweep(stateDir); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(); len(left) > 0 {
		t.Errorf("after a sweep: %v", left)
	}
}

// A host that is killed at any moment while it creates a jail and starts a process leaves
// no process, and nothing that a sweep does not remove.
func TestHostIsKilledWhileCreating(t *testing.T) {
	tier.Soak(t)
	const name = "gaol-test-way" // of the entry programs of this test
	const piece = "if (do_step("
	patchEntryProgram(t, piece, `if (usleep(2000) | prctl(PR_SET_NAME, "`+name+`")) fail(errno); else `+piece)
	const rounds = 40
	early, late := 0, 0
	whole := time.Duration(0) // the time that creating and starting take on this machine
	for i := range rounds {
		host, lines := startHost(t)
		if began := time.Now(); i == 0 || i == rounds-1 { // the last must complete even if the machine is slower by then
			if line, _ := lines.ReadString('\n'); !strings.HasPrefix(line, "jail ") {
				t.Fatalf("the host says %q", line)
			}
			whole, late = time.Since(began), late+1
		}
		time.Sleep(time.Duration(i) * whole * 5 / 4 / rounds)
		early += len(processesNamed(t, name))
		if err := host.Process.Signal(unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if line, _ := lines.ReadString('\n'); strings.HasPrefix(line, "jail ") {
			late++
		}
		_ = host.Wait()
		waitFor(t, "what it started to end", func() bool {
			return len(jailProcesses(t)) == 0 && len(processesNamed(t, name)) == 0
		})
		if err := sweep(stateDir); err != nil {
			t.Error(err)
		}
		if left := leftovers(); len(left) > 0 {
			t.Fatalf("after a sweep: %v", left)
		}
	}
	if early == 0 || late == rounds {
		t.Errorf("%d entry programs were on their way, %d of %d hosts were done: the test proves little", early, late, rounds)
	}
}

// processesNamed finds live processes by the name that ps shows. It ignores zombies: if their
// host is dead, too, init reaps them.
func processesNamed(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		if _, state, called := strings.Cut(string(text), " ("+name+") "); called && state[0] != 'Z' {
			found = append(found, file)
		}
	}
	return found
}

// jailProcesses returns the pids in the cgroups of the jails of this test.
func jailProcesses(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/*" + cgroupParent + "/j*", "/sys/fs/cgroup" + cgroupParent + "/j*"} {
		for _, below := range []string{"/cgroup.procs", "/*/cgroup.procs"} {
			files, err := filepath.Glob(pattern + below)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, _ := os.ReadFile(file) // it may be gone
				found = append(found, strings.Fields(string(text))...)
			}
		}
	}
	return found
}

func waitFor(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// A slot has one holder. A slot file of a dead process is cleared first.
func TestSlotsAreNotShared(t *testing.T) {
	dir := jailsDir(t.TempDir())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	taken := map[int]bool{}
	for range 50 {
		s, err := takeSlot(dir, cgroupParent)
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()
		if taken[s.number] {
			t.Fatalf("slot %d is given twice", s.number)
		}
		taken[s.number] = true
		if again, err := lockSlot(dir, s.number, os.O_CREATE); err != nil || again != nil {
			t.Fatalf("slot %d is locked twice: %v, %v", s.number, again, err)
		}
	}
	const odd = `{"cgroupParent":"/a/../.."}`
	for name, text := range map[string]string{"5000.slot": "x", "5001.slot": "", "5002.slot": "{", "5003.slot": "{}", "5004.slot": odd, "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	odd1, odd2, odd3 := filepath.Join(dir, "5011.slot"), filepath.Join(dir, "5012.slot"), filepath.Join(dir, "5013.slot")
	if err := errors.Join(os.Symlink("/etc/passwd", odd1), unix.Mkfifo(odd2, 0o600), os.Mkdir(odd3, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := sweep(filepath.Dir(dir)); err != nil {
		t.Error(err)
	}
	for _, n := range []int{5011, 5012, 5013} {
		if s, err := lockSlot(dir, n, os.O_CREATE); s != nil || err != nil {
			t.Errorf("slot %d, which is no file: %v, %v", n, s, err)
		}
	}
	// The held slots, the three that are not regular files, and the notes.
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 50+3+1 {
		t.Errorf("after a sweep: %d files, %v", len(names), names)
	}
}

// A folder that another user can write to is rejected: root would follow their links.
func TestStateFolderOwner(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"another's": func(dir string) error { return os.Chown(dir, 1000, 1000) },
		"for all":   func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link":    func(dir string) error { return errors.Join(os.Remove(dir), os.Symlink(t.TempDir(), dir)) },
		"jails, too": func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/jails", 0o711), os.Chown(dir+"/jails", 1000, 0))
		},
		"a plain file": func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := errors.Join(os.Mkdir(dir, 0o711), spoil(dir)); err != nil {
			t.Fatal(err)
		}
		if err := makeStateDirs(dir); err == nil {
			t.Errorf("%s: is used", name)
		}
	}
	if err := makeStateDirs(filepath.Join(t.TempDir(), "new", "state")); err != nil {
		t.Error(err)
	}
}

// processesOf finds processes with the user ids of a slot.
func processesOf(t *testing.T, s *Identity) []string {
	t.Helper()
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		var uid int
		for line := range strings.Lines(string(text)) {
			if _, err := fmt.Sscanf(line, "Uid: %d", &uid); err == nil {
				break
			}
		}
		if uid >= FirstID+s.number*mounts.IDsPerJail && uid < FirstID+(s.number+1)*mounts.IDsPerJail {
			found = append(found, path)
		}
	}
	return found
}

// The scope that systemd has made for a dead host's container is killed, and no other.
func TestSweepKillsScopes(t *testing.T) {
	s := Identity{number: maxSlots + os.Getpid()} // no jail has it
	find := func(scope string) []string {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + scopeSlice + "/" + scope)
		v2, _ := filepath.Glob("/sys/fs/cgroup/" + scopeSlice + "/" + scope)
		return append(groups, v2...)
	}
	var processes []*exec.Cmd
	scopes := []string{scopePrefix + "-" + s.newScope() + ".scope", scopePrefix + "-" + s.name() + "0-other.scope"}
	for _, scope := range scopes {
		group, err := cgroup.New("/"+scopeSlice+"/"+scope, cgroup.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		dirs := find(scope)
		t.Cleanup(func() {
			if err := cgroup.Remove(context.Background(), group.Path()); err != nil {
				t.Error(err)
			}
			for _, dir := range dirs {
				_ = os.Remove(filepath.Dir(dir)) // systemd's is in use
			}
		})
		p := exec.Command("sleep", "1000")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
		if err := group.AddPID(p.Process.Pid); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, p)
	}
	if err := s.removeScopes(t.Context()); err != nil {
		t.Error(err)
	}
	_ = processes[0].Wait() // until it is killed
	if left := find(scopes[0]); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := processes[1].Process.Signal(unix.Signal(0)); err != nil || len(find(scopes[1])) == 0 {
		t.Errorf("another slot's scope: %v", err)
	}
}
