package jail

import (
	"context"
	"errors"

	"gaol/jail/step"
	"gaol/jail/zygote"
)

// Parked is a process that a zygote has forked in advance: it is in the jail, in a cgroup
// of its own, and waits for its program. Closing the jail ends it.
type Parked struct {
	process *Process
	child   *zygote.Child
}

// Park forks a process in advance, for one later Start with Command.Parked. c needs a
// Zygote. Its Limits, OpenFiles, FileSize, Filter and Ruleset apply now; the other fields
// are those of the later Command.
func (j *Jail) Park(ctx context.Context, c Command) (*Parked, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var child *zygote.Child
	p, err := j.begin(ctx, &c, func(p *Process, in *cgroupFiles) (err error) {
		child, err = c.Zygote.Park(ctx, p.zygoteEntry(&c, in))
		if err != nil {
			return forkError(&c, err)
		}
		p.first = child
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Parked{p, child}, nil
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

// Kill kills a process that is not needed any more.
func (k *Parked) Kill() { k.process.Kill() }

// run makes the parked process run c's program. The error is zygote.ErrEnded if it had
// ended before.
func (k *Parked) run(ctx context.Context, c *Command) (*Process, error) {
	p := k.process
	usage, err := p.group.Usage()
	if err != nil {
		p.Kill()
		return p, zygote.ErrEnded // its cgroup has been removed
	}
	p.parkedCPU.Store(int64(usage.CPU))
	if err := p.jail.chownPipes(c); err != nil {
		p.Kill()
		return p, step.Wrap("own", "pipes", err)
	}
	p.notify.expect(c)
	err = p.notify.startError(k.child.Run(ctx, zygoteProgram(c)))
	if err != nil && !errors.Is(err, zygote.ErrEnded) {
		p.Kill()
		return p, forkError(c, err)
	}
	return p, err
}
