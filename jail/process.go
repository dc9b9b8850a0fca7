package jail

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/kernfile"
	"gaol/jail/reap"
	"gaol/jail/step"
)

// Process is a process that Start started, with all its descendants.
type Process struct {
	jail   *Jail
	group  *cgroup.Group
	limits cgroup.Limits
	first  firstProcess // nil before it is started

	guestPID int // set before Start returns

	runs      atomic.Bool  // a program; it did not wait for one, or no longer
	parkedCPU atomic.Int64 // nanoseconds that it used before it got its program

	notify notifyHandler
	routes routeSockets // used by notify only

	uncharged atomic.Bool // memoryWatch killed it

	kill   sync.Once
	killed chan struct{} // closed by Kill
	done   chan struct{}
	exit   Exit
	err    error
}

// firstProcess is a child of the host that must be waited for. Each launcher has its own
// implementation.
type firstProcess interface {
	PID() int
	Signal(s syscall.Signal, group bool) error
	Wait() (reap.Exit, error)
}

// Exit describes how a process ended and what its cgroup used.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it

	// Uncharged reports that it was killed because it held too much kernel memory that is
	// not charged to any cgroup: file locks, or what sockets hold.
	Uncharged bool
	Usage     cgroup.Usage
}

// PID returns the process's pid in the host's namespace.
func (p *Process) PID() int { return p.first.PID() }

// GuestPID returns the process's pid in the jail.
func (p *Process) GuestPID() int { return p.guestPID }

// Signal sends a signal to the process or, with group, to all of the process group that it
// leads. It returns os.ErrProcessDone if the process has ended and was waited for. Other
// descendants get no signal: [Process.Kill] kills them all.
func (p *Process) Signal(s syscall.Signal, group bool) error {
	err := p.first.Signal(s, group)
	if errors.Is(err, unix.ESRCH) { // it has ended, and so has its group
		err = os.ErrProcessDone
	}
	return err
}

// Done is closed when the process has ended, nothing of its cgroup is left and the cgroup
// is removed, or kept for reuse by the next process of the jail.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns how the process ended. An error means that its cgroup
// could not be killed, read or removed.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Kill kills the process and all its descendants. It does not wait.
func (p *Process) Kill() { p.kill.Do(func() { close(p.killed) }) }

// killWhenAsked kills the cgroup after Kill was called, until the process is done: while a
// process is being started, more may join its cgroup.
func (p *Process) killWhenAsked() {
	const interval = 5 * time.Millisecond
	select {
	case <-p.done:
		return
	case <-p.killed:
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		_ = p.group.Kill(ctx) // finish reports the error
		cancel()
		select {
		case <-p.done:
			return
		case <-time.After(interval):
		}
	}
}

// Usage returns the cgroup's usage so far; after the end, the same as Exit.
func (p *Process) Usage() (cgroup.Usage, error) {
	usage, err := p.usage()
	if err != nil { // in most cases the cgroup was removed, as the process has ended
		select {
		case <-p.done:
			return p.exit.Usage, p.err
		case <-time.After(killTimeout):
		}
	}
	return usage, err
}

// CPU returns the processor time that the cgroup has used so far.
func (p *Process) CPU() (time.Duration, error) {
	usage, err := p.usage()
	return usage.CPU, err
}

func (p *Process) usage() (cgroup.Usage, error) {
	usage, err := p.group.Usage()
	usage.CPU -= time.Duration(p.parkedCPU.Load())
	return usage, err
}

// reap waits for the process, kills the rest of its cgroup, and records the exit.
func (p *Process) reap() {
	defer p.leave()
	uncharged.add(p)
	defer uncharged.remove(p)
	exit, err := p.first.Wait()
	p.exit.Code, p.exit.Signal = exit.Code, exit.Signal
	usage, failed := p.finish()
	p.exit.Usage, p.err = usage, errors.Join(step.Wrap("wait", "", err), failed)
	p.exit.Uncharged = p.uncharged.Load()
}

// finish kills all processes in the cgroup, reads its usage and removes it.
func (p *Process) finish() (cgroup.Usage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	killErr := step.Wrap("kill", p.group.Path(), p.group.Kill(ctx))
	usage, usageErr := p.group.Usage()
	p.notify.close()
	p.routes.close()
	removeErr := p.jail.pool.Delete(p.group, usage)
	usage.CPU -= time.Duration(p.parkedCPU.Load())
	return usage, errors.Join(killErr,
		step.Wrap("read", "usage", usageErr),
		step.Wrap("remove", p.group.Path(), removeErr))
}

// abandon undoes a start that failed.
func (p *Process) abandon() error {
	if p.group == nil {
		return nil
	}
	p.Kill()
	if p.first != nil {
		_, _ = p.first.Wait()
	}
	_, err := p.finish()
	return err
}

// guestPID returns a process's pid in the innermost of its pid namespaces, which the kernel
// lists last, or 0 if the process does not exist.
//
// Preconditions: the process has not been waited for, so its pid is still its own.
func guestPID(pid int) int {
	text, err := kernfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(text), "\nNSpid:") // line breaks in the name, which the guest can set, are escaped: proc(5)
	line, _, _ = strings.Cut(line, "\n")
	n, _ := strconv.Atoi(line[strings.LastIndexByte(line, '\t')+1:])
	return n
}
