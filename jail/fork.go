package jail

import (
	"context"
	"errors"

	"gaol/jail/step"
	"gaol/jail/zygote"
)

// fork sets p.first to a child of a zygote, which enters the jail and runs the program. If
// that is nil, the child waits for it.
func (p *Process) fork(ctx context.Context, c *Command, in *cgroupFiles, program *zygote.Program) (*zygote.Child, error) {
	child, err := c.Zygote.Fork(ctx, &zygote.Entry{
		JoinFiles:  in.join,
		Cgroup:     in.startIn,
		Jail:       p.jail.pidfd,
		UID:        GuestUID,
		GID:        GuestGID,
		Limits:     rlimits(c),
		Filter:     c.Filter.Program,
		OnListener: p.onListener(c.Filter),

		Ruleset:      c.Ruleset,
		RulesetFlags: c.RulesetFlags,
	}, program)
	if err != nil {
		return nil, forkError(c, err)
	}
	p.first = child
	return child, nil
}

func zygoteProgram(c *Command) *zygote.Program {
	return &zygote.Program{
		Args:     append([]string{c.Path}, c.Args...),
		Script:   c.Script,
		Env:      c.Env,
		Dir:      c.Dir,
		Terminal: c.Terminal,
		Files:    c.files(),
	}
}

// forkError adds the target to a failed step of a zygote or its child.
func forkError(c *Command, err error) error {
	failed, ok := errors.AsType[*StepError](err)
	switch {
	case !ok:
		return step.Wrap("fork", c.Path, err)
	case failed.Target != "":
		return err
	case failed.Step == "chdir":
		return step.Wrap(failed.Step, c.Dir, failed.Err)
	}
	return step.Wrap(failed.Step, c.Path, failed.Err)
}

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
		child, err = p.fork(ctx, &c, in, nil)
		return err
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
