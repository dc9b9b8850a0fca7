package sandbox

import (
	"context"

	"gaol/jail"
	"gaol/jail/seccomp/notify"
	"gaol/policy"
)

// Command is a process to start.
type Command struct {
	// Command is the process without its limits and what enforces its permissions, which Start adds. Script is a
	// hint: a sandbox without Spec.Warm executes Args.
	jail.Command
	HeapMiB int64 // size of the heap of Script, or 0 for that of Spec.Warm

	// File, if not nil, is a file that the guest can read, and not change, until the process ends.
	File *ProgramFile

	Plan *policy.Plan // nil: that of Spec

	// Denied, if not nil, is called for each operation that the plan denies, if the sandbox learns of
	// it, from any goroutine: from before Start returns until Process.Wait does. The target is the guest's text, of any
	// size and content. There is no rule and no count.
	Denied func(policy.Denial)
}

// ProgramFile is a file in a new folder of mounts.ProgramDir. Beside it is a link node_modules to Packages.
type ProgramFile struct {
	Folder, Name string
	Text         []byte
	Packages     string
}

// Process is a process that Start started, with all its descendants.
type Process struct {
	*jail.Process
	undo []func() // what Start has made for it
}

// Start starts a process and returns when its program runs. The caller closes its own
// copies of the files. Once ctx is done, the process is killed and the error is that of ctx.
// If the program does not exist, the error wraps fs.ErrNotExist.
func (s *Sandbox) Start(ctx context.Context, c *Command) (*Process, error) {
	p := &Process{}
	if err := s.start(ctx, c, p); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (s *Sandbox) start(ctx context.Context, c *Command, p *Process) (err error) {
	if f := c.File; f != nil { // before load, whose rules name the file
		if err := s.AddProgram(f.Folder, jail.File{Path: f.Name, Mode: 0o444, Data: f.Text}, f.Packages); err != nil {
			return err
		}
		folder := f.Folder                                              // not the text
		p.undo = append(p.undo, func() { _ = s.RemoveProgram(folder) }) // fails only if the jail is closed
	}
	r := s.rules
	if c.Plan != nil {
		if r, err = s.load(c.Plan); err != nil {
			return err
		}
		defer r.close() // the process is restricted by then
	}
	s.restrict(c, r)
	c.Parked = s.takeParked(c)
	if p.Process, err = s.Jail.Start(ctx, c.Command); err != nil {
		s.parking.end()
		return err
	}
	if s.parking.start != nil {
		go func() {
			<-p.Done()
			s.parking.end()
		}()
	}
	if s.audit != nil {
		p.undo = append(p.undo, s.audit.watch(p.PID(), c.Denied)) // the ID is known only now
	}
	return nil
}

// restrict adds limits and rules to a command.
func (s *Sandbox) restrict(c *Command, r *rules) {
	c.Limits, c.OpenFiles, c.FileSize = s.spec.Limits, s.spec.OpenFiles, s.spec.FileSize
	c.Filter, c.Ruleset, c.RulesetFlags, c.NoLocalhost = r.filter, r.ruleset, r.flags, r.noLocalhost
	if denied := c.Denied; denied != nil {
		c.Refused = func(call notify.Call) { denied(refused(call)) }
	}
	if s.zygotes != nil {
		c.Zygote = s.zygotes.pool(c.HeapMiB)
	}
}

// Wait waits for Done and for late reports of denials, and returns how the process ended. It
// must be called once.
func (p *Process) Wait() (jail.Exit, error) {
	defer p.release()
	return p.Process.Wait()
}

func (p *Process) release() {
	for _, undo := range p.undo {
		undo()
	}
}
