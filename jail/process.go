package jail

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/reap"
)

// Process is a process that Start made, and all that descends from it.
type Process struct {
	jail   *Jail
	group  *cgroup.Group
	limits cgroup.Limits
	first  firstProcess // nil before it is made

	guestPID int // before anybody else has the process

	parkedCPU atomic.Int64 // nanoseconds that it had used before it got its program

	hearing hearing
	routes  routeSockets // used by hearing alone

	uncharged atomic.Bool // why memoryWatch killed it

	kill   sync.Once
	killed chan struct{} // closed by Kill
	done   chan struct{}
	exit   Exit
	err    error
}

// firstProcess is what has to be waited for: a child of the host's, whichever way
// it was started.
type firstProcess interface {
	PID() int
	Signal(s syscall.Signal, group bool) error
	Wait() (reap.Exit, error)
}

// Exit is how a process ended and what its group used.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it

	// Uncharged says that it was killed for holding too much of the kernel's memory that
	// no cgroup is charged for: file locks, or what sockets hold.
	Uncharged bool
	Usage     cgroup.Usage
}

// PID is the process's, as the host numbers it.
func (p *Process) PID() int { return p.first.PID() }

// GuestPID is the process's, as those in the jail number it.
func (p *Process) GuestPID() int { return p.guestPID }

// Signal sends a signal to the process, or to all of the process group that it leads.
// The error is os.ErrProcessDone once it has ended and was waited for. Its other
// descendants get none: [Process.Kill] ends them all.
func (p *Process) Signal(s syscall.Signal, group bool) error {
	err := p.first.Signal(s, group)
	if errors.Is(err, unix.ESRCH) { // it has ended, and so has its group
		err = os.ErrProcessDone
	}
	return err
}

// Done is closed when the process has ended, nothing of its group is left and
// its cgroup is removed, but for what the next one of the jail takes over.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and says how the process ended. An error means that its
// group could not be killed, read or removed.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Kill kills the process and all that descends from it. It does not wait.
func (p *Process) Kill() { p.kill.Do(func() { close(p.killed) }) }

// killer does what Kill asks for, until the process is done: one that is just
// being started may still bring others into the group.
func (p *Process) killer() {
	const again = 5 * time.Millisecond
	select {
	case <-p.done:
		return
	case <-p.killed:
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		_ = p.group.Kill(ctx) // finish reports what can't be killed
		cancel()
		select {
		case <-p.done:
			return
		case <-time.After(again):
		}
	}
}

// Usage is what the group has used so far; after the end, what Exit says.
func (p *Process) Usage() (cgroup.Usage, error) {
	usage, err := p.group.Usage()
	if err != nil { // mostly, its end has removed the group
		select {
		case <-p.done:
			return p.exit.Usage, p.err
		case <-time.After(killTimeout):
			return usage, err
		}
	}
	usage.CPU -= time.Duration(p.parkedCPU.Load())
	return usage, nil
}

// CPU is the processor time that the group has used so far.
func (p *Process) CPU() (time.Duration, error) {
	usage, err := p.group.Usage()
	return usage.CPU - time.Duration(p.parkedCPU.Load()), err
}

// reap waits for the process, ends what it left running, and accounts.
func (p *Process) reap() {
	defer p.leave()
	uncharged.add(p)
	defer uncharged.remove(p)
	p.waitFirst()
	p.exit.Usage, p.err = p.finish()
	p.exit.Uncharged = p.uncharged.Load()
}

// waitFirst waits for the process itself, whose parent is this one.
func (p *Process) waitFirst() {
	exit, err := p.first.Wait()
	p.exit.Code, p.exit.Signal, p.err = exit.Code, exit.Signal, stepError("wait", "", err)
}

// finish empties the group, reads what it used and removes it.
func (p *Process) finish() (cgroup.Usage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	killErr := stepError("kill", p.group.Path(), p.group.Kill(ctx))
	usage, usageErr := p.group.Usage()
	usage.CPU -= time.Duration(p.parkedCPU.Load())
	p.hearing.end()
	p.routes.close()
	return usage, errors.Join(p.err, killErr,
		stepError("read", "usage", usageErr),
		stepError("remove", p.group.Path(), p.jail.pool.Delete(p.group)))
}

// abandon undoes a start that failed half-way.
func (p *Process) abandon() error {
	if p.group == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	err := p.group.Kill(ctx)
	if p.first != nil {
		_, _ = p.first.Wait()
	}
	p.hearing.end()
	p.routes.close()
	return errors.Join(err, p.jail.pool.Delete(p.group))
}
