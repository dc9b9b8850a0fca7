package seccomp

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	goruntime "runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A filter can't be removed, so a copy of the test binary loads it.

// helperEnv makes the test binary such a copy.
const helperEnv = "GAOL_SECCOMP_HELPER"

// order is the copy's input, on standard input.
type order struct {
	Filter  []byte // nil: no filter
	Calls   []call // made once
	Rounds  int    // if not 0, how often to make the first call instead
	Foreign bool   // make a call of another architecture
	Program string // if not empty, execute sh with this script instead

	// Container is another filter, loaded before. Both are then of one thread only: the
	// container's refuses filters for all threads.
	Container []byte
}

type call struct {
	Nr   uintptr
	Args [6]uintptr
}

// report is the copy's output, on standard output.
type report struct {
	Errnos []syscall.Errno // of the calls, 0 for success
	Loaded time.Duration   // to load the filter
	Took   time.Duration   // for all rounds
}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		help()
		return
	}
	os.Exit(m.Run())
}

func help() {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	var r report
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC)
	if o.Container != nil {
		flags = 0
		goruntime.LockOSThread()
		if err := Load(o.Container, flags); err != nil {
			panic(err)
		}
	}
	if o.Filter != nil {
		start := time.Now()
		if err := Load(o.Filter, flags); err != nil {
			panic(err)
		}
		r.Loaded = time.Since(start)
	}
	if o.Foreign {
		callForeign()
	}
	if o.Program != "" {
		panic(unix.Exec("/bin/sh", []string{"sh", "-c", o.Program}, nil))
	}
	if o.Rounds > 0 {
		c := o.Calls[0]
		start := time.Now()
		for range o.Rounds {
			unix.RawSyscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
		}
		r.Took = time.Since(start)
	} else {
		for _, c := range o.Calls {
			_, _, errno := unix.RawSyscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
			r.Errnos = append(r.Errnos, errno)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		panic(err)
	}
}

// helper runs the copy as root, because some calls need it to reach the point where the filter's
// effect shows, and in new namespaces, because without the filter some calls succeed.
func helper(t testing.TB, o order) ([]byte, *os.ProcessState) {
	t.Helper()
	in, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{helperEnv + "=1"}
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true, // vhangup
		Cloneflags: unix.CLONE_NEWIPC | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWNET,
	}
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out, cmd.ProcessState
}

// under makes calls under the filter, or without one if it is nil.
func under(t testing.TB, filter []byte, calls ...call) []syscall.Errno {
	t.Helper()
	return runHelper(t, order{Filter: filter, Calls: calls}).Errnos
}

func runHelper(t testing.TB, o order) report {
	t.Helper()
	out, state := helper(t, o)
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %v", state, err)
	}
	return r
}

func filter(t testing.TB) []byte {
	t.Helper()
	f, err := Compile(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return f.Program
}

func native(t testing.TB) machine {
	t.Helper()
	m, err := nativeMachine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// nr returns the number of a call of this architecture.
func nr(t testing.TB, name string) uintptr {
	t.Helper()
	n, exists := native(t).number(name)
	if !exists {
		t.Fatalf("%s: not on this architecture", name)
	}
	return uintptr(n)
}
