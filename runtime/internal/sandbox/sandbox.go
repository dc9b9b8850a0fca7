package sandbox

import (
	"context"
	"errors"
	"time"

	"gaol/jail"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/mounts"
	"gaol/jail/seccomp"
	"gaol/policy"
	"gaol/vfs/hostfs"
)

// StateDir is the folder of the host in which active sandboxes are registered. Guests must not
// see it.
const StateDir = "/run/gaol"

// Spec describes a sandbox.
type Spec struct {
	// Spec is the jail without what the following fields determine. New adds that.
	jail.Spec

	UnixSockets bool // processes may make unix sockets with names

	// OpenFiles and FileSize bound each process, and the bytes of the longest file that it may write; 0: no
	// limit. Limits bound each Command's processes together.
	OpenFiles, FileSize int64

	Plan          *policy.Plan       // of Permissions, in World
	Permissions   policy.Permissions // complete
	World         policy.World
	AllowDegraded bool // omit rules that this machine cannot enforce, see Sandbox.Missing
	AuditDenials  bool // report what only the kernel's audit log has, see Command.Denied

	Warm *Warm // nil: each run starts a new Node

	// Park, if not 0, makes the sandbox start the process of the next Command in advance whenever its
	// last process has ended, while a processor is idle. The process waits for at most this long.
	Park time.Duration
}

// Sandbox is a jail and what its processes need. The caller closes what it has opened of the jail before the
// sandbox.
type Sandbox struct {
	*jail.Jail // nil before it is made
	spec       Spec
	zygotes    *zygoteSet // nil without Spec.Warm
	audited    bool       // the audit log is open, for Spec.AuditDenials
	rules      *rules     // of Spec.Plan
	parking    parking[*jail.Parked]
}

// New creates a sandbox. The caller closes the sources of the mounts.
func New(ctx context.Context, spec Spec) (*Sandbox, error) {
	s := &Sandbox{spec: spec}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sandbox) open(ctx context.Context) (err error) {
	if s.spec.AuditDenials {
		if err = openAudit(); err != nil {
			return err
		}
		s.audited = true
	}
	if s.spec.Warm != nil { // it starts while the jail is made
		s.zygotes = acquireZygotes(s.spec.Warm)
	}
	j := &s.spec.Spec
	if j.Filter, err = seccomp.Compile(nil, false); err != nil {
		return err
	}
	go func() { _, _ = seccomp.Compile(s.rows(s.spec.Plan), true) }() // load finds it in the cache of package seccomp
	j.HideProcesses, j.Loopback, j.Identified = s.spec.Plan.NoInspect, s.spec.Plan.Net.Inet, s.spec.Plan.Net.Egress != nil
	j.Reaper, j.StateDir = []string{enter.Reaper, "-P"}, StateDir
	s.spec.addPlan()
	if s.Jail, err = jail.Create(ctx, *j); err != nil {
		return err
	}
	if s.rules, err = s.load(s.spec.Plan); err == nil && s.spec.Park > 0 {
		s.parking.start, s.parking.mayStart, s.parking.most = s.park, hasIdleProcessor, s.spec.Park
	}
	return err
}

// Close kills all processes and removes the sandbox with its files. It returns when nothing
// is left.
func (s *Sandbox) Close() (err error) {
	s.parking.close()
	if s.Jail != nil {
		err = s.Jail.Close()
	}
	s.zygotes.release() // nothing that needs a zygote can start any more
	s.rules.close()
	if s.audited {
		closeAudit()
	}
	return err
}

// Missing describes the rules of Spec.Plan that are not enforced, with Spec.AllowDegraded.
func (s *Sandbox) Missing() []string { return s.rules.missing }

// Warm waits until what Spec.Warm describes is ready. With park it also starts the process of
// the first Command in advance.
func (s *Sandbox) Warm(ctx context.Context, park bool) error {
	switch {
	case park && s.zygotes == nil:
		return errors.ErrUnsupported
	case park:
		p, err := s.park(ctx)
		if err == nil {
			s.parking.put(p)
		}
		return err
	case s.zygotes == nil:
		return nil
	}
	return s.zygotes.pool(0).Wait(ctx)
}

// Files opens the tree, with the rights of the guest's user. Once it is closed, operations fail with jail.ErrClosed.
func (s *Sandbox) Files() (*hostfs.FS, error) {
	root, err := s.Root()
	if err != nil {
		return nil, err
	}
	first, count := s.HostIDs()
	files, err := hostfs.New(root, hostfs.Options{
		UID: first + mounts.GuestUID, GID: first + mounts.GuestGID,
		IDs:    hostfs.IDs{First: uint32(first), Count: uint32(count)},
		Closed: jail.ErrClosed,
	})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return files, nil
}

// OpenGateway redirects connections to external hosts to the caller. Spec.Plan must have
// Egress. It is called once, before Start.
func (s *Sandbox) OpenGateway() (*gateway.Gateway, error) {
	plan := s.spec.Plan.Net
	c := gateway.Config{UDP: plan.UDP, Host: plan.Host}
	for _, r := range plan.Local {
		c.TCP = append(c.TCP, gateway.PortRange(r))
	}
	return s.Jail.OpenGateway(c)
}
