package enter

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// superviseShell supervises the processes of a shell script, in the place of an OCI runtime.
func superviseShell(ctx context.Context, t *testing.T, path, script string, files ...*os.File) (*Supervised, error) {
	t.Helper()
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pidFile := filepath.Join(t.TempDir(), "pid")
	return Supervise(ctx, program, Starter{Args: []string{"/bin/sh", "-c", script, "sh", pidFile}, Files: append([]*os.File{null, null, null}, files...), PIDFile: pidFile})
}

// The supervisor ends as the process that the program has left behind.
func TestSupervise(t *testing.T) {
	program := build(t)
	for _, tc := range []struct {
		end  string
		want Exit
	}{
		{`exit 7`, Exit{Code: 7}},
		{`kill -TERM $$`, Exit{Signal: unix.SIGTERM}},
		{`kill -KILL $$`, Exit{Signal: unix.SIGKILL}},
		{`kill -SEGV $$`, Exit{Signal: unix.SIGSEGV}},
		{`exit 137`, Exit{Code: 137}},
	} {
		// The process ends after its parent, which would wait for it otherwise.
		s, err := superviseShell(t.Context(), t, program, `sh -c 'while [ -d /proc/$1 ]; do :; done; `+tc.end+`' sh $$ & echo $! > $1`)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Wait(); got != tc.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", tc.end, got, err, tc.want)
		}
		if err := s.Signal(unix.SIGTERM, false); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: a signal after the end: %v", tc.end, err)
		}
	}
}

// Signals reach the process, and the death of the host kills it.
func TestSupervisedSignals(t *testing.T) {
	program := build(t)
	for name, tc := range map[string]struct {
		send func(*Supervised) error
		want syscall.Signal
	}{
		"process":  {func(s *Supervised) error { return s.Signal(unix.SIGUSR1, false) }, unix.SIGUSR1},
		"group":    {func(s *Supervised) error { return s.Signal(unix.SIGTERM, true) }, unix.SIGTERM},
		"kill":     {(*Supervised).Kill, unix.SIGKILL},
		"host end": {func(s *Supervised) error { return s.socket.Close() }, unix.SIGKILL},
	} {
		s, err := superviseShell(t.Context(), t, program, `setsid sh -c 'exec sleep 1000' & echo $! > $1; while [ "$(cat /proc/$!/comm)" != sleep ]; do :; done`)
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.send(s); err != nil {
			t.Errorf("%s: %v", name, err)
			_ = s.Kill()
		}
		if got, err := s.Wait(); got.Signal != tc.want || err != nil {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, tc.want)
		}
	}
}

// A program that fails, or that names another process than its own child, starts nothing.
func TestSuperviseFails(t *testing.T) {
	program := build(t)
	for script, want := range map[string]error{
		`exit 3`:           syscall.ECHILD,
		`kill -KILL $$`:    syscall.ECHILD,
		`:`:                syscall.ENOENT,
		`echo 1 > $1`:      syscall.ECHILD,
		`echo junk > $1`:   syscall.ESRCH,
		`echo -5 > $1`:     syscall.ESRCH,
		`ln -s /x $1`:      syscall.ELOOP,
		`echo $PPID > $1`:  syscall.ECHILD,
		`exec /nosuchfile`: syscall.ECHILD,
	} {
		if s, err := superviseShell(t.Context(), t, program, script); s != nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", script, err, want)
		}
	}
}

// The end of the context kills a program that hangs.
func TestSuperviseCanceled(t *testing.T) {
	program := build(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = r.Read(make([]byte, 1)) // it runs
		cancel()
	}()
	s, err := superviseShell(ctx, t, program, `echo >&3; exec sleep 1000`, w)
	w.Close()
	if s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it canceled", err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil { // until the program has ended
		t.Error("the program is alive")
	}
}

// A process whose host dies while it is being started is killed, too.
func TestSuperviseWithoutHost(t *testing.T) {
	program, dir := build(t), t.TempDir()
	host, socket, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The script waits until this pipe is closed, after the host's end of the socket.
	wait, goOn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(dir, "pid")
	l := List{Steps: []Step{CloseOthers(), supervise(pidFile, []string{"/bin/sh", "-c", `read line; sleep 1000 <&- & echo $! > $1`, "sh", pidFile})}, Files: []*os.File{wait, w, w}}
	first, err := start(file, l.open(socket), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	message, err := l.encode()
	if err == nil {
		_, err = host.Write(message)
	}
	if err = errors.Join(err, socket.Close(), host.Close(), wait.Close(), w.Close(), goOn.Close()); err != nil {
		t.Fatal(err)
	}
	state, err := first.Wait()
	if err != nil || state.Success() {
		t.Errorf("%v, %v, want a failure", state, err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil { // until the process has ended
		t.Error("the process is alive")
	}
}

// Nothing is left of the processes of a program if it fails, or is killed, even a process that was stopped.
func TestSuperviseLeavesNothing(t *testing.T) {
	program := build(t)
	for name, tc := range map[string]struct {
		script string
		want   error
	}{
		"fails":       {`sleep 1000 & kill -STOP $!; echo $! >&3; exit 3`, syscall.ECHILD},
		"is canceled": {`(sleep 1000 & kill -STOP $!; echo $! >&3; kill -STOP $$; sleep 1000); :`, context.Canceled},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		pids := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(r).ReadString('\n')
			pids <- strings.TrimSpace(line)
			if tc.want == context.Canceled {
				cancel()
			}
		}()
		if s, err := superviseShell(ctx, t, program, tc.script, w); s != nil || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		w.Close()
		if pid := <-pids; pid == "" {
			t.Errorf("%s: it printed nothing", name)
		} else if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("%s: process %s is left", name, pid)
		}
		cancel()
		r.Close()
	}
}
