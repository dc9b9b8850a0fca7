package native

import (
	"context"

	"gaol/jail"
	"gaol/jail/hostcommand"
	"gaol/jail/seccomp/notify"
	"gaol/runtime/internal/sandbox"
)

// process implements sandbox.Process.
type process struct {
	*jail.Process
	undo []func() // what Start has made for it
}

// Start implements sandbox.Sandbox.
func (s *Sandbox) Start(ctx context.Context, c *sandbox.Command) (sandbox.Process, error) {
	p := &process{}
	if err := s.start(ctx, c, p); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func (s *Sandbox) start(ctx context.Context, c *sandbox.Command, p *process) (err error) {
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
	j := s.command(c, r)
	if j.Parked, err = s.takeParked(ctx, c); err == nil {
		p.Process, err = s.Jail.Start(ctx, j)
	}
	if err != nil {
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

// command returns the jail's form of a command.
func (s *Sandbox) command(c *sandbox.Command, r *rules) jail.Command {
	j := jail.Command{
		Program: c.Program, FromRoot: c.FromRoot,
		Limits: s.spec.Limits, OpenFiles: s.spec.OpenFiles, FileSize: s.spec.FileSize,
		Connect: c.Connect, OnCgroup: c.OnOwner,
		Filter: r.filter, Ruleset: r.ruleset, RulesetFlags: r.flags, NoLocalhost: r.noLocalhost,
	}
	if c.Denied != nil {
		j.Refused = func(call notify.Call) { c.Denied(refused(call)) }
	}
	if c.OnCommand != nil {
		j.OnCommand = func(name string) (hostcommand.Ends, error) { return openCall(name, c.OnCommand) }
	}
	if s.zygotes != nil {
		j.Zygote = s.zygotes.pool(c.HeapMiB)
	}
	return j
}

// openCall opens the pipes of a call, of which the host's ends are passed to take.
func openCall(name string, take func(string, sandbox.CommandCall) error) (hostcommand.Ends, error) {
	call, guest, err := hostcommand.Open()
	if err != nil {
		return guest, err
	}
	if err := take(name, call); err != nil {
		call.Close()
		guest.Close()
		return hostcommand.Ends{}, err
	}
	return guest, nil
}

// Wait implements sandbox.Process.
func (p *process) Wait() (sandbox.Exit, error) {
	defer p.release()
	return p.Process.Wait()
}

func (p *process) release() {
	for _, undo := range p.undo {
		undo()
	}
}
