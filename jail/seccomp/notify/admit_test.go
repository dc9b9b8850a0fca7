package notify

import (
	"io"
	"os"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp"
)

const self = "/proc/self/exe"

// launcherOrder returns an order to try several paths and execute a program.
func launcherOrder(then order) order {
	return order{
		Calls:   []call{inet},
		Reports: 8,
		Execute: []string{"/nowhere/program", "/etc/passwd", self},
		Then:    &then,
	}
}

// serveAdmitted serves after Admit. The reported calls may be read when Serve has returned.
func serveAdmitted(t *testing.T, g *guest) (calls *[]Call, done <-chan struct{}) {
	t.Helper()
	if err := g.Admit(g.conn); err != nil {
		t.Fatal(err)
	}
	calls = new([]Call)
	return calls, g.serve(t, func(c Call) { *calls = append(*calls, c) })
}

// The launcher's execve calls are permitted, the guest's are refused.
func TestAdmit(t *testing.T) {
	g := start(t, restrictions(), launcherOrder(order{Calls: []call{exe, chmod}}))
	g.theirs.Close()
	reported, done := serveAdmitted(t, g)
	if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM, unix.EPERM}) {
		t.Errorf("the program got %v", got)
	}
	await(t, done, "Serve")
	if calls := *reported; len(calls) != 2 || calls[0].Label != "spawn" || calls[0].Path != exe.Path || calls[1].Label != "chmod" {
		t.Errorf("reported %+v", calls)
	}
	// Serve has not read the launcher's report.
	if text, err := io.ReadAll(g.conn); err != nil || len(text) != 8 {
		t.Errorf("read %q, %v", text, err)
	}
}

// Without Admit the launcher can't execute a program.
func TestNotAdmitted(t *testing.T) {
	_, calls, errnos := runCalls(t, restrictions(), launcherOrder(order{}))
	if want := []syscall.Errno{unix.EACCES, unix.EPERM, unix.EPERM, unix.EPERM}; !slices.Equal(errnos, want) || len(calls) != len(want) {
		t.Errorf("got %v, reported %+v", errnos, calls)
	}
}

// A copy of the launcher's end in another process keeps the socket open. The program is not
// mistaken for the launcher.
func TestAdmitWithLeakedSocket(t *testing.T) {
	for range 5 {
		g := start(t, restrictions(), launcherOrder(order{Calls: []call{chmod}, Execute: []string{self}, Then: &order{}}))
		_, done := serveAdmitted(t, g)
		if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM, unix.EPERM}) {
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
		calls, done := serveAdmitted(t, g)
		if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM}) {
			t.Errorf("the program got %v", got)
		}
		g.theirs.Close()
		await(t, done, "Serve")
		if len(*calls) != 1 || (*calls)[0].Label != "chmod" {
			t.Errorf("reported %+v", *calls)
		}
	}
}

// A process whose socket is closed is not the launcher, whatever its image.
func TestAdmitChecksSocket(t *testing.T) {
	for _, closed := range []bool{false, true} {
		g := start(t, restrictions(), order{Calls: []call{exe}})
		host, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		defer theirs.Close()
		if err := g.Admit(host); err != nil {
			t.Fatal(err)
		}
		if closed {
			theirs.Close()
		}
		image, err := g.launcher.imageOf(uint32(g.cmd.Process.Pid))
		if err != nil || len(image) == 0 {
			t.Fatalf("%d bytes, %v", len(image), err)
		}
		for range 2 {
			if g.fromLauncher(image) == closed {
				t.Errorf("admitted: %t, closed: %t", !closed, closed)
			}
		}
		if !closed {
			g.launcher.socket.Close()
		}
	}
}

// A launcher whose execve fails gets the kernel's error. Serve returns if the launcher is killed.
func TestAdmitWithoutProgram(t *testing.T) {
	t.Run("no program", func(t *testing.T) {
		g := start(t, restrictions(), order{Execute: []string{"/nowhere"}})
		g.theirs.Close()
		_, done := serveAdmitted(t, g)
		if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.ENOENT}) {
			t.Errorf("the launcher got %v", got)
		}
		await(t, done, "Serve")
	})
	t.Run("killed in its execve", func(t *testing.T) {
		g := start(t, restrictions(), order{Execute: []string{self}, Then: &order{}})
		g.theirs.Close()
		g.blocked(t)
		kill(t, g)
		_, done := serveAdmitted(t, g)
		await(t, done, "Serve")
	})
}
