package jail

import (
	"context"
	"errors"
	"os"

	"gaol/jail/enter"
	"gaol/jail/zygote"
)

// fork has a zygote fork the process.
func (p *Process) fork(ctx context.Context, c *Command, in *groups) error {
	child, err := c.Zygote.Fork(ctx, p.entry(c, in), program(c))
	if err != nil {
		return forkError(c, err)
	}
	p.first = child
	return nil
}

// oomScore makes guests the first to be killed when the machine is short of memory.
// Processes that the entry program starts get the same by enter.OOMScore.
const oomScore = 1000

func (p *Process) entry(c *Command, in *groups) *zygote.Entry {
	filter := p.jail.filter(c)
	return &zygote.Entry{
		JoinFiles:  in.join,
		Cgroup:     in.born,
		Jail:       p.jail.pidfd,
		OOMScore:   oomScore,
		UID:        GuestUID,
		GID:        GuestGID,
		Limits:     rlimits(c),
		Filter:     filter.Program,
		OnListener: p.listening(filter),

		Ruleset:      c.Ruleset,
		RulesetFlags: c.RulesetFlags,
	}
}

func program(c *Command) *zygote.Program {
	return &zygote.Program{
		Args:     append([]string{c.Path}, c.Args...),
		Script:   c.Script,
		Env:      c.Env,
		Dir:      c.Dir,
		Terminal: c.Terminal,
		Files:    append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Files...),
	}
}

func forkError(c *Command, err error) error {
	failed, ok := errors.AsType[*enter.StepError](err)
	switch {
	case !ok:
		return stepError("fork", c.Path, err)
	case failed.Step == "chdir":
		return stepError(failed.Step, c.Dir, failed.Err)
	}
	return stepError(failed.Step, c.Path, failed.Err)
}
