package zygote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/kernfile"
)

// Child is a process that a zygote has forked. Its parent is this process.
type Child struct {
	*enter.Child
	zygote *Zygote

	host  *net.UnixConn // open until the program runs; the child exits if it is closed before
	taken atomic.Bool   // host is being closed, by Run or by Wait

	reports    bool                         // the child reports before its program runs
	onListener func(*os.File, syscall.Conn) // of the Entry
}

// ErrEnded is the error of a child that has ended without a report.
var ErrEnded = errors.New("the forked process has ended")

// Run makes a child run p. It returns when [Zygote.Fork] does. If it fails, it kills the child. It
// must be called only once.
func (c *Child) Run(ctx context.Context, p *Program) error {
	if c.taken.Swap(true) {
		return ErrEnded
	}
	defer func() { _ = c.host.Close() }()
	text, err := p.encode()
	if err == nil {
		err = c.killOnDone(ctx, func() error { return c.become(p, text) })
	}
	if err != nil {
		_ = c.Kill()
	}
	return err
}

// killOnDone calls f, and kills the child if ctx is done before f returns.
func (c *Child) killOnDone(ctx context.Context, f func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Kill() })
	defer stop()
	return f()
}

// send sends data with files. It ignores EPIPE: a child that has ended has reported why.
func (c *Child) send(data []byte, files []*os.File) error {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	_ = c.host.SetWriteDeadline(time.Now().Add(sendTimeout))
	n, _, err := c.host.WriteMsgUnix(data, unix.UnixRights(fds...), nil)
	if err == nil && n < len(data) {
		_, err = c.host.Write(data[n:])
	}
	if errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// raiseOOMScore makes the kernel kill guests first when the machine is short of memory, as
// enter.OOMScore does. The host does it: the zygote lacks /proc, and the jail's is read-only.
// The pid is valid until the child is waited for.
func (c *Child) raiseOOMScore() error {
	err := kernfile.WriteFile("/proc/"+strconv.Itoa(c.PID())+"/oom_score_adj", "1000")
	if errors.Is(err, unix.ESRCH) { // the child has ended, and has reported why
		return nil
	}
	return err
}

// become sends the child its program and waits until the program runs or the child has
// ended.
func (c *Child) become(p *Program, text []byte) error {
	if err := c.send(text, p.Files); err != nil {
		return err
	}
	if c.reports {
		if err := c.awaitReport(); err != nil {
			return err
		}
	}
	eof, err := c.readReport()
	if err == nil && !eof {
		err = errUnexpected
	}
	return err
}

// awaitReport waits for the report that no step has failed. It returns ErrEnded if the child ends
// without a report.
func (c *Child) awaitReport() error {
	eof, err := c.readReport()
	if eof {
		return ErrEnded
	}
	return err
}

// readReport reads a report. The error is that of the failed step, if the report has one. At the end
// of the reports, the child's program runs, or the child has ended.
func (c *Child) readReport() (eof bool, err error) {
	step, errno, err := enter.ReadReport(c.host, c.onListener)
	switch {
	case err == io.EOF:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read the child's report: %w", err)
	case step != 0:
		return false, stepError(step, errno)
	}
	return false, nil
}

// Wait waits until the child ends and returns how it ended. It must be called exactly once
// for each child.
func (c *Child) Wait() (enter.Exit, error) {
	defer c.zygote.children.Delete(c.PID())
	defer func() {
		if !c.taken.Swap(true) {
			_ = c.host.Close()
		}
	}()
	return c.Child.Wait()
}

// discard kills a child that is not used and waits for it.
func (c *Child) discard() {
	_ = c.Kill()
	_, _ = c.Wait()
}

// adopt returns the child that the zygote has reported.
func (z *Zygote) adopt(pid int, host *net.UnixConn) (*Child, error) {
	p, err := enter.Adopt(pid)
	if err != nil {
		return nil, err
	}
	z.children.Store(pid, nil)
	return &Child{Child: p, zygote: z, host: host}, nil
}

// lostTimeout bounds the wait for a lost child, which exits within a millisecond.
const lostTimeout = 10 * time.Second

var errLost = errors.New("a child of a dead zygote does not end")

// reapLost waits for a child that the zygote has forked without reporting its pid, if there
// is one. Otherwise it would remain a zombie, and its jail's pid 1 can't end before it is
// reaped. The child exits because the host has closed the socket for its request.
//
// The child is found by its process group, which is the zygote's until a child starts a
// session. It does so only after it has its request, so the other processes in the group are
// known children.
//
// Preconditions: the zygote has ended.
func (z *Zygote) reapLost() error {
	const again = time.Millisecond
	if !z.lost {
		return nil
	}
	for deadline := time.Now().Add(lostTimeout); time.Now().Before(deadline); time.Sleep(again) {
		pid, err := enter.EndedInGroup(z.process.Pid)
		_, isKnown := z.children.Load(pid)
		switch {
		case err == unix.ECHILD: // no children are left in the group
			return nil
		case err != nil && err != unix.EINTR:
			return os.NewSyscallError("waitid", err)
		case pid != 0 && !isKnown:
			_, err = unix.Wait4(pid, nil, 0, nil) // does not block: it has ended
			return os.NewSyscallError("wait4", err)
		}
	}
	return errLost
}
