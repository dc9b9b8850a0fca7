package native

import (
	"context"
	"errors"
	"net"

	"gaol/jail"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/mounts"
	"gaol/jail/oci"
	"gaol/jail/seccomp"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

// Sandbox is a jail, whose methods implement most of sandbox.Sandbox.
type Sandbox struct {
	*jail.Jail // nil before it is made
	spec       sandbox.Spec
	zygotes    *zygoteSet // nil without Spec.Warm
	audit      *auditLog  // nil without Spec.AuditDenials
	rules      *rules     // of Spec.Plan
	parking    parking[*jail.Parked]
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// OCI is an OCI runtime.
type OCI = oci.Runtime

// New creates a jail, which is a container if runtime is not nil; spec then has no Warm. The caller
// closes the sources of the mounts.
func New(ctx context.Context, spec sandbox.Spec, runtime *OCI) (*Sandbox, error) {
	s := &Sandbox{spec: spec}
	if err := s.open(ctx, runtime); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sandbox) open(ctx context.Context, runtime *OCI) (err error) {
	if s.spec.AuditDenials {
		if s.audit, err = openAudit(); err != nil {
			return &sandbox.FieldError{Field: "AuditDenials", Err: err}
		}
	}
	if s.spec.Warm != nil { // it starts while the jail is made
		s.zygotes = acquireZygotes(s.spec.Warm)
	}
	j, err := s.jailSpec()
	if err != nil {
		return err
	}
	j.OCI = runtime
	s.Jail, err = jail.Create(ctx, j)
	if err != nil {
		return err
	}
	if s.rules, err = s.load(s.spec.Plan); err == nil && s.spec.Park > 0 {
		s.parking.start, s.parking.mayStart, s.parking.most = s.park, hasIdleProcessor, s.spec.Park
	}
	return err
}

func (s *Sandbox) jailSpec() (jail.Spec, error) {
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		return jail.Spec{}, err
	}
	net := s.spec.Plan.Net
	return jail.Spec{
		Tree:          tree(&s.spec),
		Limits:        s.spec.Limits,
		HideProcesses: s.spec.Plan.NoInspect,
		Loopback:      net.Inet,
		Identified:    net.Egress != nil,
		Hostname:      s.spec.Hostname,
		Reaper:        []string{enter.Reaper, "-P"},
		Filter:        filter,
		CgroupParent:  s.spec.CgroupParent,
		StateDir:      sandbox.StateDir,
	}, nil
}

// Close implements sandbox.Sandbox.
func (s *Sandbox) Close() (err error) {
	s.parking.close()
	if s.Jail != nil {
		err = s.Jail.Close()
	}
	s.zygotes.release() // nothing that needs a zygote can start any more
	s.rules.close()
	s.audit.close()
	return err
}

// Missing implements sandbox.Sandbox.
func (s *Sandbox) Missing() []string { return s.rules.missing }

// Warm implements sandbox.Sandbox.
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

// Files implements sandbox.Sandbox.
func (s *Sandbox) Files() (*hostfs.FS, error) {
	root, err := s.Root()
	if err != nil {
		return nil, err
	}
	first, count := s.HostIDs()
	files, err := hostfs.New(root, hostfs.Options{
		UID: first + mounts.GuestUID, GID: first + mounts.GuestGID,
		IDs:    hostfs.IDs{First: uint32(first), Count: uint32(count)},
		Closed: sandbox.ErrClosed,
	})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return files, nil
}

// resolvConf is the guest's /etc/resolv.conf.
var resolvConf = []byte("nameserver " + gateway.Resolver.String() + "\n")

// OpenGateway implements sandbox.Sandbox.
func (s *Sandbox) OpenGateway() (*sandbox.Gateway, error) {
	plan := s.spec.Plan.Net
	c := gateway.Config{UDP: plan.UDP, Host: plan.Host}
	for _, r := range plan.Local {
		c.TCP = append(c.TCP, gateway.PortRange(r))
	}
	g, err := s.Jail.OpenGateway(c)
	if err != nil {
		return nil, err
	}
	return &sandbox.Gateway{
		TCP: append([]*net.TCPListener{g.TCP}, g.Host...), DNS: g.DNS, DNSTCP: g.DNSTCP, Resolver: gateway.Resolver,
		Owner: g.Owner, Close: g.Close,
	}, nil
}
