package notify

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gaol/jail/seccomp"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var (
	chmod = call{Nr: unix.SYS_FCHMODAT, Path: "/etc/gaol/no such file", At: 1}
	exe   = call{Nr: unix.SYS_EXECVE, Path: "/bin/true", At: 0}
	inet  = call{Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM}}
)

func restrictions() []seccomp.Row {
	return slices.Concat(seccomp.NoSpawn, seccomp.NoInternet, seccomp.NoMetadata)
}

func TestServe(t *testing.T) {
	long := strings.Repeat("x", 1000)
	tests := []struct {
		name string
		call
		want Call
	}{
		{"path", chmod, Call{Label: "chmod", Errno: unix.EPERM, Path: chmod.Path}},
		{"program", exe, Call{Label: "spawn", Errno: unix.EPERM, Path: exe.Path}},
		{"another errno", inet, Call{Label: "socket", Errno: unix.EACCES}},
		{"long path", call{Nr: unix.SYS_FCHMODAT, Path: long, At: 1}, Call{Label: "chmod", Errno: unix.EPERM, Path: long[:256]}},
		{"no path", call{Nr: unix.SYS_FCHMODAT, Args: [6]uintptr{0, 1}}, Call{Label: "chmod", Errno: unix.EPERM}},
		{"open file", call{Nr: unix.SYS_FCHMOD, Args: [6]uintptr{1 << 20}}, Call{Label: "chmod", Errno: unix.EPERM}},
	}
	var calls []call
	for _, test := range tests {
		calls = append(calls, test.call)
	}
	g, got, errnos := runCalls(t, restrictions(), order{Calls: calls})
	if len(got) != len(tests) || len(errnos) != len(tests) {
		t.Fatalf("reported %d calls, %d errnos, want %d", len(got), len(errnos), len(tests))
	}
	for i, test := range tests {
		test.want.Nr, test.want.PID, test.want.Args = int(test.Nr), got[i].PID, got[i].Args
		if d := cmp.Diff(test.want, got[i]); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
		if errnos[i] != test.want.Errno {
			t.Errorf("%s: the guest got %v", test.name, errnos[i])
		}
	}
	if err := g.Serve(nil); err != nil { // all processes have ended
		t.Errorf("serving again: %v", err)
	}
}

func TestServeWithoutHandler(t *testing.T) {
	g := start(t, restrictions(), order{Calls: []call{chmod}})
	done := g.serve(t, nil)
	if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.EPERM}) {
		t.Errorf("got %v", got)
	}
	await(t, done, "Serve")
}

// The loaded filter refuses calls that the listener's filter does not.
func TestServeUnknown(t *testing.T) {
	g := start(t, restrictions(), order{Calls: []call{chmod, inet}})
	other, err := seccomp.Compile(seccomp.NoInternet, true)
	if err != nil {
		t.Fatal(err)
	}
	g.filter = other
	var calls []Call
	done := g.serve(t, func(c Call) { calls = append(calls, c) })
	if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.ENOSYS, unix.EACCES}) {
		t.Errorf("got %v", got)
	}
	await(t, done, "Serve")
	if len(calls) != 2 || calls[0].Label != "" || calls[0].Path != "" {
		t.Errorf("reported %+v", calls)
	}
}

// TestFlood makes more calls than Burst.
func TestFlood(t *testing.T) {
	const more = 200
	g := start(t, restrictions(), order{Calls: []call{inet}, Times: Burst + more})
	var began time.Time
	count := 0
	done := g.serve(t, func(Call) {
		if count++; count == 1 {
			began = time.Now() // a little later than the first one's pause
		}
	})
	g.errnos(t)
	await(t, done, "Serve")
	if took := time.Since(began); count != Burst+more || took < (more-1)*pause/2 {
		t.Errorf("reported %d calls in %v", count, took)
	}
}

// A call of a killed guest gets no reply.
func TestGuestKilledInCall(t *testing.T) {
	t.Run("before it is received", func(t *testing.T) {
		g := start(t, restrictions(), order{Calls: []call{chmod}})
		g.blocked(t)
		kill(t, g)
		await(t, g.serve(t, func(c Call) { t.Errorf("reported %+v", c) }), "Serve")
	})
	t.Run("before the reply", func(t *testing.T) {
		g := start(t, restrictions(), order{Calls: []call{chmod}})
		count := 0
		await(t, g.serve(t, func(Call) { count++; kill(t, g) }), "Serve")
		if count != 1 {
			t.Errorf("reported %d calls", count)
		}
	})
}

func kill(t *testing.T, g *guest) {
	if err := g.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := g.cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
}

// Close makes Serve return and refuses blocked calls.
func TestClose(t *testing.T) {
	g := start(t, restrictions(), order{Calls: []call{chmod}})
	g.blocked(t)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if got := g.errnos(t); !slices.Equal(got, []syscall.Errno{unix.ENOSYS}) {
		t.Errorf("got %v", got)
	}
	if err := g.Serve(nil); err != nil {
		t.Errorf("serving when closed: %v", err)
	}

	idle := start(t, restrictions(), order{Sleep: true})
	done := idle.serve(t, nil)
	time.Sleep(10 * time.Millisecond)
	if err := idle.Close(); err != nil {
		t.Error(err)
	}
	await(t, done, "Serve, after Close")
}

func TestNewOfAnotherFile(t *testing.T) {
	f, err := seccomp.Compile(restrictions(), true)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := New(file, f); err == nil { // a file can't be polled
		l.Close()
		t.Error("made a listener of a file")
	}
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file was left open: %v", err)
	}
}

// Idle listeners need no thread each.
func TestIdleServeBlocksNoThread(t *testing.T) {
	const many = 12
	before := threads(t)
	for range many {
		start(t, restrictions(), order{Sleep: true}).serve(t, nil)
	}
	time.Sleep(50 * time.Millisecond)
	if after := threads(t); after-before >= many {
		t.Errorf("%d threads for %d listeners, after %d", after, many, before)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestNoLeakedDescriptors(t *testing.T) {
	t.Run("warm up", TestServeWithoutHandler) // opens the runtime's poller
	before := openFiles(t)
	t.Run("serve", TestServe)
	t.Run("close", TestClose)
	t.Run("admit", TestAdmit)
	t.Run("not a listener", TestNewOfAnotherFile)
	if d := cmp.Diff(before, openFiles(t)); d != "" {
		t.Error(d)
	}
}

// BenchmarkRefusal measures a refused call whose path is reported.
func BenchmarkRefusal(b *testing.B) {
	var took time.Duration
	for b.Loop() {
		g := start(b, restrictions(), order{Calls: []call{chmod}, Times: Burst})
		var first, last time.Time
		done := g.serve(b, func(Call) {
			if last = time.Now(); first.IsZero() {
				first = last
			}
		})
		g.errnos(b)
		await(b, done, "Serve")
		took += last.Sub(first)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/(Burst-1), "ns/call")
	b.ReportMetric(0, "ns/op") // mostly the start of a process
}
