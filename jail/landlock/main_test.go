package landlock

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// A ruleset can't be removed, so a copy of the test binary enforces it.

// helperEnv makes the test binary such a copy.
const helperEnv = "GAOL_LANDLOCK_HELPER"

// order is the copy's input, on standard input. Descriptor 3 is the ruleset.
type order struct {
	Restrict bool // enforce the ruleset
	Before   []act
	Acts     []act // run one after the other under the ruleset
	Stay     bool  // until the end of standard input
}

// act is a call of one of acts.
type act struct {
	Name string
	Args []string
}

func do(name string, args ...string) act { return act{name, args} }

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		help()
		return
	}
	os.Exit(m.Run())
}

func help() {
	goruntime.LockOSThread() // a ruleset applies to a thread and its children
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	perform(o.Before)
	if o.Restrict {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		if err := ll.LandlockRestrictSelf(3, 0); err != nil {
			panic(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(perform(o.Acts)); err != nil {
		panic(err)
	}
	if o.Stay {
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

func perform(list []act) (errnos []syscall.Errno) {
	for _, a := range list {
		errnos = append(errnos, errnoOf(acts[a.Name](a.Args)))
	}
	return errnos
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	if err != nil {
		panic(err)
	}
	return 0
}

// under runs acts in a copy under a ruleset, or without one if it is nil. It returns the
// errno of each, or 0.
func under(t *testing.T, ruleset *os.File, list ...act) []syscall.Errno {
	t.Helper()
	return run(t, ruleset, order{Acts: list})
}

func run(t *testing.T, ruleset *os.File, o order) []syscall.Errno {
	t.Helper()
	o.Restrict = ruleset != nil
	in, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{helperEnv + "=1"}
	cmd.Stdin = strings.NewReader(string(in))
	cmd.Stderr = os.Stderr
	if ruleset != nil {
		cmd.ExtraFiles = []*os.File{ruleset}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var errnos []syscall.Errno
	if err := json.Unmarshal(out, &errnos); err != nil {
		t.Fatal(err)
	}
	if len(errnos) != len(o.Acts) {
		t.Fatalf("%d results of %d acts", len(errnos), len(o.Acts))
	}
	return errnos
}

// needRoot skips a test that needs namespaces or devices.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("creating namespaces and devices needs root")
	}
}

func needABI(t *testing.T, abi int) {
	t.Helper()
	have, err := ABI()
	if err != nil {
		t.Skip(err)
	}
	if have < abi {
		t.Skipf("needs ABI %d, this kernel has %d", abi, have)
	}
}

// tree creates files for a test: a/file, a/empty, a/full/inner, a/door (a device), b.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"a/empty", "a/full", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a/file", "a/full/inner", "b/file"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(dir+"/a/door", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// makeBelow creates a ruleset whose paths are below dir.
func makeBelow(t *testing.T, dir string, r *Ruleset) *os.File {
	t.Helper()
	file, err := r.Make(openRoot(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func openRoot(t *testing.T, dir string) *os.File {
	t.Helper()
	root, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}
