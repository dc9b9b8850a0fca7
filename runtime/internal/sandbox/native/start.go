package native

import (
	"context"
	"errors"

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
	j.Parked = s.takeParked(c)
	p, err := s.jail.Start(ctx, j)
	if err != nil {
		return nil, err
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
		j.Zygote = s.zygotes.Pool(c.HeapMiB)
	}
	return j
}

// parked is a process that was started in advance, and the rules that it has.
type parked struct {
	*jail.Parked
	rules *sandbox.Rules
}

// Prepare implements sandbox.Sandbox.
func (s *Sandbox) Prepare(ctx context.Context, c *sandbox.Command) error {
	if s.zygotes == nil {
		return errors.ErrUnsupported
	}
	p, err := s.jail.Park(ctx, s.command(c))
	if err == nil {
		s.parked.Store(&parked{p, c.Rules})
	}
	return err
}

// takeParked returns the process of Prepare, if it can become that of c.
func (s *Sandbox) takeParked(c *sandbox.Command) *jail.Parked {
	p := s.parked.Swap(nil)
	if p == nil {
		return nil
	}
	if c.Rules == p.rules && (c.HeapMiB == 0 || c.HeapMiB == s.heapMiB) {
		return p.Parked
	}
	p.Kill() // otherwise this run could stop the process of a later run
	return nil
}

// Fresh implements sandbox.Sandbox.
func (s *Sandbox) Fresh() bool {
	p := s.parked.Load()
	return s.Alive() && (p == nil || p.Alive())
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
