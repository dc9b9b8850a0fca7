package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/internal/ociruntime"
	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/wall/program"
)

// machine is gVisor with an agent.
type machine struct {
	identity *jail.Identity
	group    *cgroup.Group
	mounts   []sandbox.Mount
	conn     net.Conn
	command  *exec.Cmd
	ended    chan struct{}  // closed when runsc has ended
	output   program.Output // of runsc and the agent; valid then
}

// start starts gVisor and the agent.
func start(ctx context.Context, spec *sandbox.Spec) (_ *machine, err error) {
	runsc, err := ociruntime.FindRunsc()
	if err != nil {
		return nil, err
	}
	gaol, err := ociruntime.FindGaol()
	if err != nil {
		return nil, err
	}
	m := &machine{mounts: spec.Mounts, ended: make(chan struct{})}
	if m.identity, err = jail.NewIdentity(ctx, sandbox.StateDir, spec.CgroupParent); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.identity.Release())
		}
	}()
	if err := writeBundle(m.identity.Dir(), gaol, spec); err != nil {
		return nil, err
	}
	if m.group, err = cgroup.New(m.identity.Cgroup(), limits(spec, 0)); err != nil {
		return nil, err
	}
	host, socket, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	m.conn = host
	err = kernfile.StartOnThread(func() error { return m.execute(runsc, socket, spec) }, func() {
		_ = m.command.Wait() // output contains the reason
		close(m.ended)
	})
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return m, nil
}

// execute starts runsc in a mount namespace where the mounts are in the folder of the sandbox. What runsc mounts there ends
// with its processes.
//
// Preconditions: the thread ends with its goroutine, after runsc.
func (m *machine) execute(runsc string, socket *os.File, spec *sandbox.Spec) error {
	clones, err := cloneMounts(spec)
	defer func() {
		for _, c := range clones {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	if err := mounts.Unshare(); err != nil {
		return err
	}
	dir := m.identity.Dir()
	for _, c := range clones {
		if err := c.attach(dir); err != nil {
			return err
		}
	}
	m.command = exec.Command(runsc, arguments(dir, spec)...)
	m.command.Dir, m.command.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	m.command.Stdin, m.command.Stdout, m.command.Stderr = socket, &m.output, &m.output
	return program.Start(m.command, m.group)
}

// arguments are those of runsc.
func arguments(dir string, spec *sandbox.Spec) []string {
	list := []string{
		"--root", filepath.Join(dir, stateDir), "--ignore-cgroups", "--network=none", "--net-raw", // NAT needs CAP_NET_RAW
		"--overlay2=root:memory", "--in-sandbox-cgroup=v2",
	}
	if spec.UnixSockets && slices.ContainsFunc(spec.Mounts, func(m sandbox.Mount) bool { return m.Access != sandbox.CopyOnWrite && !m.Overlay }) {
		list = append(list, "--host-uds=open") // guests may connect to sockets of the host in these mounts
	}
	return append(list, "run", "-bundle", dir, "gaol")
}

// end kills everything in the cgroup, and removes the remaining files.
func (m *machine) end() error {
	_ = m.command.Process.Kill() // it may have ended
	err := m.identity.Release()
	<-m.ended
	return err
}

// place implements remote.Machine.
func (m *machine) place(f fs.File) (string, error) {
	for i, mount := range m.mounts {
		if mount.Source == f {
			return mountPath(i), nil
		}
	}
	return "", fmt.Errorf("gvisor: a file that is not mounted: %w", fs.ErrInvalid)
}

// lacks are the features that gVisor is known to lack. The options that need them are refused, or the package comment explains the
// loss.
var lacks = kernel.Profile{
	kernel.MountAttr,     // the host maps owners
	kernel.TerminalLimit, // memory bounds them
	kernel.NetModes,      // it shows no other namespaces
	kernel.LowPorts,
	kernel.GroupLimits, kernel.SocketLists, kernel.SignalLimits, // the host limits the whole sandbox
	kernel.TIDAddress, kernel.MemoryMap, // zygotes do without
	kernel.Listener, kernel.Landlock,
	kernel.SocketLookup, // NAT redirects connections
}
