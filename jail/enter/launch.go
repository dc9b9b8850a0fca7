package enter

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/step"
)

// Errors of a program that violates the protocol.
var (
	errUnexpected = errors.New("unexpected report of the entry program")
	errEnded      = errors.New("the entry program ended")
)

// ErrOtherVersion is the error of an entry program with another protocol.
var ErrOtherVersion = errors.New("the image was made by another version of gaol: build it again")

const otherVersionExit = 125 // the exit status of such a program

// The first number of a report, unless it is a step's.
const (
	reportReady    = 0
	reportArmed    = 0xffff_fffd
	reportListener = 0xffff_fffe
	reportCloned   = 0xffff_ffff
)

// The host's replies. They differ, so that the program can't mistake a reply that was
// written early for proof that the host is alive.
const (
	replyContinue = 1
	replyAlive    = 2
)

// Launch starts the program and makes it execute the list. It returns when the program that
// the list executes runs, or when every process of the launch has ended. It calls cloned with
// the child that Clone creates, which must be waited for even if Launch fails; the AwaitHost
// step waits until cloned has returned. An error is a [*step.Error].
func Launch(program *os.File, l List, cloned func(*Child) error) error {
	var first *os.Process
	err := l.launch("jail", func(files []*os.File, _ []string) (err error) {
		first, err = start(program, files, len(l.Files), l.StartIn)
		return step.Wrap("start", Path, StartError(err))
	}, func(pid int) error {
		child, err := Adopt(pid)
		if err != nil {
			return err
		}
		return cloned(child)
	})
	if first == nil {
		return err
	}
	_ = first.Kill() // if it has not ended
	if state, _ := first.Wait(); errors.Is(err, errEnded) && state != nil && state.ExitCode() == otherVersionExit {
		err = step.Wrap("enter", "jail", ErrOtherVersion)
	}
	return err
}

// LaunchIn is Launch for a program that another program starts, in a process that already is the
// new one, so l must not contain a Clone. start starts it with files and the arguments args, the
// first of which is its name.
func LaunchIn(l List, start func(files []*os.File, args []string) error) error {
	return l.launch("container", start, nil)
}

// launch starts the entry program with start, and sends it the steps. Errors name target, the jail or container that it enters.
func (l *List) launch(target string, start func(files []*os.File, args []string) error, cloned func(pid int) error) error {
	host, socket, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return step.Wrap("make", "socket", err)
	}
	defer func() { _ = host.Close() }()
	err = start(l.open(socket), programArgs(len(l.Files)))
	socket.Close()
	if err != nil {
		return err
	}
	err = l.execute(host, cloned)
	if _, ok := errors.AsType[*step.Error](err); ok {
		return err
	}
	return step.Wrap("enter", target, err)
}

// start starts the program with files, of which number socket is its end of the socket.
func start(program *os.File, files []*os.File, socket int, cgroup *os.File) (*os.Process, error) {
	files = append(files, program)
	attr := &os.ProcAttr{Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{}}
	if cgroup != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(cgroup.Fd())
	}
	// Executed by descriptor: the file is in the jail's own read-only mount, which the host
	// can't remove from a live jail.
	return os.StartProcess("/proc/self/fd/"+strconv.Itoa(len(files)-1), programArgs(socket), attr)
}

// programArgs returns the program's arguments if number socket of its files is the socket.
func programArgs(socket int) []string { return []string{"enter", strconv.Itoa(socket), Version} }

// StartError corrects the error of an [os.StartProcess] whose files are open. If the child
// runs out of descriptors for them, dup3(2) fails with EBADF; StartError returns
// EMFILE instead.
func StartError(err error) error {
	failed, ok := errors.AsType[*os.PathError](err)
	if !ok || !errors.Is(failed.Err, unix.EBADF) {
		return err
	}
	return &os.PathError{Op: failed.Op, Path: failed.Path, Err: unix.EMFILE}
}

// execute sends the list to the program behind conn, and handles its reports until the end. cloned is nil for
// a list without Clone.
func (l *List) execute(conn *net.UnixConn, cloned func(pid int) error) error {
	message, err := l.encode()
	if err != nil {
		return err
	}
	if err := write(conn, message); err != nil {
		return fmt.Errorf("send the list: %w", err)
	}
	if l.Meanwhile != nil {
		l.Meanwhile()
	}
	sawClone, outcome := cloned == nil, errEnded // of the last report that decides it
	var lostFiles error                          // reports whose descriptor could not be received
	for {
		number, value, err := ReadReport(conn, l.OnListener)
		switch {
		case err == io.EOF:
			if outcome == nil && !sawClone { // the parent was killed before its report
				outcome = errEnded
			}
			return cmp.Or(lostFiles, outcome)
		case errors.Is(err, syscall.EMFILE): // continue: a later report may have the pid of the child
			lostFiles = fmt.Errorf("read the report: %w", err)
			continue
		case err != nil:
			return fmt.Errorf("read the report: %w", err)
		}
		switch number {
		case reportReady:
			outcome = nil
		case reportListener: // ReadReport has passed it on
		case reportCloned:
			sawClone = true
			err = l.reply(conn, cloned, int(value))
		case reportArmed:
			err = write(conn, []byte{replyAlive})
		default:
			outcome = l.stepError(number, syscall.Errno(value))
		}
		if err != nil {
			return err
		}
	}
}

// reply calls cloned, and lets the child continue if it waits for that.
func (l *List) reply(conn *net.UnixConn, cloned func(pid int) error, pid int) error {
	if cloned == nil {
		return errUnexpected
	}
	waits := slices.ContainsFunc(l.Steps, func(s Step) bool { return s.op == opAwaitHost })
	if err := cloned(pid); err != nil || !waits {
		return err
	}
	return write(conn, []byte{replyContinue})
}

// write ignores EPIPE: the reports of a program that ended early contain the reason.
func write(conn io.Writer, b []byte) error {
	_, err := conn.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// ReadReport reads the two numbers of a report. A filter's listener that comes with it is
// passed to onListener, which may be nil. At the end of the reports it returns io.EOF.
func ReadReport(conn *net.UnixConn, onListener func(*os.File, syscall.Conn)) (number, value uint32, err error) {
	var b [8]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, flags, _, err := conn.ReadMsgUnix(b[:], oob)
	if err == nil && n == 0 || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) { // reset: it left data unread
		return 0, 0, io.EOF // unwrapped: net adds an OpError
	}
	var file *os.File
	if err == nil {
		file, err = fileOf(oob[:oobn])
	}
	if file != nil && onListener != nil {
		onListener(file, conn)
	} else {
		file.Close() // may be nil
	}
	if err == nil && flags&unix.MSG_CTRUNC != 0 { // a file was sent, but no descriptor was free
		err = os.NewSyscallError("recvmsg", unix.EMFILE)
	}
	if err == nil {
		if _, err = io.ReadFull(conn, b[n:]); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	return binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:]), err
}

// fileOf returns the file of a control message, or nil.
func fileOf(control []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	// ReadMsgUnix has set close-on-exec. Non-blocking: the poller watches a filter's listener.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fds[0]))
	}
	return os.NewFile(uintptr(fds[0]), "sent by a guest's launcher"), nil
}

// ConfineSource is C source with which a process gives up its rights before its program runs: it sets
// limits, user, no_new_privs, a Landlock ruleset and a system call filter, and drops capabilities. The
// entry program and the children of zygotes share it. A unit includes it after it has defined _GNU_SOURCE.
// All its functions are static, and the unit must use each of them, in an order of its choice: the source does
// not detect a caller that omits a step.
//
//go:embed src/confine.c
var ConfineSource string

//go:embed src/protocol.c
var protocolSource string

//go:embed src/steps.c
var stepsSource string

// Source is the C source of the program, as one translation unit: src/protocol.c reads the
// list, and src/steps.c executes it, with the functions of ConfineSource. It needs only a C
// library and should be linked statically.
var Source = protocolSource + ConfineSource + stepsSource

// Version is the second argument of the program, and VERSION in src/protocol.c. A program
// of another version, from an image that another gaol built, exits with status 125. It must
// change with the protocol and with the numbers of the steps.
const Version = "3"

// Paths in an image of the programs that start a jail.
const (
	Path   = "/usr/libexec/gaol/enter"     // the compiled program, mode 0711, owned by root
	Reaper = "/usr/libexec/gaol/catatonit" // the static pid 1
)

// Child is a child of this process that has not been waited for.
type Child struct {
	pid   int
	pidfd *os.File
	conn  syscall.RawConn

	mu     sync.Mutex
	reaped bool // the kernel may have reused the pid
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // the signal that killed it
}

// Adopt returns a Child for the child process pid. If it fails, it kills the process and
// waits for it.
//
// Preconditions: no other code waits for the process.
func Adopt(pid int) (*Child, error) {
	// Linux 5.10. waitid(2) with such a pidfd returns EAGAIN instead of blocking.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL) // not waited for yet, so the pid is still its own
		_, _ = wait(unix.P_PID, pid)
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	c := &Child{pid: pid, pidfd: os.NewFile(uintptr(fd), "pidfd")}
	c.conn, err = c.pidfd.SyscallConn()
	return c, err
}

// PID returns the child's pid.
func (c *Child) PID() int { return c.pid }

// Kill kills the child. It does nothing if the child was waited for.
func (c *Child) Kill() error {
	err := c.Signal(unix.SIGKILL, false)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Signal sends a signal to the child or, with group, to all processes of the process
// group that it leads. It returns os.ErrProcessDone if the child was waited for. Signals
// to a child that has ended but was not waited for have no effect.
//
// Preconditions: with group, the child has led a session since its program started.
func (c *Child) Signal(s syscall.Signal, group bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return os.ErrProcessDone
	}
	first := s
	if group { // only asks whether the child exists, so that the group is still its own
		first = 0
	}
	err := kernfile.Control(c.pidfd, func(fd int) error { return unix.PidfdSendSignal(fd, first, nil, 0) })
	switch {
	case err == unix.ESRCH || err == os.ErrClosed: // a supervisor has waited for it, or that has failed
		return os.ErrProcessDone
	case err == nil && group:
		err = unix.Kill(-c.pid, s)
	}
	return os.NewSyscallError("kill", err)
}

// Wait waits until the child ends and returns how it ended. It must be called exactly
// once for each child.
func (c *Child) Wait() (Exit, error) {
	defer c.pidfd.Close()
	var exit Exit
	var err error
	tryWait := func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		exit, err = wait(unix.P_PIDFD, int(fd)) // does not block: see Adopt
		c.reaped = err == nil
		return err != unix.EAGAIN
	}
	if c.conn.Read(tryWait) != nil { // the poller could not add it: block a thread
		closed := c.conn.Control(func(fd uintptr) {
			for !tryWait(fd) {
				_, _ = kernfile.Poll(int(fd), unix.POLLIN, -1)
			}
		})
		if closed != nil {
			return Exit{}, closed
		}
	}
	return exit, os.NewSyscallError("waitid", err)
}
