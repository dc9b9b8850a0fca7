package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Server runs nats-server until its context ends, and starts it again when it ends.
type Server struct {
	program string
	dir     string
	token   string
	log     *slog.Logger
	address atomic.Pointer[string] // of the running program; nil: it is not ready
	process atomic.Pointer[os.Process]
	done    chan struct{}
}

const (
	startTimeout = 30 * time.Second       // of a program that recovers its files
	pollEvery    = 20 * time.Millisecond  // of the file with its address
	restartAfter = 500 * time.Millisecond // it has ended
	stopTimeout  = 5 * time.Second        // after SIGTERM
)

// Start starts a program with its files in a folder. Clients need the token. Done is closed after ctx has ended and the
// program has, too.
func Start(ctx context.Context, program, dir, token string, log *slog.Logger) (*Server, error) {
	s := &Server{program: program, dir: dir, token: token, log: log, done: make(chan struct{})}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	var ended <-chan error
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = fmt.Errorf("%s: another server uses it: %w", dir, err)
	} else if err = s.writeConfig(); err == nil {
		ended, err = s.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	go func() {
		s.supervise(ctx, ended)
		_ = lock.Close() // nothing was written
		close(s.done)
	}()
	return s, nil
}

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// supervise starts the program again each time that it ends, until ctx ends.
func (s *Server) supervise(ctx context.Context, ended <-chan error) {
	for {
		err := <-ended
		s.address.Store(nil)
		if ctx.Err() != nil {
			return
		}
		s.log.Error("the fleet's engine has ended", "err", err)
		for Sleep(ctx, restartAfter) {
			if ended, err = s.start(ctx); err == nil {
				break
			}
			s.log.Error("start the fleet's engine", "err", err)
		}
		if err != nil {
			return
		}
	}
}

const (
	configFile = "nats.conf"
	maxPayload = 8 << 20 // bytes of a message
)

// writeConfig writes the program's configuration. Each write is on the disk before it is acknowledged. JSON is a form that the
// program accepts.
func (s *Server) writeConfig() error {
	text, err := json.Marshal(map[string]any{
		"listen": "127.0.0.1:-1", "ports_file_dir": s.dir, "max_payload": maxPayload,
		"authorization": map[string]any{"token": s.token},
		"jetstream": map[string]any{
			"store_dir": filepath.Join(s.dir, "data"), "sync_interval": "always", "max_memory_store": 64 << 20, "max_file_store": 16 << 30,
		},
	})
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, configFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// start starts the program and waits until it accepts connections. The channel gets the error with which it ends, and is closed. If
// start fails, the program has ended.
func (s *Server) start(ctx context.Context) (<-chan error, error) {
	if err := s.removePorts(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.program, "-c", filepath.Join(s.dir, configFile))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // a terminal's signals are for gaol
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	cmd.Env = []string{}
	lines, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	err = kernfile.StartOnThread(cmd.Start, func() {
		s.logLines(lines)
		err := cmd.Wait()
		_ = s.removePorts() // else the next start does
		ended <- err
		close(ended)
	})
	if err != nil {
		return nil, err
	}
	address, err := s.waitForAddress(ctx, cmd.Process.Pid, ended)
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended
		for range ended {      // wait for its end
		}
		return nil, fmt.Errorf("%s: %w", s.program, err)
	}
	s.process.Store(cmd.Process)
	s.address.Store(&address)
	return ended, nil
}

// Times of [Server.Watch].
const (
	canaryEvery   = 2 * time.Second
	canaryTimeout = 30 * time.Second
)

// Watch kills the program, which starts again, when it accepts no writes for half a minute although it runs, until ctx ends:
// a stream can refuse them for ever.
func (s *Server) Watch(ctx context.Context, write func(context.Context) error) {
	s.watch(ctx, canaryEvery, canaryTimeout, write)
}

func (s *Server) watch(ctx context.Context, every, timeout time.Duration, write func(context.Context) error) {
	for last := time.Now(); ctx.Err() == nil; Sleep(ctx, every) {
		err := write(ctx)
		if err == nil || s.address.Load() == nil { // it is being started
			last = time.Now()
		} else if time.Since(last) > timeout && ctx.Err() == nil {
			s.log.Error("the fleet's engine accepts no writes: start it again", "err", err)
			_ = s.process.Load().Kill() // it may have ended
			last = time.Now()
		}
	}
}

// portsFile is the file in which the program writes its addresses.
func (s *Server) portsFile(pid int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s_%d.ports", filepath.Base(s.program), pid))
}

// removePorts removes the files with the addresses of programs that have ended, which remain after a SIGKILL. A later program can have
// the same process id.
func (s *Server) removePorts() error {
	left, err := fs.Glob(os.DirFS(s.dir), "*.ports")
	for _, name := range left {
		if removed := os.Remove(filepath.Join(s.dir, name)); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// waitForAddress waits until the program has written its address.
func (s *Server) waitForAddress(ctx context.Context, pid int, ended <-chan error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		var ports struct{ NATS []string }
		if text, err := os.ReadFile(s.portsFile(pid)); err == nil && json.Unmarshal(text, &ports) == nil && len(ports.NATS) > 0 {
			u, err := url.Parse(ports.NATS[0])
			if err != nil {
				return "", err
			}
			return u.Host, nil
		}
		select {
		case err := <-ended:
			return "", fmt.Errorf("it has ended before it was ready: %w", err)
		case <-ctx.Done():
			return "", errors.New("it is not ready: see the server's log")
		case <-time.After(pollEvery):
		}
	}
}

// logLines logs the program's lines: its errors and warnings as such.
func (s *Server) logLines(from io.Reader) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		level := slog.LevelDebug
		for _, mark := range []string{"[ERR]", "[FTL]", "[WRN]"} {
			if strings.Contains(lines.Text(), mark) {
				level = slog.LevelWarn
			}
		}
		s.log.Log(context.Background(), level, "engine", "line", lines.Text())
	}
	_, _ = io.Copy(io.Discard, from) // after a line that is too long
}

// Dial connects to the running program.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	address := s.address.Load()
	if address == nil {
		return nil, ErrUnavailable
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", *address)
}

// Serve connects a node to the program, until either ends the connection. It closes c.
func (s *Server) Serve(ctx context.Context, c net.Conn) error {
	defer func() { _ = c.Close() }()
	to, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	end := func() { _ = c.Close(); _ = to.Close() }
	defer context.AfterFunc(ctx, end)()
	go func() {
		defer end()
		_, _ = io.Copy(to, c) // until an end closes
	}()
	_, err = io.Copy(c, to)
	return err
}
