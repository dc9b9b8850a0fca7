package jail

import (
	"context"
	"errors"

	"gaol/jail/zygote"
)

// Parked is a process that a zygote has forked ahead: it is in the jail, in a group
// of its own, and waits for its program. The jail's Close ends it.
type Parked struct {
	process *Process
	child   *zygote.Child
}

// Park forks a process ahead, for one later Start with Command.Parked. Of c, which
// needs a Zygote, the limits count now, and all else then.
func (j *Jail) Park(ctx context.Context, c Command) (*Parked, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := j.admit()
	if err != nil {
		return nil, err
	}
	inTime := context.AfterFunc(ctx, p.Kill)
	child, err := p.park(ctx, &c)
	if err != nil {
		err = errors.Join(err, p.abandon())
		p.leave()
	} else {
		p.guestPID = guestPID(p.first.PID())
		go p.reap()
	}
	if inTime() && err == nil {
		return &Parked{p, child}, nil
	}
	return nil, p.startError(ctx, &c, err)
}

func (p *Process) park(ctx context.Context, c *Command) (*zygote.Child, error) {
	own, in, err := p.prepare(c)
	if err != nil {
		return nil, err
	}
	defer own.close()
	child, err := c.Zygote.Park(ctx, p.entry(c, &in))
	if err != nil {
		return nil, forkError(c, err)
	}
	p.first = child
	return child, nil
}

// Alive reports whether the process still waits for its program.
func (k *Parked) Alive() bool {
	select {
	case <-k.process.done:
		return false
	default:
		return true
	}
}

// Kill ends the process, for which there is no program.
func (k *Parked) Kill() { k.process.Kill() }

// resume has the parked process become c's program. It reports false if it had ended
// before.
func (k *Parked) resume(ctx context.Context, c *Command) (p *Process, ok bool, err error) {
	p = k.process
	usage, err := p.group.Usage()
	if err != nil {
		p.Kill()
		return p, false, nil // its end has removed the group
	}
	p.parkedCPU.Store(int64(usage.CPU))
	if err := p.jail.own(c); err != nil {
		p.Kill()
		return p, true, stepError("own", "pipes", err)
	}
	p.hearing.expect(c)
	err = p.hearing.startError(k.child.Run(ctx, program(c)))
	if errors.Is(err, zygote.ErrEnded) {
		return p, false, nil
	}
	if err != nil {
		p.Kill()
		return p, true, forkError(c, err)
	}
	return p, true, nil
}
