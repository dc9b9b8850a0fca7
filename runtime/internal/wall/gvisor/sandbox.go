package gvisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/mounts"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/sandbox/remote"
)

// Sandbox is a sandbox inside gVisor.
type Sandbox struct {
	sandbox.Sandbox
	machine *machine
	spec    *sandbox.Spec

	mu   sync.Mutex // held while limits are changed
	runs int        // processes of Start that have not ended
}

// New makes a sandbox inside gVisor.
func New(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	m, err := start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start gVisor: %w", err)
	}
	inside := *spec
	inside.DiskDir, inside.Without = "", lacks // there is no disk
	inside.Mounts = slices.Clone(spec.Mounts)
	for i := range inside.Mounts {
		inside.Mounts[i].Owner = new(mounts.GuestOwner(jail.FirstID))
	}
	s, err := remote.New(ctx, &remote.Machine{Conn: m.conn, Place: m.place, End: m.end}, &inside)
	if err != nil {
		return nil, m.output.Explain("gVisor", err) // remote has called end
	}
	return &Sandbox{Sandbox: s, machine: m, spec: spec}, nil
}

// Start implements sandbox.Sandbox.
func (s *Sandbox) Start(ctx context.Context, c *sandbox.Command) (sandbox.Process, error) {
	if err := s.add(1); err != nil {
		return nil, err
	}
	p, err := s.Sandbox.Start(ctx, c)
	if err != nil {
		s.leave()
		return nil, err
	}
	return &process{p, s}, nil
}

// leave counts the end of a process.
func (s *Sandbox) leave() {
	_ = s.add(-1) // the memory of an ended run may be freed late, and the limit of the next one replaces this one
}

// add adds processes, and changes the limits of the host's cgroup accordingly.
func (s *Sandbox) add(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs += n
	return s.machine.group.SetLimits(limits(s.spec, s.runs))
}

// process is a process of Start.
type process struct {
	sandbox.Process
	sandbox *Sandbox
}

// Flush implements sandbox.Flusher.
func (p *process) Flush() {
	if f, ok := p.Process.(sandbox.Flusher); ok {
		f.Flush()
	}
}

// Wait implements sandbox.Process. If the memory of the whole sandbox has run out, the process has ended for that reason.
func (p *process) Wait() (sandbox.Exit, error) {
	exit, err := p.Process.Wait()
	p.sandbox.leave()
	if err == nil {
		return exit, nil
	}
	u, failed := p.sandbox.machine.group.Usage()
	if failed != nil || u.OOMKills == 0 {
		return exit, err
	}
	return sandbox.Exit{Signal: syscall.SIGKILL, Usage: u}, nil
}

// Overhead of gVisor, the agent and zygotes.
const (
	overheadMemory = 256 << 20
	overheadPids   = 2048
)

// limits returns the limits of a sandbox with a number of runs. Without runs, it may still start a zygote.
func limits(spec *sandbox.Spec, runs int) cgroup.Limits {
	n := int64(max(1, runs))
	l := cgroup.Limits{
		Memory: overheadMemory + spec.Disk + n*spec.Limits.Memory,
		CPUs:   float64(n) * spec.Limits.CPUs,
		Pids:   overheadPids + n*spec.Limits.Pids,
	}
	if runs == 0 {
		l.CPUs = max(1, l.CPUs)
	}
	return l
}
