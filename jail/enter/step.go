package enter

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/jail/step"
)

// Step is one step of the program. The functions below return them. Launch passes their files
// to the program.
type Step struct {
	Name   string // for errors
	Target string // object of the step, such as a path; may be empty

	op     uint32 // enum op of src/steps.c
	number uint32
	file   *os.File // whose descriptor in the program is number; may be nil
	value  uint64
	text   []string // at most four, except for Execute and supervise
}

const (
	opOOMScore uint32 = iota + 1
	opKeyring
	opJoinCgroup
	opUnshare
	opEffectiveUser
	opNamespaces
	opClone
	opAwaitHost
	opUser
	opHostname
	opLoopback
	opMount
	opRoot
	opHideEntries
	opSession
	opClose
	opUmask
	opLimit
	opBoundingSet
	opCapabilities
	opChdir
	opDeathSignal
	opSignals
	opNoNewPrivs
	opRuleset
	opFilter
	opExecute
	opTerminal
	opSupervise
)

// OOMScore makes the kernel kill this process before others when the machine is short of
// memory. It needs the host's /proc.
func OOMScore() Step { return Step{Name: "oom score", op: opOOMScore} }

// Keyring replaces the host's session keyring by a new one.
func Keyring() Step { return Step{Name: "keyring", op: opKeyring} }

// JoinCgroup moves the process into the cgroup whose tasks file is open.
func JoinCgroup(tasks *os.File) Step {
	return Step{Name: "cgroup", Target: tasks.Name(), op: opJoinCgroup, file: tasks}
}

// CgroupNamespace creates a cgroup namespace whose roots are the process's cgroups.
func CgroupNamespace() Step {
	return Step{Name: "cgroup namespace", op: opUnshare, value: unix.CLONE_NEWCGROUP}
}

// MountNamespace creates a copy of the mount namespace.
func MountNamespace() Step {
	return Step{Name: "mount namespace", op: opUnshare, value: unix.CLONE_NEWNS}
}

// EffectiveUser sets the effective user id and keeps the capabilities. Namespaces that
// Clone creates then belong to that host user.
func EffectiveUser(uid int) Step { return Step{Name: "user", op: opEffectiveUser, number: uint32(uid)} }

// Namespaces enters namespaces of the process that the pidfd refers to.
func Namespaces(pidfd *os.File, flags uint64) Step {
	return Step{Name: "namespaces", op: opNamespaces, file: pidfd, value: flags}
}

// Clone creates a child, which executes the following steps. See clone(2) for the flags.
// The child is created in the cgroup whose directory is open, or, if that is nil, in its
// parent's.
func Clone(cgroup *os.File, flags uint64) Step {
	const parents = 0xffff_ffff
	return Step{Name: "clone", op: opClone, number: parents, file: cgroup, value: flags}
}

// AwaitHost waits until the function that was passed to Launch has returned.
func AwaitHost() Step { return Step{Name: "await", op: opAwaitHost} }

// User sets all user and group ids, as seen in the process's user namespace, and drops all
// supplementary groups.
func User(uid, gid int) Step {
	return Step{Name: "user", op: opUser, number: uint32(uid), value: uint64(gid)}
}

// Hostname sets the host name, and resets the domain name, of the UTS namespace.
func Hostname(name string) Step {
	return Step{Name: "hostname", Target: name, op: opHostname, text: []string{name}}
}

// Loopback brings the loopback interface up.
func Loopback() Step { return Step{Name: "loopback", op: opLoopback} }

// Mount calls mount(2).
func Mount(source, target, fstype string, flags uintptr, data string) Step {
	return Step{Name: "mount", Target: target, op: opMount, value: uint64(flags), text: []string{source, target, fstype, data}}
}

// Root makes a mount the root and unmounts everything that is not below it.
func Root(dir string) Step { return Step{Name: "pivot", Target: dir, op: opRoot, text: []string{dir}} }

// HideEntries mounts the empty file or folder over each entry of a procfs that is not in
// shown. It skips links and the folders of processes.
func HideEntries(dir string, shown []string, file, folder string) Step {
	list := "/" + strings.Join(shown, "/") + "/" // names contain no slash
	return Step{Name: "hide", Target: dir, op: opHideEntries, text: []string{dir, list, file, folder}}
}

// Session starts a new session without a terminal.
func Session() Step { return Step{Name: "session", op: opSession} }

// Terminal makes the terminal at descriptor 0 the session's controlling terminal. It must
// not control another session.
func Terminal() Step { return Step{Name: "terminal", op: opTerminal} }

// CloseOthers closes all descriptors except List.Files, the files of later steps, and the
// socket, which is closed when the process executes its own program.
func CloseOthers() Step { return Step{Name: "descriptors", op: opClose} }

// Umask sets the file mode creation mask.
func Umask(mask os.FileMode) Step { return Step{Name: "umask", op: opUmask, number: uint32(mask)} }

// Limit is a resource limit, soft and hard, see setrlimit(2). If the host's own hard limit
// is lower, that one is kept.
type Limit struct {
	Resource uint32 // RLIMIT_…
	Most     uint64
}

// Step returns the step that lowers the limit.
func (l Limit) Step() Step {
	return Step{Name: "limit", op: opLimit, number: l.Resource, value: l.Most}
}

// BoundingSet empties the capability bounding set: executed programs can't gain any.
func BoundingSet() Step { return Step{Name: "capabilities", op: opBoundingSet} }

// Capabilities drops all capabilities of the process.
func Capabilities() Step { return Step{Name: "capabilities", op: opCapabilities} }

// Chdir changes the working directory.
func Chdir(dir string) Step {
	return Step{Name: "chdir", Target: dir, op: opChdir, text: []string{dir}}
}

// DieWithHost makes the kernel kill the process when the host thread that started it ends.
// It then waits until Launch confirms that the host is still alive. It is for a jail's
// pid 1: the rest of the jail dies with it. Later steps must not change ids or
// capabilities, which would undo it.
func DieWithHost() Step {
	return Step{Name: "death signal", op: opDeathSignal, number: uint32(unix.SIGKILL)}
}

// Signals resets all signals: none is ignored, handled or blocked.
func Signals() Step { return Step{Name: "signals", op: opSignals} }

// NoNewPrivs prevents executed programs from gaining rights.
func NoNewPrivs() Step { return Step{Name: "no_new_privs", op: opNoNewPrivs} }

// Ruleset enforces the open Landlock ruleset, with flags of landlock_restrict_self(2).
func Ruleset(ruleset *os.File, flags uint32) Step {
	return Step{Name: "landlock", op: opRuleset, file: ruleset, value: uint64(flags)}
}

// Filter loads the list's system call filter.
func Filter() Step { return Step{Name: "seccomp", op: opFilter} }

// FilterWithListener is Filter for a program that sends calls to a listener, which the
// list's OnListener receives.
func FilterWithListener() Step { return Step{Name: "seccomp", op: opFilter, number: 1} }

// Execute executes a program. The first argument is its path, or a name to look up in PATH
// of the environment.
func Execute(args, env []string) Step {
	s := Step{Name: "exec", op: opExecute, number: uint32(len(args)), value: uint64(len(env))}
	if len(args) > 0 {
		s.Target = args[0]
	}
	s.text = append(append(s.text, args...), env...)
	return s
}

// supervise executes a program that starts a process, writes its pid to a file and ends.
// Then it waits for that process, and ends as it does. All files of the list are the program's.
func supervise(pidFile string, args []string) Step {
	text := append([]string{pidFile}, args...)
	return Step{Name: "supervise", Target: args[0], op: opSupervise, number: uint32(len(text)), text: text}
}

// List is the program's list of steps.
type List struct {
	Steps []Step

	// Files are the descriptors from 0 on of the program that the list executes.
	Files []*os.File

	// StartIn is the folder of the v2 cgroup that the program is started in; may be nil.
	StartIn *os.File

	// Filter is a classic BPF program, an array of struct sock_filter. The step of the
	// same name loads it.
	Filter []byte

	// OnListener is called with the listener that FilterWithListener creates, and owns
	// it, but not conn. Its other end is closed when the entry program has executed
	// the guest's program or has ended: until then, the calls that the filter sends to
	// the listener are the entry program's.
	OnListener func(listener *os.File, conn syscall.Conn)

	// Meanwhile is called, on the goroutine that calls Launch, while the program executes the
	// steps before AwaitHost; may be nil.
	Meanwhile func()
}

// InstructionLen is sizeof(struct sock_filter).
const InstructionLen = 8

const (
	maxSteps   = 256
	maxText    = 8 << 20
	maxStrings = 4 // of a step
)

// wireStep is struct step of src/protocol.c.
type wireStep struct {
	Op, Number uint32
	Value      uint64
	Text       [maxStrings]uint32
}

// open returns the program's files, indexed by descriptor: List.Files, its end of the socket, and
// the files of the steps, later steps first. So the files that are still needed at a CloseOthers
// have the lowest descriptors.
func (l *List) open(socket *os.File) []*os.File {
	files := append(slices.Clip(l.Files), socket)
	for i := range slices.Backward(l.Steps) {
		switch s := &l.Steps[i]; {
		case s.op == opClose:
			s.number = uint32(len(files))
		case s.file != nil:
			at := slices.Index(files, s.file)
			if at < 0 {
				at, files = len(files), append(files, s.file)
			}
			s.number = uint32(at)
		}
	}
	return files
}

// encode returns the message that src/protocol.c describes. It rejects lists that the
// program would reject with a less specific error.
func (l *List) encode() ([]byte, error) {
	var text []byte
	var steps []wireStep
	for _, s := range l.Steps {
		w := wireStep{Op: s.op, Number: s.number, Value: s.value}
		for i, t := range s.text {
			if i < maxStrings {
				w.Text[i] = uint32(len(text))
			}
			var err error
			if text, err = AppendText(text, t); err != nil {
				return nil, step.Wrap(s.Name, s.Target, err)
			}
		}
		steps = append(steps, w)
	}
	header := [...]uint32{uint32(len(steps)), uint32(len(l.Filter) / InstructionLen), uint32(len(text))}
	message, _ := binary.Append(nil, binary.NativeEndian, header) // fails for other types only
	message, _ = binary.Append(message, binary.NativeEndian, steps)
	return slices.Concat(message, l.Filter, text), nil
}

// AppendText appends strings, with a NUL byte after each, to the text of a message. It rejects
// strings that contain one, and more text than a message may have.
func AppendText(text []byte, list ...string) ([]byte, error) {
	for _, s := range list {
		if strings.ContainsRune(s, 0) {
			return nil, fmt.Errorf("%q contains a NUL byte", s)
		}
		text = append(append(text, s...), 0)
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes of text: %w", len(text), syscall.E2BIG)
	}
	return text, nil
}

// stepError returns the error for the numbers of a report.
func (l *List) stepError(number uint32, errno syscall.Errno) error {
	switch {
	case number == maxSteps+1:
		return &step.Error{Step: "list", Err: errno}
	case int(number) > len(l.Steps):
		return errUnexpected
	}
	s := l.Steps[number-1]
	return &step.Error{Step: s.Name, Target: s.Target, Err: errno}
}
