package jail

import (
	"context"
	"errors"
	"os"

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

// openGroup opens what the child gets into its cgroup by.
func (p *Process) openGroup(r *zygote.Request) (closeAll func(), err error) {
	var files []*os.File
	closeAll = func() {
		for _, f := range files {
			f.Close()
		}
	}
	open := func(path string, flag int) error {
		// Not by os.OpenFile, which would have the poller watch it.
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		files = append(files, os.NewFile(uintptr(fd), path))
		return nil
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
	r.JoinFiles = files
	return closeAll, nil
}
