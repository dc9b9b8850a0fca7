package subprocess

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp"
)

// Role is a part of this program that runs in subprocesses. Programs register a role once, with
// [Register], before main.
type Role struct {
	Name        string        // as /proc and errors name it
	Calls       []seccomp.Row // allowed beside seccomp.GoRuntime
	HostNetwork bool          // sockets are in the host's network namespace
	Packets     bool          // the socket is SOCK_SEQPACKET rather than SOCK_STREAM

	// Serve is the role's program. The subprocess ends when it returns. A returned
	// error is written to standard error.
	Serve func(conn *os.File) error

	filter func() (*seccomp.Filter, error)
}

// variable is the environment variable that contains the encoded setup of a subprocess.
const variable = "GAOL_SUBPROCESS"

// setup is the configuration that a subprocess needs before it is confined.
type setup struct {
	Role      string
	ID        int    // of its user and group
	OpenFiles uint64 // limit on descriptors
	Memory    int64  // limit of its cgroup; 0: none
	Filter    []byte
}

// Register returns the role for [Process] starts. In a subprocess of this role it does not return: it
// confines the process and calls Serve.
func Register(r Role) *Role {
	r.filter = sync.OnceValues(func() (*seccomp.Filter, error) {
		return seccomp.CompileOnly(slices.Concat(seccomp.GoRuntime, r.Calls))
	})
	if s, ok := isSubprocess(); ok && s.Role == r.Name {
		s.become(&r)
	}
	return &r
}

// isSubprocess reports whether Start has started this process. The variable alone does not
// prove that: only Start makes a process the first of a pid namespace with a socket to it.
func isSubprocess() (s setup, ok bool) {
	text := os.Getenv(variable)
	if text == "" || os.Getpid() != 1 {
		return s, false
	}
	domain, err := unix.GetsockoptInt(seccomp.HostSocket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return s, false
	}
	return s, json.Unmarshal([]byte(text), &s) == nil
}

// become runs the role and ends the process.
func (s *setup) become(r *Role) {
	os.Clearenv()
	err := s.confine()
	if err == nil {
		// Not on this goroutine: during initialization it is locked to the main thread, so each
		// switch to it would be one of threads.
		done := make(chan error)
		go func() { done <- r.Serve(os.NewFile(seccomp.HostSocket, "host")) }()
		err = <-done
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
