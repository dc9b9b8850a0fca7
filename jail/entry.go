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
	"gaol/jail/step"
)

// An entry is one execution of the entry program, which becomes a process of the jail.
type entry struct {
	host    *net.UnixConn // the host's end of the socket
	files   []*os.File    // the descriptors of the entry program
	own     int           // the first files, which the started program keeps; the socket's other end is next
	late    int           // the files after that which are needed when the others are closed
	startIn *os.File      // the cgroup that the entry program is started in; may be nil
}

// newEntry returns an entry for a program that gets the files as its descriptors from 0
// on. ruleset may be nil.
func newEntry(files []*os.File, ruleset *os.File) (*entry, error) {
	host, child, err := enter.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, step.Wrap("make", "socket", err)
	}
	e := &entry{host: host, files: append(files[:len(files):len(files)], child), own: len(files)}
	if ruleset != nil {
		e.files = append(e.files, ruleset)
		e.late = 1
	}
	return e, nil
}

// add passes a file to the entry program and returns its descriptor there.
func (e *entry) add(f *os.File) int {
	e.files = append(e.files, f)
	return len(e.files) - 1
}

// addCgroup is add for the folder of a cgroup, which may be nil.
func (e *entry) addCgroup(dir *os.File) int {
	if dir == nil {
		return enter.NoCgroup
	}
	return e.add(dir)
}

// join returns steps that join cgroups by their tasks files.
func (e *entry) join(tasks []*os.File) []enter.Step {
	var steps []enter.Step
	for _, f := range tasks {
		steps = append(steps, enter.JoinCgroup(e.add(f), f.Name()))
	}
	return steps
}

// run starts the entry program, and returns when the process executes its own program. It
// calls cloned with the process that the steps make, which must be waited for even if run
// fails.
func (e *entry) run(program *os.File, l enter.List, cloned func(*reap.Child) error) error {
	defer func() { _ = e.host.Close() }()
	// Executed by descriptor: the file is in the jail's own read-only mount, which the host
	// can't remove from a live jail.
	path := "/proc/self/fd/" + strconv.Itoa(e.add(program))
	// Files that the host has opened without O_CLOEXEC are closed first.
	l.Steps = append([]enter.Step{enter.CloseFrom(len(e.files))}, l.Steps...)
	attr := &os.ProcAttr{Env: []string{}, Files: e.files, Sys: &syscall.SysProcAttr{}}
	if e.startIn != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(e.startIn.Fd())
	}
	first, err := os.StartProcess(path, []string{"enter", strconv.Itoa(e.own), enter.Version}, attr)
	e.files[e.own].Close()
	if err != nil {
		return step.Wrap("start", enter.Path, enter.StartError(err))
	}
	err = enter.Launch(e.host, l, func(pid int) error {
		child, err := reap.Adopt(pid)
		if err != nil {
			return err
		}
		return cloned(child)
	})
	_ = first.Kill() // if it has not ended
	if state, _ := first.Wait(); errors.Is(err, enter.ErrEnded) && state != nil && state.ExitCode() == otherVersionExit {
		err = errOtherVersion
	}
	if _, ok := errors.AsType[*StepError](err); ok {
		return err
	}
	return step.Wrap("enter", "jail", err)
}

// otherVersionExit is the exit status of an entry program of another version.
const otherVersionExit = 125

var errOtherVersion = errors.New("the image was made by another version of gaol: build it again")

// closeOthers keeps the program's files, the socket, which is next, and the late files.
func (e *entry) closeOthers() enter.Step { return enter.CloseFrom(e.own + 1 + e.late) }

// restrict returns steps that enforce the ruleset, if there is one, and close it.
func (e *entry) restrict(flags uint32) []enter.Step {
	if e.late == 0 {
		return nil
	}
	return []enter.Step{enter.Ruleset(e.own+1, flags), enter.CloseFrom(e.own + 1)}
}
