package jail

import (
	"errors"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
	"gaol/jail/seccomp/notify"
	"gaol/jail/step"
)

// AddCommand adds a command, if the jail lacks it: a program with that name in
// hostcommand.Dir, see Command.OnCommand. The jail must have been created with Tree.Commands.
func (j *Jail) AddCommand(name string) error {
	err := hostcommand.CheckName(name)
	switch {
	case err != nil:
	case j.closed.Load():
		err = ErrClosed
	case j.commands == nil:
		err = errors.New("the jail was created without Commands")
	default:
		err = j.commands.AddCommand(name)
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

// commandOf returns the command that a process executes: all of them are names of one file. The kernel
// knows by which name.
//
// Preconditions: the process is blocked in a system call, or a wrong result is harmless.
func (j *Jail) commandOf(pid int) (string, error) {
	if j.commands == nil {
		return "", unix.EPERM
	}
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	program, err1 := j.commands.Lstat(hostcommand.Program)
	file, err2 := os.Stat(exe)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	if !os.SameFile(program, file) {
		return "", unix.EPERM
	}
	target, err := os.Readlink(exe)
	return path.Base(target), err
}

// openCommand opens the pipes for a process of the jail that calls a command.
func (p *Process) openCommand(c notify.Call) (requests, answers *os.File, err error) {
	name, err := p.jail.commandOf(c.PID)
	open := p.notify.command.OnCommand
	if err == nil && open == nil {
		err = unix.EPERM
	}
	if err != nil {
		return nil, nil, err
	}
	ends, err := open(name)
	return ends.Requests, ends.Answers, err
}

// AddProgram makes a folder in ProgramDir with a file of that name, which processes of the jail
// can read and not change, and a link node_modules to packages. No folder of that name may exist.
func (j *Jail) AddProgram(folder string, file File, packages string) error {
	return hostDirError("write", "program", j.programs.WriteProgram(folder, file, packages))
}

// RemoveProgram removes the files of AddProgram.
func (j *Jail) RemoveProgram(folder, name string) error {
	return hostDirError("remove", "program", j.programs.RemoveProgram(folder, name))
}
