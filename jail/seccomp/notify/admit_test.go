package notify

import (
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp"
)

const self = "/proc/self/exe"

// launcher returns an order to try several paths and execute a program.
func launcher(then order) order {
	return order{
		Calls:   []call{inet},
		Reports: 8,
		Execute: []string{"/nowhere/program", "/etc/passwd", self},
		Then:    &then,
	}
}

func admitted(t *testing.T, g *guest) {
	t.Helper()
	if err := g.Admit(g.conn); err != nil {
		t.Fatal(err)
	}
}

// The launcher's execve calls are permitted, the guest's are refused.
func TestAdmit(t *testing.T) {
	g := start(t, restrictions(), launcher(order{Calls: []call{exe, chmod}}))
	g.theirs.Close()
	admitted(t, g)
	var calls []Call
	done := g.serve(t, func(c Call) { calls = append(calls, c) })
	if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM, unix.EPERM}) {
		t.Errorf("the program got %v", got)
	}
	await(t, done, "Serve")
	if len(calls) != 2 || calls[0].Label != "spawn" || calls[0].Path != exe.Path || calls[1].Label != "chmod" {
		t.Errorf("reported %+v", calls)
	}
	// Admit has not read its report.
	if text, err := io.ReadAll(g.conn); err != nil || len(text) != 8 {
		t.Errorf("read %q, %v", text, err)
	}
}

// Without Admit the launcher can't execute a program.
func TestNotAdmitted(t *testing.T) {
	_, calls, errnos := runCalls(t, restrictions(), launcher(order{}))
	if want := []syscall.Errno{unix.EACCES, unix.EPERM, unix.EPERM, unix.EPERM}; !slices.Equal(errnos, want) || len(calls) != len(want) {
		t.Errorf("got %v, reported %+v", errnos, calls)
	}
}

// A copy of the launcher's end in another process keeps the socket open. The program is not
// mistaken for the launcher.
func TestAdmitWithLeakedSocket(t *testing.T) {
	for range 5 {
		g := start(t, restrictions(), launcher(order{Execute: []string{self}, Then: &order{}}))
		admitted(t, g) // returns because the program makes a call
		done := g.serve(t, nil)
		if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM}) {
			t.Errorf("the program got %v", got)
		}
		await(t, done, "Serve")
		g.theirs.Close()
	}
}

// If the filter permits execve, the program makes the first refused call.
func TestAdmitWithoutExecveRestriction(t *testing.T) {
	for range 5 {
		g := start(t, seccomp.NoMetadata, order{Execute: []string{self}, Then: &order{Calls: []call{chmod}}})
		admitted(t, g)
		var calls []Call
		done := g.serve(t, func(c Call) { calls = append(calls, c) })
		if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM}) {
			t.Errorf("the program got %v", got)
		}
		g.theirs.Close()
		await(t, done, "Serve")
		if len(calls) != 1 || calls[0].Label != "chmod" {
			t.Errorf("reported %+v", calls)
		}
	}
}

// A call may be received before the listener is notified that the socket was closed.
func TestAdmitChecksSocket(t *testing.T) {
	g := start(t, restrictions(), order{Calls: []call{exe}})
	host, launcher, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	defer launcher.Close()
	w, err := g.watchHangup(host)
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop()
	n, err := g.receive()
	if err != nil {
		t.Fatal(err)
	}
	launcher.Close()
	if err := g.admit(n, w); err != errRuns || g.pending != n {
		t.Errorf("got %v, pending %v", err, g.pending)
	}
}

// Admit returns when the socket is closed, by a program without refused calls or a launcher
// that dies.
func TestAdmitReturns(t *testing.T) {
	t.Run("program", func(t *testing.T) {
		g := start(t, restrictions(), launcher(order{Sleep: true}))
		g.theirs.Close()
		admitted(t, g)
	})
	t.Run("no program", func(t *testing.T) {
		g := start(t, restrictions(), order{Execute: []string{"/nowhere"}})
		g.theirs.Close()
		admitted(t, g)
		if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.ENOENT}) {
			t.Errorf("the launcher got %v", got)
		}
	})
	t.Run("killed", func(t *testing.T) {
		g := start(t, restrictions(), order{Sleep: true})
		g.theirs.Close()
		time.AfterFunc(20*time.Millisecond, func() { _ = g.cmd.Process.Kill() })
		admitted(t, g)
	})
	t.Run("killed in its execve", func(t *testing.T) {
		g := start(t, restrictions(), order{Execute: []string{self}, Then: &order{}})
		g.theirs.Close()
		g.blocked(t)
		kill(t, g)
		admitted(t, g)
	})
}

// The end of Admit's context does not stop Serve.
func TestAdmitReturnsOnClose(t *testing.T) {
	g := start(t, restrictions(), order{Sleep: true})
	time.AfterFunc(20*time.Millisecond, func() { g.Close() })
	if err := g.Admit(g.conn); err == nil {
		t.Error("admitted")
	}
}
