package vm

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/internal/kvm"
	"gaol/internal/ociruntime"
	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/kernel"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/wall/program"
)

// machine is a virtual machine with an agent.
type machine struct {
	identity *jail.Identity
	group    *cgroup.Group
	conn     net.Conn
	emulated bool     // without KVM
	groups   []uint32 // of QEMU, for KVM
	slow     float64  // as in kernel.Slow, of the machine
	command  *exec.Cmd
	ended    chan struct{}  // closed when QEMU has ended
	output   program.Output // of QEMU and the machine's console; valid then
}

const (
	// guestMemory is for the machine's kernel, the agent and zygotes, and hostMemory for QEMU, in bytes. A half of the latter is the
	// cache of emulated code.
	guestMemory = 256 << 20
	hostMemory  = 192 << 20

	// hostPids is for QEMU's threads, hostCPUs for the ones that do not run the guest.
	hostPids = 128
	hostCPUs = 0.5
)

// memory is a machine's memory in bytes.
func memory(spec *sandbox.Spec) int64 {
	const page = 1 << 20
	return (guestMemory + spec.Disk + spec.Limits.Memory + page - 1) / page * page
}

// processors is the number of a machine's processors.
func processors(spec *sandbox.Spec) int {
	return max(1, min(goruntime.NumCPU(), int(math.Ceil(spec.Limits.CPUs))))
}

// limits returns the limits of QEMU.
func limits(spec *sandbox.Spec) cgroup.Limits {
	return cgroup.Limits{Memory: memory(spec) + hostMemory, CPUs: float64(processors(spec)) + hostCPUs, Pids: hostPids}
}

// start starts a virtual machine.
func start(ctx context.Context, spec *sandbox.Spec) (_ *machine, err error) {
	files, err := findFiles(ctx, spec)
	if err != nil {
		return nil, err
	}
	m := &machine{ended: make(chan struct{})}
	if m.slow, err = kernel.Slow(); err != nil {
		return nil, err
	}
	if group, err := kvm.Probe(); err == nil {
		m.groups = []uint32{group}
	} else { // gaol doctor reports the reason
		m.emulated, m.slow = true, max(slowEmulated, m.slow)
	}
	if m.identity, err = jail.NewIdentity(ctx, sandbox.StateDir, spec.CgroupParent); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.identity.Release())
		}
	}()
	if m.group, err = cgroup.New(m.identity.Cgroup(), limits(spec)); err != nil {
		return nil, err
	}
	var socket *os.File
	if m.conn, socket, err = kernfile.SocketPair(unix.SOCK_STREAM); err != nil {
		return nil, err
	}
	defer socket.Close()
	err = kernfile.StartOnThread(func() error { return m.execute(files, socket, spec) }, func() {
		_ = m.command.Wait() // output contains the reason
		close(m.ended)
	})
	if err != nil {
		return nil, errors.Join(err, m.conn.Close())
	}
	return m, nil
}

// execute starts QEMU as a user that owns no files, in a root directory without the host's files, without a network.
//
// Preconditions: the thread ends with its goroutine, after QEMU.
func (m *machine) execute(files *files, socket *os.File, spec *sandbox.Spec) error {
	if err := makeRoot(m.identity.Dir(), files, m.emulated); err != nil {
		return err
	}
	list, err := arguments(spec, len(files.disks), m.emulated, m.slow)
	if err != nil {
		return err
	}
	m.command = exec.Command(files.qemu, list...)
	m.command.Dir, m.command.Env, m.command.ExtraFiles = "/", []string{"PATH=/usr/bin"}, []*os.File{socket}
	m.command.Stdout, m.command.Stderr = &m.output, &m.output
	id := uint32(m.identity.ID()) //nolint:gosec // below 1<<31
	m.command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: id, Gid: id, Groups: m.groups},
		Chroot:     m.identity.Dir(),
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	return program.Start(m.command, m.group)
}

// end kills QEMU, and removes its cgroup and its root directory.
func (m *machine) end() error {
	_ = m.command.Process.Kill() // it may have ended
	err := m.identity.Release()
	<-m.ended
	return err
}

// files are the paths of a machine's programs and files.
type files struct {
	qemu, gaol      string // programs
	kernel, modules string
	disks           []string
}

// findFiles finds the files of a machine, and makes its disks.
func findFiles(ctx context.Context, spec *sandbox.Spec) (*files, error) {
	found, err := ociruntime.FindMachine()
	if err != nil {
		return nil, err
	}
	f := &files{qemu: found.QEMU, gaol: found.Gaol, kernel: found.Kernel, modules: found.Modules}
	for _, image := range images(spec) {
		disk, err := findDisk(ctx, found.Mkfs, image)
		if err != nil {
			return nil, err
		}
		f.disks = append(f.disks, disk)
	}
	return f, nil
}
