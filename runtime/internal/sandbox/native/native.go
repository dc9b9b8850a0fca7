package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"gaol/jail"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/hostcommand"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/seccomp"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

// Sandbox is a jail and what its processes need.
type Sandbox struct {
	*jail.Jail // nil before it is made
	spec       *sandbox.Spec
	zygotes    *zygoteSet // nil without Spec.Warm
	audited    bool       // the audit log is open, for Spec.AuditDenials
	rules      *rules     // of Spec.Plan
	parking    parking[*jail.Parked]
}

// Prepare does the work of the first sandbox that no option changes: packages seccomp and jail keep the results.
func Prepare() {
	_, _ = seccomp.Compile(nil, false)
	_ = jail.CheckSocketLists()
}

// New creates a sandbox. The caller closes the sources of the mounts.
func New(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	s := &Sandbox{spec: spec}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sandbox) open(ctx context.Context) (err error) {
	if err := s.checkKernel(kernel.Probe()); err != nil {
		return err
	}
	if s.spec.AuditDenials {
		if err = openAudit(); err != nil {
			return err
		}
		s.audited = true
	}
	if s.spec.Warm != nil { // it starts while the jail is made
		s.zygotes = acquireZygotes(s.spec.Warm)
	}
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		return err
	}
	go func() { _, _ = s.compile(s.spec.Plan) }() // load finds it in the cache of package seccomp
	plan := s.spec.Plan
	s.Jail, err = jail.Create(ctx, jail.Spec{
		Tree: treeOf(s.spec), Limits: s.spec.Limits, Hostname: s.spec.Hostname, Filter: filter,
		HideProcesses: plan.NoInspect, Loopback: plan.Net.Inet, Identified: plan.Net.Egress != nil,
		Reaper: []string{enter.Reaper, "-P"}, AllowDegraded: s.degraded(), OCI: s.spec.OCI, CgroupParent: s.spec.CgroupParent, StateDir: sandbox.StateDir,
	})
	if err != nil {
		return err
	}
	if s.rules, err = s.load(plan); err == nil && s.spec.Park > 0 {
		s.parking.start, s.parking.mayStart, s.parking.most = s.park, hasIdleProcessor, s.spec.Park
	}
	return err
}

// checkKernel returns an error if the kernel lacks more than Spec.Without allows, or has faults. Without that, package jail decides.
func (s *Sandbox) checkKernel(lacking kernel.Profile) error {
	if s.spec.Without == nil {
		return nil
	}
	if err := kernel.CheckFaults(); err != nil || s.spec.AllowDegraded {
		return err
	}
	for _, f := range lacking {
		if !s.spec.Without.Lacks(f) {
			return fmt.Errorf("the kernel of the sandbox lacks %s: %w", f, errors.ErrUnsupported)
		}
	}
	return nil
}

// degraded reports whether the jail does without features that the kernel lacks.
func (s *Sandbox) degraded() bool { return s.spec.AllowDegraded || s.spec.Without != nil }

// Close implements sandbox.Sandbox.
func (s *Sandbox) Close() (err error) {
	s.parking.setClosed(true)
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
	return s.zygotes.pool(nil).Wait(ctx)
}

// SetPaused implements sandbox.Sandbox.
func (s *Sandbox) SetPaused(ctx context.Context, paused bool) error {
	s.parking.setClosed(paused)
	return s.Jail.SetPaused(ctx, paused)
}

// Files implements sandbox.Sandbox.
func (s *Sandbox) Files() (hostfs.Files, error) {
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

// OpenGateway implements sandbox.Sandbox.
func (s *Sandbox) OpenGateway() (*sandbox.Gateway, error) {
	if s.spec.Without == nil && kernel.Probe().Lacks(kernel.SocketLookup) { // relays of egress accept connections by descriptors alone
		return nil, fmt.Errorf("the kernel lacks %s, which external hosts need: %w", kernel.SocketLookup, errors.ErrUnsupported)
	}
	plan := s.spec.Plan.Net
	c := gateway.Config{UDP: plan.UDP, Host: plan.Host}
	for _, r := range plan.Local {
		c.TCP = append(c.TCP, gateway.PortRange(r))
	}
	g, err := s.Jail.OpenGateway(c)
	if err != nil {
		return nil, err
	}
	return &sandbox.Gateway{TCP: g.Listeners(), DNS: g.DNS, DNSTCP: g.DNSTCP, Resolver: gateway.Resolver, Owner: g.Owner, Close: g.Close}, nil
}

// Dial implements sandbox.Sandbox.
func (s *Sandbox) Dial(ctx context.Context, to netip.AddrPort, buffer int) (sandbox.Conn, error) {
	c, err := s.Jail.Dial(ctx, to, buffer)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// terminal implements sandbox.Terminal by the host's end of a jail's terminal.
type terminal struct {
	*os.File
	ends *jail.Terminal
}

// OpenTerminal implements sandbox.Sandbox.
func (s *Sandbox) OpenTerminal(size sandbox.TerminalSize) (sandbox.Terminal, error) {
	ends, err := s.Jail.OpenTerminal(size)
	if err != nil {
		return nil, err
	}
	return terminal{ends.Host, ends}, nil
}

func (t terminal) Guest() sandbox.Stream                  { return t.ends.Guest }
func (t terminal) EndOutput()                             { t.ends.Kept.Close() }
func (t terminal) Resize(size sandbox.TerminalSize) error { return t.ends.Resize(size) }
func (t terminal) EndOfInput() (key byte, err error)      { return t.ends.EndOfInput() }

func (t terminal) Close() error { t.ends.Close(); return nil } // of all ends

// filesOf returns the files of a command.
//
// Preconditions: they are files of this process.
func filesOf(streams []io.ReadWriteCloser) []*os.File {
	list := make([]*os.File, len(streams))
	for i, s := range streams {
		list[i] = s.(*os.File)
	}
	return list
}

// openCall opens the pipes of a call, which the handler takes over unless it returns an error.
func openCall(name string, handler func(string, sandbox.CommandCall) error) (hostcommand.Ends, error) {
	call, guest, err := hostcommand.Open()
	if err != nil {
		return guest, err
	}
	if err = handler(name, call); err != nil {
		call.Close()
		guest.Close()
	}
	return guest, err
}
