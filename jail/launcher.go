package jail

import (
	"context"
	"errors"
	"os"

	"gaol/jail/enter"
	"gaol/jail/reap"
	"gaol/jail/step"
	"gaol/jail/zygote"
)

// A launcher starts the first process of a run in the jail.
type launcher interface {
	// launch sets p.first to a new process, in the cgroups of in, and returns when it runs
	// c's program. If it fails, it may have set p.first, which must be waited for.
	launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error

	// executes reports whether the process gets c's program by an execve(2).
	executes(c *Command) bool
}

func (c *Command) launcher() launcher {
	if c.Zygote != nil {
		return zygoteLauncher{c.Zygote}
	}
	return entryLauncher{}
}

// entryLauncher starts a process of its own: the entry program, which executes c's.
type entryLauncher struct{}

func (entryLauncher) executes(*Command) bool { return true }

func (entryLauncher) launch(_ context.Context, p *Process, c *Command, in *cgroupFiles) error {
	e, err := newEntry(append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Files...), c.Ruleset)
	if err != nil {
		return err
	}
	filter := p.jail.filter(c)
	list := enter.List{Steps: p.jail.enterSteps(e, c, in), Filter: filter.Program, OnListener: p.onListener(filter)}
	return e.run(p.jail.program, list, func(child *reap.Child) error {
		p.first = child
		return nil
	})
}

// zygoteLauncher forks a zygote. The child enters the jail, and runs c's script or executes
// c's program.
type zygoteLauncher struct{ pool *zygote.Pool }

func (zygoteLauncher) executes(c *Command) bool { return c.Script == 0 }

func (l zygoteLauncher) launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error {
	child, err := l.pool.Fork(ctx, p.zygoteEntry(c, in), zygoteProgram(c))
	if err != nil {
		return forkError(c, err)
	}
	p.first = child
	return nil
}

// oomScore makes the kernel kill guests first when the machine is short of memory. The
// entry program sets the same by enter.OOMScore.
const oomScore = 1000

func (p *Process) zygoteEntry(c *Command, in *cgroupFiles) *zygote.Entry {
	filter := p.jail.filter(c)
	return &zygote.Entry{
		JoinFiles:  in.join,
		Cgroup:     in.startIn,
		Jail:       p.jail.pidfd,
		OOMScore:   oomScore,
		UID:        GuestUID,
		GID:        GuestGID,
		Limits:     rlimits(c),
		Filter:     filter.Program,
		OnListener: p.onListener(filter),

		Ruleset:      c.Ruleset,
		RulesetFlags: c.RulesetFlags,
	}
}

func zygoteProgram(c *Command) *zygote.Program {
	return &zygote.Program{
		Args:     append([]string{c.Path}, c.Args...),
		Script:   c.Script,
		Env:      c.Env,
		Dir:      c.Dir,
		Terminal: c.Terminal,
		Files:    append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Files...),
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
