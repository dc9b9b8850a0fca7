package subprocess

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/kernel"
)

// Spec describes a subprocess.
type Spec struct {
	StateDir     string // as in [jail.Spec]
	CgroupParent string // as in [jail.Spec]
	Limits       cgroup.Limits
	OpenFiles    uint64 // limit on descriptors; default 64
}

// Process is a running subprocess. It is safe for concurrent use.
type Process struct {
	role     *Role
	limits   cgroup.Limits
	identity *jail.Identity
	group    *cgroup.Group
	conn     *net.UnixConn
	command  *exec.Cmd
	output   firstBytes // of its standard error

	done  chan struct{} // closed when it has ended
	exit  *ExitError    // valid then
	close func() error
}

const (
	startTimeout = 30 * time.Second // of a subprocess, on a busy machine
	maxOutput    = 4 << 10
)

// Start starts a subprocess in the role and returns when it is confined.
func (r *Role) Start(ctx context.Context, s Spec) (*Process, error) {
	p := &Process{role: r, limits: s.Limits, done: make(chan struct{})}
	if err := p.start(ctx, &s); err != nil {
		return nil, fmt.Errorf("start subprocess %s: %w", r.Name, err)
	}
	return p, nil
}

func (p *Process) start(ctx context.Context, s *Spec) (err error) {
	filter, err := p.role.filter()
	if err != nil {
		return err
	}
	if p.identity, err = jail.NewIdentity(ctx, s.StateDir, s.CgroupParent); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.identity.Release())
		}
	}()
	if p.group, err = cgroup.New(p.identity.Cgroup(), s.Limits); err != nil {
		return err
	}
	text, err := json.Marshal(setup{p.role.Name, p.identity.ID(), cmp.Or(s.OpenFiles, 64), s.Limits.Memory, filter.Program})
	if err != nil {
		return err
	}
	if err := p.launch(string(text)); err != nil {
		return err
	}
	p.close = sync.OnceValue(func() error {
		_ = p.command.Process.Kill()
		<-p.done
		return errors.Join(p.conn.Close(), p.identity.Release())
	})
	stop := context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })
	err = p.shakeHands()
	if !stop() || err != nil {
		_ = p.command.Process.Kill()
		<-p.done
		return errors.Join(cmp.Or(context.Cause(ctx), err), p.exit, p.conn.Close())
	}
	return nil
}

// launch starts the program on a thread that lives until the subprocess has ended: the kernel
// kills the subprocess when that thread ends.
func (p *Process) launch(setup string) error {
	kind := unix.SOCK_STREAM
	if p.role.Packets {
		kind = unix.SOCK_SEQPACKET
	}
	host, socket, err := kernfile.SocketPair(kind)
	if err != nil {
		return err
	}
	defer socket.Close()
	p.conn = host
	err = kernfile.StartOnThread(func() error { return p.execute(setup, socket) }, func() {
		p.exit = p.newExitError(p.command.Wait())
		close(p.done)
	})
	if err != nil {
		return errors.Join(err, host.Close())
	}
	return nil
}

// execute starts the program.
//
// Preconditions: see limitCapabilities.
func (p *Process) execute(setup string, socket *os.File) error {
	if err := limitCapabilities(); err != nil {
		return err
	}
	processors := min(goruntime.GOMAXPROCS(0), maxProcessors)
	if p.limits.CPUs > 0 { // more threads than that would be throttled together
		processors = min(processors, int(math.Ceil(p.limits.CPUs)))
	}
	p.command = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"gaol-" + p.role.Name}, Dir: "/",
		// The number of processors is fixed: the runtime would keep a file of its cgroup open.
		Env: []string{variable + "=" + setup, fmt.Sprintf("GOMAXPROCS=%d", processors),
			"GODEBUG=containermaxprocs=0,updatemaxprocs=0", "GOTRACEBACK=none"},
		Stdout: &p.output, Stderr: &p.output, ExtraFiles: []*os.File{socket},
		WaitDelay: time.Second,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
			Pdeathsig:  unix.SIGKILL, // until it changes its user
			Setsid:     true,
		},
	}
	attr := p.command.SysProcAttr
	if !p.role.HostNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	dirs := p.group.Dirs()
	if v, err := cgroup.Detect(); err == nil && v == cgroup.V2 {
		dir, err := kernfile.Open(dirs[0], unix.O_DIRECTORY|unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer dir.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	return enter.StartError(p.command.Start())
}

// firstBytes keeps the first bytes that are written to it.
type firstBytes []byte

func (b *firstBytes) Write(text []byte) (int, error) {
	*b = append(*b, text[:min(len(text), maxOutput-len(*b))]...)
	return len(text), nil
}

// maxProcessors limits the threads of a subprocess, which run Go code at one time.
const maxProcessors = 4

// shakeHands waits until the subprocess is confined.
func (p *Process) shakeHands() error {
	if len(p.group.Dirs()) > 1 { // v1
		if err := p.group.AddPID(p.command.Process.Pid); err != nil {
			return err
		}
	}
	_ = p.conn.SetDeadline(time.Now().Add(kernel.Timeout(startTimeout)))
	defer func() { _ = p.conn.SetDeadline(time.Time{}) }()
	for _, exchange := range [][2]byte{{replyGo, armed}, {replyAlive, ready}} {
		if _, err := p.conn.Write(exchange[:1]); err != nil {
			return err
		}
		var b [1]byte
		if _, err := io.ReadFull(p.conn, b[:]); err != nil {
			return err
		}
		if b[0] != exchange[1] {
			return errors.New("unexpected report of the subprocess")
		}
	}
	return nil
}

// Conn returns the host's end of the socket. Close closes it.
func (p *Process) Conn() *net.UnixConn { return p.conn }

// Kill kills the subprocess and does not wait. Close must still be called.
func (p *Process) Kill() { _ = p.command.Process.Kill() }

// Done returns a channel that is closed when the subprocess has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits until the subprocess has ended and returns how.
func (p *Process) Err() *ExitError {
	<-p.done
	return p.exit
}

// Close kills the subprocess, waits until it has ended, and removes its cgroup.
func (p *Process) Close() error { return p.close() }

// ErrMemory matches the error of a subprocess that needed more memory than its limit.
var ErrMemory = errors.New("out of memory")

// ExitError reports how a subprocess ended: killed, or by an internal fault, which hostile
// bytes may have caused.
type ExitError struct {
	Role   string
	Memory bool               // the kernel killed it at the memory limit
	State  syscall.WaitStatus // its exit status, or the signal that killed it
	Output string             // first line of its standard error; hostile
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("subprocess %s: exit status %d", e.Role, e.State.ExitStatus())
	switch {
	case e.Memory:
		return fmt.Sprintf("subprocess %s: %v", e.Role, ErrMemory)
	case e.State.Signaled():
		text = fmt.Sprintf("subprocess %s: %v", e.Role, e.State.Signal())
	}
	if e.Output != "" {
		text += fmt.Sprintf(": %q", e.Output)
	}
	return text
}

// Is reports whether target is ErrMemory and the cause was that.
func (e *ExitError) Is(target error) bool { return target == ErrMemory && e.Memory }

// newExitError is called when the process has been reaped, and its cgroup still exists.
func (p *Process) newExitError(err error) *ExitError {
	e := &ExitError{Role: p.role.Name, State: 255 << 8}
	if p.command.ProcessState == nil {
		e.Output = err.Error()
		return e
	}
	e.State = p.command.ProcessState.Sys().(syscall.WaitStatus)
	if usage, err := p.group.Usage(); err == nil {
		e.Memory = e.State.Signal() == syscall.SIGKILL && usage.OOMKills > 0
	}
	e.Output, _, _ = strings.Cut(strings.TrimSpace(string(p.output)), "\n")
	return e
}
