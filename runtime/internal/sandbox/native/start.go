package native

import (
	"context"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/seccomp/notify"
	"gaol/runtime/internal/sandbox"
)

// process implements sandbox.Process.
type process struct {
	*jail.Process
	release func()
}

// Start implements sandbox.Sandbox.
func (s *Sandbox) Start(ctx context.Context, c *sandbox.Command) (sandbox.Process, error) {
	j := s.command(c)
	var p *jail.Process
	var err error
	if j.Parked, err = s.takeParked(ctx, c); err == nil {
		p, err = s.jail.Start(ctx, j)
	}
	if err != nil {
		s.parking.end()
		return nil, err
	}
	if s.parking.start != nil {
		go func() {
			<-p.Done()
			s.parking.end()
		}()
	}
	return &process{p, s.audit.watch(p.PID(), c.Denied)}, nil // the ID is known only now
}

// command returns the jail's form of a command.
func (s *Sandbox) command(c *sandbox.Command) jail.Command {
	j := jail.Command{
		Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir,
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Files: c.Files,
		Terminal: c.Terminal,
		Script:   c.Script,
		Limits:   cgroup.Limits(c.Limits), OpenFiles: c.OpenFiles, FileSize: c.FileSize,
		Connect: c.Connect, OnCgroup: c.OnOwner, OnCommand: c.OnCommand,
	}
	if c.Denied != nil {
		j.Refused = func(call notify.Call) { c.Denied(refused(call)) }
	}
	s.apply(c.Rules, &j)
	if s.zygotes != nil {
		j.Zygote = s.zygotes.pool(c.HeapMiB)
	}
	return j
}

// Wait implements sandbox.Process.
func (p *process) Wait() (sandbox.Exit, error) {
	e, err := p.Process.Wait()
	return sandbox.Exit{Code: e.Code, Signal: e.Signal, Uncharged: e.Uncharged, Usage: sandbox.Usage(e.Usage)}, err
}

// Usage implements sandbox.Process.
func (p *process) Usage() (sandbox.Usage, error) {
	u, err := p.Process.Usage()
	return sandbox.Usage(u), err
}

// Release implements sandbox.Process.
func (p *process) Release() { p.release() }
