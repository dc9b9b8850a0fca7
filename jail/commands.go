package jail

import (
	"errors"
	"os"
	"path"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail/hostcommand"
	"gaol/jail/mounts"
	"gaol/jail/seccomp/notify"
	"gaol/jail/step"
)

// ErrNoCommands is wrapped by Create's error for an image without the program of commands.
var ErrNoCommands = mounts.ErrNoCommands

// commands are the files of the jail that call the host. The zero value has none.
type commands struct {
	mu      sync.Mutex
	dir     *os.File
	program unix.Stat_t // all of them are names of this file
}

// open takes over the folder, which may be nil.
func (c *commands) open(dir *os.File) error {
	c.dir = dir
	if dir == nil {
		return nil
	}
	return os.NewSyscallError("stat", unix.Fstatat(int(dir.Fd()), hostcommand.Program, &c.program, unix.AT_SYMLINK_NOFOLLOW))
}

func (c *commands) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dir.Close() // it may be nil
	c.dir = nil
}

var errNoCommandDir = errors.New("the jail was created without Commands")

// AddCommand adds a command, if the jail lacks it: a program with that name in
// hostcommand.Dir, see Command.OnCommand. The jail must have been created with Tree.Commands.
func (j *Jail) AddCommand(name string) error {
	c := &j.commands
	c.mu.Lock()
	defer c.mu.Unlock()
	err := hostcommand.CheckName(name)
	switch {
	case err != nil:
	case j.closed.Load():
		err = ErrClosed
	case c.dir == nil:
		err = errNoCommandDir
	default:
		err = mounts.AddCommand(c.dir, name)
	}
	return step.Wrap("add", "command", err)
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
	if c.program.Ino == 0 || file.Dev != c.program.Dev || file.Ino != c.program.Ino {
		return "", unix.EPERM
	}
	target, err := os.Readlink(exe)
	return path.Base(target), err
}

// openCommand opens the pipes for a process of the jail that calls a command.
func (p *Process) openCommand(c notify.Call) (hostcommand.Ends, error) {
	name, err := p.jail.commands.name(c.PID)
	if err == nil && p.notify.command == nil {
		err = unix.EPERM
	}
	if err != nil {
		return hostcommand.Ends{}, err
	}
	return p.notify.command(name)
}

// programs is the folder of AddProgram.
type programs struct {
	mu  sync.Mutex
	dir *os.File
}

func (p *programs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dir.Close() // it may be nil
	p.dir = nil
}

// use calls f with the folder, unless the jail is closed.
func (p *programs) use(name string, f func(dir *os.File) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == nil {
		return ErrClosed
	}
	return step.Wrap(name, "program", f(p.dir))
}

// AddProgram makes a folder in ProgramDir with a file of that name, which processes of the jail
// can read and not change, and a link node_modules to packages. No folder of that name may exist.
func (j *Jail) AddProgram(folder string, file File, packages string) error {
	return j.programs.use("write", func(dir *os.File) error {
		return mounts.WriteProgram(dir, folder, file, packages, j.slot.firstHostID())
	})
}

// RemoveProgram removes the files of AddProgram.
func (j *Jail) RemoveProgram(folder, file string) error {
	return j.programs.use("remove", func(dir *os.File) error { return mounts.RemoveProgram(dir, folder, file) })
}
