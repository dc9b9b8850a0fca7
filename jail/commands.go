package jail

import (
	"errors"
	"os"
	"path"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
	"gaol/jail/mounts"
	"gaol/jail/seccomp/notify"
	"gaol/jail/step"
)

// commands are the files of the jail that call the host. The zero value has none.
type commands struct {
	dir     *mounts.HostDir
	program *syscall.Stat_t // all of them are names of this file
}

// identify finds the file of the commands, if there are any.
func (c *commands) identify() error {
	if c.dir == nil {
		return nil
	}
	info, err := c.dir.Lstat(hostcommand.Program)
	if err == nil {
		c.program = info.Sys().(*syscall.Stat_t)
	}
	return err
}

var errNoCommandDir = errors.New("the jail was created without Commands")

// AddCommand adds a command, if the jail lacks it: a program with that name in
// hostcommand.Dir, see Command.OnCommand. The jail must have been created with Tree.Commands.
func (j *Jail) AddCommand(name string) error {
	err := hostcommand.CheckName(name)
	switch {
	case err != nil:
	case j.closed.Load():
		err = ErrClosed
	case j.commands.dir == nil:
		err = errNoCommandDir
	default:
		err = j.commands.dir.AddCommand(name)
	}
	return hostDirError("add", "command", err)
}

// hostDirError wraps an error of a folder in which the host writes. The folder is closed with the jail.
func hostDirError(name, target string, err error) error {
	if errors.Is(err, os.ErrClosed) {
		err = ErrClosed
	}
	return step.Wrap(name, target, err)
}

// name returns the command that a process executes. The kernel knows by which name.
//
// Preconditions: the process is blocked in a system call, or a wrong result is harmless.
func (c *commands) name(pid int) (string, error) {
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	var file unix.Stat_t
	if err := unix.Stat(exe, &file); err != nil {
		return "", err
	}
	if c.program == nil || file.Dev != c.program.Dev || file.Ino != c.program.Ino {
		return "", unix.EPERM
	}
	target, err := os.Readlink(exe)
	return path.Base(target), err
}

// openCommand opens the pipes for a process of the jail that calls a command.
func (p *Process) openCommand(c notify.Call) (hostcommand.Ends, error) {
	name, err := p.jail.commands.name(c.PID)
	open := p.notify.command.OnCommand
	if err == nil && open == nil {
		err = unix.EPERM
	}
	if err != nil {
		return hostcommand.Ends{}, err
	}
	return open(name)
}

// AddProgram makes a folder in ProgramDir with a file of that name, which processes of the jail
// can read and not change, and a link node_modules to packages. No folder of that name may exist.
func (j *Jail) AddProgram(folder string, file File, packages string) error {
	return hostDirError("write", "program", j.programs.WriteProgram(folder, file, packages))
}

// RemoveProgram removes the files of AddProgram.
func (j *Jail) RemoveProgram(folder string) error {
	return hostDirError("remove", "program", j.programs.RemoveAll(folder))
}
