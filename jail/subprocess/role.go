package subprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/mounts"
	"gaol/jail/seccomp"
	"gaol/jail/step"
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

// Bytes of the handshake. They differ, so that none is mistaken for another.
const (
	replyGo    = 1 // the subprocess is in its cgroup
	armed      = 2 // the death signal is set
	replyAlive = 3 // the host was alive after that
	ready      = 4
)

// confine gives up all rights. It runs on the main thread.
func (s *setup) confine() error {
	steps := []struct {
		name string
		run  func() error
	}{
		{"wait for the host", func() error { return await(replyGo) }},
		{"set oom_score_adj", func() error { return kernfile.WriteFile("/proc/self/oom_score_adj", "1000") }}, // as guests
		{"close descriptors", closeOthers},
		{"enter an empty root", enterEmptyRoot},
		{"set limits", s.setLimits},
		{"change the user", s.changeUser},
		// Inheritable capabilities remain after the change of users. Other threads keep theirs, without
		// effect: the bounding set is empty, and the filter allows no execve.
		{"drop capabilities", kernfile.DropCapabilities},
		{"set the death signal", arm}, // after the change of users, which clears the signal
		{"load the filter", func() error { return seccomp.Load(s.Filter, unix.SECCOMP_FILTER_FLAG_TSYNC) }},
		{"report", func() error { return report(ready) }},
	}
	for _, st := range steps {
		if err := st.run(); err != nil {
			return step.Wrap(st.name, "", err)
		}
	}
	return nil
}

func await(want byte) error {
	var b [1]byte
	for {
		n, err := unix.Read(seccomp.HostSocket, b[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n != 1 || b[0] != want:
			return errors.New("unexpected reply of the host")
		default:
			return nil
		}
	}
}

func report(b byte) error {
	_, err := unix.Write(seccomp.HostSocket, []byte{b})
	return err
}

// closeOthers closes all descriptors except 0 to 3 and Go's poller: the host's program may have leaked
// some into its child, and package initializers may have opened some.
func closeOthers() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= seccomp.HostSocket {
			continue
		}
		kind, err := os.Readlink("/proc/self/fd/" + e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // ReadDir's own descriptor
		}
		flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		// the poller is not inherited
		if isPoller := strings.HasPrefix(kind, "anon_inode:[event") && flags&unix.FD_CLOEXEC != 0; !isPoller {
			_ = unix.Close(fd)
		}
	}
	return nil
}

// enterEmptyRoot makes an empty tmpfs, which is mounted nowhere, the root directory. All threads of
// a Go program share it.
func enterEmptyRoot() error {
	root, err := mounts.MountDetached("tmpfs", "tmpfs", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Chdir(); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return os.NewSyscallError("chroot", err)
	}
	return os.NewSyscallError("chdir", unix.Chdir("/"))
}

func (s *setup) setLimits() error {
	unix.Umask(0o777)
	if s.Memory > 0 {
		debug.SetMemoryLimit(s.Memory / 4 * 3) // collect garbage before the kernel kills
	}
	return errors.Join(
		syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: s.OpenFiles, Max: s.OpenFiles}),
		syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Cur: 1, Max: 1}), // not 0: a core handler would still be started, see core(5)
	)
}

// changeUser changes the users and groups of all threads. That clears their permitted, effective and
// ambient capabilities.
func (s *setup) changeUser() error {
	return errors.Join(syscall.Setgroups(nil), syscall.Setresgid(s.ID, s.ID, s.ID), syscall.Setresuid(s.ID, s.ID, s.ID))
}

// arm sets the death signal and waits until the host confirms that it was alive after that.
func arm() error {
	err := errors.Join(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
	if err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if err := report(armed); err != nil {
		return err
	}
	return await(replyAlive)
}

// needed are the capabilities of a subprocess until it changes its user, if the host has them.
const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_RESOURCE

// limitCapabilities empties the bounding set of this thread. A program that it executes as root
// then gets only the inheritable capabilities, on all threads: see "Capabilities and execution of
// programs by root" in capabilities(7). In a program with cgo, Go can't drop the capabilities of
// all threads later.
//
// Preconditions: the thread is locked to its goroutine and ends with it.
func limitCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	data[0].Inheritable, data[1].Inheritable = needed&data[0].Permitted, 0
	if err := unix.Capset(&header, &data[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	last, err := kernfile.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(last)))
	for c := 0; c <= n && err == nil; c++ {
		err = os.NewSyscallError("prctl", unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0))
	}
	return err
}
