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
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Server runs nats-server until its context ends, and starts it again when it ends.
type Server struct {
	Options
	address atomic.Pointer[string] // of the running program; nil: it is not ready
	routes  atomic.Pointer[string] // its address for other servers of the cluster
	process atomic.Pointer[os.Process]
	done    chan struct{}
}

const (
	startTimeout = 30 * time.Second       // of a program that recovers its files
	pollEvery    = 20 * time.Millisecond  // of the file with its address
	restartAfter = 500 * time.Millisecond // it has ended
	stopTimeout  = 5 * time.Second        // after SIGTERM
)

// Options are the options of [Start].
type Options struct {
	Program string // nats-server
	Dir     string // of its files
	Token   string // that clients need
	Cluster *Cluster
	Log     *slog.Logger
}

// Cluster makes a server a part of a cluster. Nil: it is alone.
type Cluster struct {
	Name   string   // which is not a secret
	Server string   // the name of this server, which no other one has had
	Routes []string // loopback addresses by which it reaches the other servers
}

// Start starts a program. Done is closed after ctx has ended and the program has, too.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{Options: o, done: make(chan struct{})}
	lock, err := os.OpenFile(filepath.Join(o.Dir, "lock"), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	var ended <-chan error
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = fmt.Errorf("%s: another server uses it: %w", o.Dir, err)
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
		s.routes.Store(nil)
		if ctx.Err() != nil {
			return
		}
		s.Log.Error("the fleet's engine has ended", "err", err)
		for Sleep(ctx, restartAfter) {
			if ended, err = s.start(ctx); err == nil {
				break
			}
			s.Log.Error("start the fleet's engine", "err", err)
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
	config := map[string]any{
		"listen": "127.0.0.1:-1", "ports_file_dir": s.Dir, "max_payload": maxPayload,
		"authorization": users(recordUser, s.Token), "accounts": map[string]any{"$SYS": users(systemUser, s.Token)},
		"jetstream": map[string]any{
			"store_dir": filepath.Join(s.Dir, "data"), "sync_interval": "always", "max_memory_store": 64 << 20, "max_file_store": 16 << 30,
		},
	}
	if c := s.Cluster; c != nil {
		routes := make([]string, len(c.Routes))
		for i, address := range c.Routes {
			routes[i] = (&url.URL{Scheme: "nats-route", User: url.UserPassword(recordUser, s.Token), Host: address}).String()
		}
		config["server_name"] = c.Server
		config["cluster"] = map[string]any{
			"name": c.Name, "listen": "127.0.0.1:-1", "routes": routes, "authorization": map[string]any{"user": recordUser, "password": s.Token},
			"no_advertise": true, "advertise": "127.0.0.1:1", // only the routes lead to other machines
			"ping_interval": pingEvery.String(),
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, configFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// users returns the configuration of one user.
func users(name, password string) map[string]any {
	return map[string]any{"users": []any{map[string]any{"user": name, "password": password}}}
}

// start starts the program and waits until it accepts connections. The channel gets the error with which it ends, and is closed. If
// start fails, the program has ended.
func (s *Server) start(ctx context.Context) (<-chan error, error) {
	if err := s.removePorts(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.Program, "-c", filepath.Join(s.Dir, configFile))
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
	address, routes, err := s.waitForAddresses(ctx, cmd.Process.Pid, ended)
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended
		for range ended {      // wait for its end
		}
		return nil, fmt.Errorf("%s: %w", s.Program, err)
	}
	s.process.Store(cmd.Process)
	s.routes.Store(&routes)
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
			s.Log.Error("the fleet's engine accepts no writes: start it again", "err", err)
			_ = s.process.Load().Kill() // it may have ended
			last = time.Now()
		}
	}
}

// portsFile is the file in which the program writes its addresses.
func (s *Server) portsFile(pid int) string {
	return filepath.Join(s.Dir, fmt.Sprintf("%s_%d.ports", filepath.Base(s.Program), pid))
}

// removePorts removes the files with the addresses of programs that have ended, which remain after a SIGKILL. A later program can have
// the same process id.
func (s *Server) removePorts() error {
	left, err := fs.Glob(os.DirFS(s.Dir), "*.ports")
	for _, name := range left {
		if removed := os.Remove(filepath.Join(s.Dir, name)); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// waitForAddresses waits until the program has written its addresses. That of routes is empty without a cluster.
func (s *Server) waitForAddresses(ctx context.Context, pid int, ended <-chan error) (clients, routes string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		var ports struct{ NATS, Cluster []string }
		text, err := os.ReadFile(s.portsFile(pid))
		if err == nil && json.Unmarshal(text, &ports) == nil && len(ports.NATS) > 0 && (s.Cluster == nil || len(ports.Cluster) > 0) {
			for _, address := range slices.Concat(ports.Cluster, ports.NATS) {
				u, err := url.Parse(address)
				if err != nil {
					return "", "", err
				}
				clients, routes = u.Host, clients
			}
			return clients, routes, nil
		}
		select {
		case err := <-ended:
			return "", "", fmt.Errorf("it has ended before it was ready: %w", err)
		case <-ctx.Done():
			return "", "", errors.New("it is not ready: see the server's log")
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
			if strings.Contains(lines.Text(), mark) && !strings.Contains(lines.Text(), "Plaintext passwords") { // they are random
				level = slog.LevelWarn
			}
		}
		s.Log.Log(context.Background(), level, "engine", "line", lines.Text())
	}
	_, _ = io.Copy(io.Discard, from) // after a line that is too long
}

// Dial connects to the running program.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return dialLoaded(ctx, s.address.Load())
}

// DialRoute connects to the running program as another server of its cluster.
func (s *Server) DialRoute(ctx context.Context) (net.Conn, error) {
	return dialLoaded(ctx, s.routes.Load())
}

// dialLoaded connects to an address, which is nil if there is none now.
func dialLoaded(ctx context.Context, address *string) (net.Conn, error) {
	if address == nil {
		return nil, ErrUnavailable
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", *address)
}

// Tunnel connects c with a connection from dial, until either ends or ctx does. It closes both.
func Tunnel(ctx context.Context, c net.Conn, dial func(context.Context) (net.Conn, error)) error {
	defer func() { _ = c.Close() }()
	to, err := dial(ctx)
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
