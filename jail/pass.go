package jail

import (
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
	"gaol/jail/reap"
)

var errNotHosts = errors.New("not a file that only root can write to")

// openProgram opens the image's entry program, by which a process begins its way with
// the host's rights. The file is the one of that name, and not what a link leads to. In
// the image's mount, owner is the host's root.
//
// Preconditions: stage has run on this thread.
func openProgram(owner int) (*os.File, error) {
	image, err := openFD(stageImage, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(image.Fd()), enter.Path[1:], &how)
	if err != nil {
		return nil, os.NewSyscallError("openat2", err)
	}
	f := os.NewFile(uintptr(fd), enter.Path)
	var info unix.Stat_t
	if err = unix.Fstat(fd, &info); err == nil && (info.Mode&unix.S_IFMT != unix.S_IFREG || int(info.Uid) != owner || info.Mode&0o022 != 0) {
		err = errNotHosts
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// A pass is one process's way through the entry program.
type pass struct {
	host  *net.UnixConn // its socket
	files []*os.File
	own   int      // how many of files are its program's; the socket's other end is next
	late  int      // how many after that are needed when the others are closed
	born  *os.File // the cgroup that the entry program itself starts in; may be nil
}

// newPass begins a pass of a program that gets the files as its descriptors from 0
// on. Its ruleset may be nil.
func newPass(files []*os.File, ruleset *os.File) (*pass, error) {
	host, child, err := enter.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, stepError("make", "socket", err)
	}
	p := &pass{host: host, files: append(files[:len(files):len(files)], child), own: len(files)}
	if ruleset != nil {
		p.files = append(p.files, ruleset)
		p.late = 1
	}
	return p, nil
}

// fd gives the entry program a file, and returns its descriptor there.
func (p *pass) fd(f *os.File) int {
	p.files = append(p.files, f)
	return len(p.files) - 1
}

// groupFD is fd for a cgroup's folder, which may be nil.
func (p *pass) groupFD(dir *os.File) int {
	if dir == nil {
		return enter.NoCgroup
	}
	return p.fd(dir)
}

// join gives steps that join the cgroups whose tasks files are open.
func (p *pass) join(files []*os.File) []enter.Step {
	var steps []enter.Step
	for _, f := range files {
		steps = append(steps, enter.JoinCgroup(p.fd(f), f.Name()))
	}
	return steps
}

// run starts the entry program, and returns when the process's own program runs. It
// calls cloned for the process that the list makes, which may have to be waited for
// even if it fails.
func (p *pass) run(program *os.File, l enter.List, cloned func(*reap.Child) error) error {
	defer func() { _ = p.host.Close() }()
	// By descriptor, for it is on a mount that is read-only, and that the host
	// can't take away from a live jail.
	path := "/proc/self/fd/" + strconv.Itoa(p.fd(program))
	// What else the host leaves open, without O_CLOEXEC, must not get that far.
	l.Steps = append([]enter.Step{enter.CloseFrom(len(p.files))}, l.Steps...)
	attr := &os.ProcAttr{Env: []string{}, Files: p.files, Sys: &syscall.SysProcAttr{}}
	if p.born != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(p.born.Fd())
	}
	first, err := os.StartProcess(path, []string{"enter", strconv.Itoa(p.own), enter.Version}, attr)
	p.files[p.own].Close()
	if err != nil {
		return stepError("start", enter.Path, enter.StartError(err))
	}
	err = enter.Launch(p.host, l, func(pid int) error {
		child, err := reap.Adopt(pid)
		if err != nil {
			return err
		}
		return cloned(child)
	})
	_ = first.Kill() // where it has not ended by itself
	if state, _ := first.Wait(); errors.Is(err, enter.ErrEnded) && state != nil && state.ExitCode() == notOurs {
		err = errOtherVersion
	}
	if failed, ok := errors.AsType[*enter.StepError](err); ok {
		return stepError(failed.Step, failed.Target, failed.Err)
	}
	if _, ok := errors.AsType[*StepError](err); ok {
		return err
	}
	return stepError("enter", "jail", err)
}

// notOurs is the exit status of an entry program that does not understand how it was
// called: one of an image that another version made.
const notOurs = 125

var errOtherVersion = errors.New("the image was made by another version of gaol: build it anew")

// closeOthers leaves the program's files, the socket, which is the next, and what is
// needed late.
func (p *pass) closeOthers() enter.Step { return enter.CloseFrom(p.own + 1 + p.late) }

// restrict puts the ruleset on, if there is one, and closes it.
func (p *pass) restrict(flags uint32) []enter.Step {
	if p.late == 0 {
		return nil
	}
	return []enter.Step{enter.Ruleset(p.own+1, flags), enter.CloseFrom(p.own + 1)}
}
