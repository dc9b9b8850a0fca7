package native

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/gateway"
	"gaol/jail/mounts"
	"gaol/jail/oci"
	"gaol/jail/seccomp"
	"gaol/jail/zygote"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

// Sandbox is a jail.
type Sandbox struct {
	jail    *jail.Jail
	zygotes *zygoteSet // nil without Spec.Warm
	audit   *auditLog  // nil without Spec.AuditDenials

	net                             policy.Net
	unixSockets, commands, degraded bool
	heapMiB                         int64 // of Spec.Warm

	parking parking[parked]
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// OCI is an OCI runtime.
type OCI = oci.Runtime

// New creates a jail, which is a container if runtime is not nil; spec then has no Warm. The caller
// closes the sources of the mounts.
func New(ctx context.Context, spec *sandbox.Spec, runtime *OCI) (*Sandbox, error) {
	s := &Sandbox{net: spec.Net, unixSockets: spec.UnixSockets, commands: spec.Commands != nil, degraded: spec.AllowDegraded}
	if err := s.open(ctx, spec, runtime); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sandbox) open(ctx context.Context, spec *sandbox.Spec, runtime *OCI) (err error) {
	if spec.AuditDenials {
		if s.audit, err = openAudit(); err != nil {
			return &sandbox.FieldError{Field: "AuditDenials", Err: err}
		}
	}
	if w := spec.Warm; w != nil { // it starts while the jail is made
		s.heapMiB, s.zygotes = w.HeapMiB, acquireZygotes(spec.Image, w)
	}
	j, err := jailSpec(spec)
	if err != nil {
		return err
	}
	j.OCI = runtime
	s.jail, err = jail.Create(ctx, j)
	if errors.Is(err, jail.ErrNoCommands) {
		err = &sandbox.FieldError{Field: "Commands", Err: err}
	}
	return err
}

func jailSpec(spec *sandbox.Spec) (jail.Spec, error) {
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		return jail.Spec{}, err
	}
	j := jail.Spec{
		Tree:          spec.Tree,
		Limits:        cgroup.Limits(spec.Limits),
		HideProcesses: spec.HideProcesses,
		Loopback:      spec.Net.Inet,
		Identified:    spec.Net.Egress != nil,
		Hostname:      spec.Hostname,
		Reaper:        []string{enter.Reaper, "-P"},
		Filter:        filter,
		CgroupParent:  spec.CgroupParent,
		StateDir:      sandbox.StateDir,
	}
	if spec.Net.Egress != nil {
		j.Layer = append(slices.Clip(j.Layer), jail.File{Path: "/etc/resolv.conf", Mode: 0o644, Data: resolvConf})
	}
	return j, nil
}

// acquireZygotes returns the zygotes that w describes, for an image.
func acquireZygotes(image string, w *sandbox.Warm) *zygoteSet {
	kind := zygoteKind{
		Image: image, Node: w.Node, HeapMiB: w.HeapMiB, CgroupParent: w.CgroupParent,
		Options: zygote.Options{Forks: w.Forks, Age: w.Age, Patience: w.Patience},
	}
	return acquireSet(kind, func(k zygoteKind) zygote.Spec {
		return zygote.Spec{
			Image: k.Image, Layer: w.Layer, Args: append([]string{k.Node}, w.Args(k.HeapMiB)...), Env: w.Env,
			Dir: sandbox.StateDir, Cgroup: k.CgroupParent,
		}
	})
}

// Close implements sandbox.Sandbox.
func (s *Sandbox) Close() (err error) {
	s.parking.close()
	if s.jail != nil {
		err = s.jail.Close()
	}
	s.zygotes.release() // nothing that needs a zygote can start any more
	return errors.Join(err, s.audit.close())
}

// Alive implements sandbox.Sandbox.
func (s *Sandbox) Alive() bool { return s.jail.Alive() }

// Warm implements sandbox.Sandbox.
func (s *Sandbox) Warm(ctx context.Context) error {
	if s.zygotes == nil {
		return nil
	}
	return s.zygotes.pool(0).Wait(ctx)
}

// AddCommand implements sandbox.Sandbox.
func (s *Sandbox) AddCommand(name string) error { return s.jail.AddCommand(name) }

// AddProgram implements sandbox.Sandbox.
func (s *Sandbox) AddProgram(folder string, file sandbox.File, packages string) error {
	return s.jail.AddProgram(folder, file, packages)
}

// RemoveProgram implements sandbox.Sandbox.
func (s *Sandbox) RemoveProgram(folder, file string) error { return s.jail.RemoveProgram(folder, file) }

// Files implements sandbox.Sandbox.
func (s *Sandbox) Files() (*hostfs.FS, error) {
	root, err := s.jail.Root()
	if err != nil {
		return nil, err
	}
	first, count := s.jail.HostIDs()
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

// OpenTerminal implements sandbox.Sandbox.
func (s *Sandbox) OpenTerminal(size sandbox.TerminalSize) (*sandbox.Terminal, error) {
	t, err := s.jail.OpenTerminal(jail.TerminalSize(size))
	if err != nil {
		return nil, err
	}
	return &sandbox.Terminal{TerminalControl: control{t}, Host: t.Host, Guest: t.Guest, Kept: t.Kept}, nil
}

// control implements sandbox.TerminalControl.
type control struct{ *jail.Terminal }

// Resize sets the size.
func (c control) Resize(size sandbox.TerminalSize) error {
	return c.Terminal.Resize(jail.TerminalSize(size))
}

// resolvConf is the guest's /etc/resolv.conf.
var resolvConf = []byte("nameserver " + gateway.Resolver.String() + "\n")

// OpenGateway implements sandbox.Sandbox.
func (s *Sandbox) OpenGateway() (*sandbox.Gateway, error) {
	c := gateway.Config{UDP: s.net.UDP, Host: s.net.Host}
	for _, r := range s.net.Local {
		c.TCP = append(c.TCP, gateway.PortRange(r))
	}
	g, err := s.jail.OpenGateway(c)
	if err != nil {
		return nil, err
	}
	return &sandbox.Gateway{
		TCP: append([]*net.TCPListener{g.TCP}, g.Host...), DNS: g.DNS, DNSTCP: g.DNSTCP, Resolver: gateway.Resolver,
		Guest: gateway.Guest(), Owner: g.Owner, Close: g.Close,
	}, nil
}

// Dial implements sandbox.Sandbox.
func (s *Sandbox) Dial(ctx context.Context, to netip.AddrPort, buffer int) (*net.TCPConn, error) {
	return s.jail.Dial(ctx, to, buffer)
}

// OpenListeners implements sandbox.Sandbox.
func (s *Sandbox) OpenListeners() (sandbox.Listeners, error) {
	l, err := s.jail.OpenListeners()
	if err != nil {
		return nil, err // not a nil list
	}
	return l, nil
}

// Resources implements sandbox.Sandbox.
func (s *Sandbox) Resources(ctx context.Context) (sandbox.Resources, error) {
	r, err := s.jail.Resources(ctx)
	return sandbox.Resources(r), err
}
