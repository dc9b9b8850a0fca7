package jail

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/zygote"
)

// fork has a zygote fork the process.
func (p *Process) fork(ctx context.Context, c *Command) error {
	r := &zygote.Request{
		Args:   append([]string{c.Path}, c.Args...),
		Script: c.Script,
		Env:    c.Env,
		Dir:    c.Dir,
		Files:  append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Files...),
		Jail:   p.jail.pidfd,
		UID:    GuestUID,
		GID:    GuestGID,
		Limits: rlimits(c),
		Filter: p.jail.spec.Filter,
	}
	closeGroup, err := p.openGroup(r)
	if err != nil {
		return stepError("open", "cgroup", err)
	}
	defer closeGroup()
	child, err := c.Zygote.Fork(ctx, r)
	if failed, ok := errors.AsType[*zygote.StepError](err); ok {
		target := c.Path
		if failed.Step == "chdir" {
			target = c.Dir
		}
		return stepError(failed.Step, target, failed.Err)
	}
	if err != nil {
		return stepError("fork", c.Path, err)
	}
	p.first = child
	return nil
}

// openPidfd gets what a forked process enters the jail's namespaces by.
func (j *Jail) openPidfd() error {
	pid, err := j.pid1.Pid()
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	j.pidfd = os.NewFile(uintptr(fd), "pid 1")
	return nil
}

// openJoinFiles gets what a forked process enters the jail's groups by where the run
// has none of its own: on v1 libcontainer makes some in all hierarchies, and that
// of the devices holds rules.
func (j *Jail) openJoinFiles(conf *cgroups.Cgroup) error {
	version, err := cgroup.Detect()
	if err != nil || version == cgroup.V2 {
		return err
	}
	own, err := cgroup.Open(j.groupPath(""))
	if err != nil {
		return err
	}
	m, err := manager.New(conf)
	if err != nil {
		return err
	}
	for controller, dir := range m.GetPaths() {
		if dir == "" || slices.Contains(own.Controllers(), controller) {
			continue
		}
		f, err := openFD(filepath.Join(dir, "tasks"), unix.O_WRONLY)
		switch {
		case err == nil:
			j.joinFiles = append(j.joinFiles, f)
		case !errors.Is(err, unix.ENOENT):
			return err
		default: // only v2 has no such file
			if j.unified, err = openFD(dir, unix.O_DIRECTORY|unix.O_RDONLY); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeForks closes what only forked processes need.
func (j *Jail) closeForks() {
	for _, f := range append(j.joinFiles, j.pidfd, j.unified) {
		if f != nil {
			f.Close()
		}
	}
}

// openFD is os.OpenFile for what the poller is not to watch.
func openFD(path string, flag int) (*os.File, error) {
	fd, err := unix.Open(path, flag|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openGroup opens what the child gets into its cgroup by.
func (p *Process) openGroup(r *zygote.Request) (closeAll func(), err error) {
	var files []*os.File
	closeAll = func() {
		for _, f := range files {
			f.Close()
		}
	}
	open := func(path string, flag int) error {
		f, err := openFD(path, flag)
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	version, err := cgroup.Detect()
	if err == nil && version == cgroup.V2 {
		if err = open(p.group.Dirs()[0], unix.O_DIRECTORY|unix.O_RDONLY); err == nil {
			r.Cgroup = files[0]
		}
		return closeAll, err
	}
	for _, path := range p.group.JoinFiles() {
		if err == nil {
			err = open(path, unix.O_WRONLY)
		}
	}
	if err != nil {
		closeAll()
		return nil, err
	}
	r.Cgroup = p.jail.unified
	r.JoinFiles = append(slices.Clone(files), p.jail.joinFiles...)
	return closeAll, nil
}
