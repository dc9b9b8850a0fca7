package zygote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/reap"
)

// Child is a process that a zygote forked. Its parent is this process.
type Child struct {
	process *reap.Child
	zygote  *Zygote
	host    *net.UnixConn // until it has its program

	parked atomic.Bool // host is for Run, or, when it has ended before, for nobody

	listening func(*os.File, syscall.Conn) // Entry's
}

// ErrEnded is what a parked child gives that ended before it had its program.
var ErrEnded = errors.New("the parked process has ended")

// PID is the child's, as the host numbers it.
func (c *Child) PID() int { return c.process.PID() }

// Run has a parked child become p, and returns as [Zygote.Fork] does. The child ends
// if it fails. It is to be called once.
func (c *Child) Run(ctx context.Context, p *Program) error {
	if !c.parked.Swap(false) {
		return ErrEnded
	}
	defer c.letGo()
	text, err := p.encode()
	if err == nil {
		err = c.bounded(ctx, func() error { return c.resume(p, text) })
	}
	if err != nil {
		_ = c.process.Kill()
	}
	return err
}

// letGo closes the socket: a child whose program runs needs it no more, and any other
// ends with it.
func (c *Child) letGo() { _ = c.host.Close() }

// bounded has ctx end the child while f runs.
func (c *Child) bounded(ctx context.Context, f func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.process.Kill() })
	defer stop()
	return f()
}

// tell sends data with files. A child that ends early says why by itself.
func (c *Child) tell(data []byte, files []*os.File) error {
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

// setOOMScore is the host's to do: the zygote has no /proc, and the jail's is read-only.
// The number is the child's until it is waited for.
func (c *Child) setOOMScore(score int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", c.PID()), strconv.AppendInt(nil, int64(score), 10), 0)
	if errors.Is(err, unix.ESRCH) { // it has ended, which its reports tell
		return nil
	}
	return err
}

// become hands the child its program and waits for the end of its set-up.
func (c *Child) become(p *Program, text []byte) error {
	if err := c.tell(text, p.Files); err != nil {
		return err
	}
	if c.listening != nil {
		if err := c.report(); err != nil {
			return running(err)
		}
	}
	return running(c.report())
}

// running makes no error of the end of the reports: the child runs the program, or has
// ended, which is what Wait tells.
func running(err error) error {
	if errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

// resume is become for a parked child, which tells of its end by saying nothing.
func (c *Child) resume(p *Program, text []byte) error {
	if err := c.tell(text, p.Files); err != nil {
		return err
	}
	if err := c.report(); err != nil {
		return err
	}
	return running(c.report())
}

// report reads one. There is none from a child that has ended, or whose program runs.
func (c *Child) report() error {
	_ = c.host.SetReadDeadline(time.Time{})
	step, errno, file, err := enter.ReadReport(c.host)
	if file != nil && c.listening != nil {
		c.listening(file, c.host)
	} else if file != nil {
		file.Close()
	}
	switch {
	case err == io.EOF || errors.Is(err, unix.ECONNRESET):
		return ErrEnded // reset: it ended before it had read its request
	case err != nil:
		return fmt.Errorf("read the child's report: %w", err)
	case step != 0:
		return stepError(step, errno)
	}
	return nil
}

// Signal sends a signal to the child, or to the group that it leads, see
// [reap.Child.Signal].
func (c *Child) Signal(s syscall.Signal, group bool) error { return c.process.Signal(s, group) }

// Wait waits for the child's end and says how it ended. Each child has to be waited
// for, and just once.
func (c *Child) Wait() (reap.Exit, error) {
	defer c.zygote.children.remove(c.process.PID())
	defer func() {
		if c.parked.Swap(false) {
			c.letGo()
		}
	}()
	return c.process.Wait()
}

// end undoes a fork that came to nothing.
func (c *Child) end() {
	_ = c.process.Kill()
	_, _ = c.Wait()
}

// child takes charge of the child that the zygote told of.
func (z *Zygote) child(pid int) (*Child, error) {
	p, err := reap.Adopt(pid)
	if err != nil {
		return nil, err
	}
	z.children.add(pid)
	return &Child{process: p, zygote: z}, nil
}

// known are the children that somebody waits for.
type known struct {
	mu   sync.Mutex
	pids map[int]struct{}
}

func (k *known) add(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pids == nil {
		k.pids = map[int]struct{}{}
	}
	k.pids[pid] = struct{}{}
}

func (k *known) remove(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pids, pid)
}

func (k *known) has(pid int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.pids[pid]
	return ok
}

// lostTimeout bounds the wait for a child that ends in a millisecond.
const lostTimeout = 10 * time.Second

var errLost = errors.New("a child of a zygote that died does not end")

// reapLost waits for the child that a broken zygote forked without having told its
// pid, if there is one: nobody else would, and its jail's pid 1 can't end before
// that. It ends by itself, as the host has closed the socket that its request should
// come by.
//
// What gives it away is its process group, which is the zygote's until a child makes
// a session of its own. That happens only after it has its request: whatever else is
// in that group is a known child on its way.
//
// Preconditions: the zygote is no more.
func (z *Zygote) reapLost() error {
	const again = time.Millisecond
	if !z.lost {
		return nil
	}
	for deadline := time.Now().Add(lostTimeout); time.Now().Before(deadline); time.Sleep(again) {
		pid, err := reap.EndedInGroup(z.process.Pid)
		switch {
		case err == unix.ECHILD: // nobody is left in the group
			return nil
		case err != nil && err != unix.EINTR:
			return os.NewSyscallError("waitid", err)
		case pid != 0 && !z.children.has(pid):
			_, err = unix.Wait4(pid, nil, 0, nil) // at once: it has ended
			return os.NewSyscallError("wait4", err)
		}
	}
	return errLost
}
