package seccomp

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A filter can't be taken off, so that a copy of the test binary wears it.

// helperEnv makes the test binary such a copy.
const helperEnv = "GAOL_SECCOMP_HELPER"

// order is what the copy is told to do, on standard input.
type order struct {
	Filter  []byte // none: the guard is off
	Calls   []call // are made once
	Rounds  int    // or the first of them so many times
	Foreign bool   // or a call of another architecture
	Program string // or is a script for sh, which the copy becomes
}

type call struct {
	Nr   uintptr
	Args [6]uintptr
}

// report is the copy's answer, on standard output.
type report struct {
	Errnos []syscall.Errno // of the calls, 0 for success
	Loaded time.Duration   // that it took to put the filter on
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
	if o.Filter != nil {
		start := time.Now()
		if err := load(o.Filter); err != nil {
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

// helper starts the copy, as root since some guards would not show otherwise, in
// namespaces of its own since without the filter some calls work.
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

// under makes calls with the filter on, or without any.
func under(t testing.TB, filter []byte, calls ...call) []syscall.Errno {
	t.Helper()
	return answer(t, order{Filter: filter, Calls: calls}).Errnos
}

func answer(t testing.TB, o order) report {
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

// nr is the number of a call that this architecture has.
func nr(t testing.TB, name string) uintptr {
	t.Helper()
	n, err := native(t).number(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return uintptr(n)
}
