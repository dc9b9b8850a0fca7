package zygote

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/enter"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// Child is a process that a zygote has forked. Its parent is this process.
type Child struct {
	*enter.Child
	zygote *Zygote

	host  *net.UnixConn // open until the program runs; the child exits if it is closed before
	taken atomic.Bool   // host is being closed, by Run or by Wait

	reports    bool                         // the child reports before its program runs
	onListener func(*os.File, syscall.Conn) // of the Entry
}

// Fork creates a child that enters a jail as described by e and runs p there. It returns
// when the child's own program runs or when the child has ended. If p is nil, it returns when
// the child has entered its jail and waits for [Child.Run]. A failed step is a
// [*step.Error]. After [ErrBroken] the zygote can't be used any more; that is also the
// error if the fork, which takes milliseconds, takes longer than patience.
//
// The child is a child of this process, which must wait for it. It is killed if ctx is done
// while Fork runs.
func (z *Zygote) Fork(ctx context.Context, e *Entry, p *Program, patience time.Duration) (*Child, error) {
	c, err := z.newChild(e, p == nil, patience)
	if err != nil {
		return nil, err
	}
	if p == nil {
		err = c.killOnDone(ctx, c.awaitReport)
	} else if err = c.Run(ctx, p); errors.Is(err, ErrEnded) {
		err = nil // Wait returns how it ended
	}
	if err != nil {
		c.discard()
		return nil, err
	}
	return c, nil
}

// newChild creates a child and sends it the request.
func (z *Zygote) newChild(e *Entry, parked bool, patience time.Duration) (*Child, error) {
	host, run, err := kernfile.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	c, err := z.fork(e, host, run, patience)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	c.reports, c.onListener = parked || e.OnListener != nil, e.OnListener
	// After the reply: if the zygote dies before it replies, its child must not run the
	// program, which another zygote is then asked to run.
	if err = c.raiseOOMScore(); err == nil {
		err = c.send(e.encode(parked), e.files())
	}
	if err != nil {
		c.discard()
		return nil, err
	}
	return c, nil
}

// fork orders the zygote to fork, and closes run, the child's end of host.
func (z *Zygote) fork(e *Entry, host *net.UnixConn, run *os.File, patience time.Duration) (*Child, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	defer run.Close()
	if z.broken {
		return nil, ErrBroken
	}
	z.forks.Add(1)
	fds := []int{int(run.Fd()), int(e.Jail.Fd())}
	flags := uint32(0)
	if e.Cgroup != nil {
		flags = createInCgroup
		fds = append(fds, int(e.Cgroup.Fd()))
	}
	deadline := time.Now().Add(patience)
	if err := z.order(flags, fds, deadline); err != nil {
		return nil, err
	}
	run.Close() // only the child has this end now
	pid, err := z.readReply(deadline)
	if err != nil {
		z.lost = z.broken
		return nil, err
	}
	return z.adopt(pid, host)
}

// ErrBroken is the error of a zygote that died or does not reply.
var ErrBroken = errors.New("the zygote is broken")

// readReply reads a reply and returns its pid.
//
// Preconditions: z.mu is held, or z is new.
func (z *Zygote) readReply(deadline time.Time) (int, error) {
	var b [replyLen]byte
	_ = z.conn.SetReadDeadline(deadline)
	n, err := z.conn.Read(b[:])
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }
	switch {
	case err != nil:
		return 0, z.fail(err)
	case n != replyLen || word(0) != z.serial:
		return 0, z.fail(errUnexpected)
	case word(2) != 0:
		return 0, stepError(word(2), word(3))
	}
	return int(int32(word(1))), nil
}

// ErrEnded is the error of a child that has ended without a report.
var ErrEnded = errors.New("the forked process has ended")

// Run makes a child run p. It returns when [Zygote.Fork] does. If it fails, it kills the child. It
// must be called only once.
func (c *Child) Run(ctx context.Context, p *Program) error {
	if c.taken.Swap(true) {
		return ErrEnded
	}
	defer func() { _ = c.host.Close() }()
	text, err := p.encode()
	if err == nil {
		err = c.killOnDone(ctx, func() error { return c.become(p, text) })
	}
	if err != nil {
		_ = c.Kill()
	}
	return err
}

// killOnDone calls f, and kills the child if ctx is done before f returns.
func (c *Child) killOnDone(ctx context.Context, f func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Kill() })
	defer stop()
	return f()
}

// send sends data with files. It ignores EPIPE: a child that has ended has reported why.
func (c *Child) send(data []byte, files []*os.File) error {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	_ = c.host.SetWriteDeadline(time.Now().Add(kernel.Timeout(sendTimeout)))
	n, _, err := c.host.WriteMsgUnix(data, unix.UnixRights(fds...), nil)
	if err == nil && n < len(data) {
		_, err = c.host.Write(data[n:])
	}
	if errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// raiseOOMScore makes the kernel kill guests first when the machine is short of memory, as
// enter.OOMScore does. The host does it: the zygote lacks /proc, and the jail's is read-only.
// The pid is valid until the child is waited for.
func (c *Child) raiseOOMScore() error {
	err := kernfile.WriteFile("/proc/"+strconv.Itoa(c.PID())+"/oom_score_adj", "1000")
	if errors.Is(err, unix.ESRCH) { // the child has ended, and has reported why
		return nil
	}
	return err
}

// become sends the child its program and waits until the program runs or the child has
// ended.
func (c *Child) become(p *Program, text []byte) error {
	if err := c.send(text, p.Files); err != nil {
		return err
	}
	if c.reports {
		if err := c.awaitReport(); err != nil {
			return err
		}
	}
	eof, err := c.readReport()
	if err == nil && !eof {
		err = errUnexpected
	}
	return err
}

// awaitReport waits for the report that no step has failed. It returns ErrEnded if the child ends
// without a report.
func (c *Child) awaitReport() error {
	eof, err := c.readReport()
	if eof {
		return ErrEnded
	}
	return err
}

// readReport reads a report. The error is that of the failed step, if the report has one. At the end
// of the reports, the child's program runs, or the child has ended.
func (c *Child) readReport() (eof bool, err error) {
	step, errno, err := enter.ReadReport(c.host, c.onListener)
	switch {
	case err == io.EOF:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read the child's report: %w", err)
	case step != 0:
		return false, stepError(step, errno)
	}
	return false, nil
}

// Wait waits until the child ends and returns how it ended. It must be called exactly once
// for each child.
func (c *Child) Wait() (enter.Exit, error) {
	defer c.zygote.children.Delete(c.PID())
	defer func() {
		if !c.taken.Swap(true) {
			_ = c.host.Close()
		}
	}()
	return c.Child.Wait()
}

// discard kills a child that is not used and waits for it.
func (c *Child) discard() {
	_ = c.Kill()
	_, _ = c.Wait()
}

// adopt returns the child that the zygote has reported.
func (z *Zygote) adopt(pid int, host *net.UnixConn) (*Child, error) {
	p, err := enter.Adopt(pid)
	if err != nil {
		return nil, err
	}
	z.children.Store(pid, nil)
	return &Child{Child: p, zygote: z, host: host}, nil
}

// lostTimeout bounds the wait for a lost child, which exits within a millisecond.
const lostTimeout = 10 * time.Second

var errLost = errors.New("a child of a dead zygote does not end")

// reapLost waits for a child that the zygote has forked without reporting its pid, if there
// is one. Otherwise it would remain a zombie, and its jail's pid 1 can't end before it is
// reaped. The child exits because the host has closed the socket for its request.
//
// The child is found by its process group, which is the zygote's until a child starts a
// session. It does so only after it has its request, so the other processes in the group are
// known children.
//
// Preconditions: the zygote has ended.
func (z *Zygote) reapLost() error {
	const again = time.Millisecond
	if !z.lost {
		return nil
	}
	for deadline := time.Now().Add(lostTimeout); time.Now().Before(deadline); time.Sleep(again) {
		pid, err := enter.EndedInGroup(z.process.Pid)
		_, isKnown := z.children.Load(pid)
		switch {
		case err == unix.ECHILD: // no children are left in the group
			return nil
		case err != nil && err != unix.EINTR:
			return os.NewSyscallError("waitid", err)
		case pid != 0 && !isKnown:
			_, err = unix.Wait4(pid, nil, 0, nil) // does not block: it has ended
			return os.NewSyscallError("wait4", err)
		}
	}
	return errLost
}

// Entry describes how a child enters a jail, as the guest's user.
type Entry struct {
	// JoinFiles are written to first, to join cgroups.
	JoinFiles []*os.File

	// Cgroup is the directory of the cgroup in which the child is created; may be nil.
	Cgroup *os.File

	// Jail is a pidfd of the jail's pid 1.
	Jail *os.File

	Limits []enter.Limit
	Filter []byte // see enter.List

	// Ruleset, if not nil, is a Landlock ruleset to enforce before the filter is loaded,
	// with RulesetFlags of landlock_restrict_self(2).
	Ruleset      *os.File
	RulesetFlags uint32

	// OnListener, if not nil, is called with the filter's listener when the filter is
	// loaded, and owns it. The child's refused calls block until then. The child closes
	// its end of conn when its own program runs; Fork or Run closes conn.
	OnListener func(listener *os.File, conn syscall.Conn)
}

// Program is the program that a process runs.
type Program struct {
	// Args are the program and its arguments, as in /proc. The program is a guest path,
	// or a name to look up in PATH of Env.
	Args []string

	// Script, if not 0, is the index in Args of a script's path, which its arguments follow. A child
	// of a zygote then continues as the Node that it already is, and Args, which should be Node's
	// command line, are only shown. Zero: the process executes Args[0].
	Script int

	Env []string // K=V
	Dir string   // guest path of the working directory

	// Terminal makes the first of Files, a terminal without a session, the controlling
	// terminal of the process's session.
	Terminal bool

	// Files become the descriptors from 0 on: at least three, at most six.
	Files []*os.File
}

// steps are the names of enum step in src/protocol.c.
var steps = []string{
	1: "request", "pid namespace", "clone", "cgroup", "arguments", "namespaces", "descriptors", "session", "terminal",
	"limit", "user", "capabilities", "chdir", "no_new_privs", "landlock", "seccomp", "event loop", "exec",
}

// errUnexpected is the error of a malformed reply.
var errUnexpected = errors.New("unexpected reply of the zygote")

func stepError(number, errno uint32) error {
	if number == 0 || int(number) >= len(steps) {
		return errUnexpected
	}
	return &step.Error{Step: steps[number], Err: syscall.Errno(errno)}
}

const minFiles, maxFiles = 3, 6

// Bits of request.flags.
const (
	hasRuleset = 1 << iota
	hasListener
)

// files returns the descriptors of the request.
func (e *Entry) files() []*os.File {
	if e.Ruleset == nil {
		return e.JoinFiles
	}
	return append(slices.Clip(e.JoinFiles), e.Ruleset)
}

// encode returns struct request and the data that follows it.
func (e *Entry) encode(parked bool) []byte {
	flags := toInt(e.Ruleset != nil)*hasRuleset + toInt(e.OnListener != nil)*hasListener
	b := words(toInt(parked), len(e.JoinFiles), len(e.Limits), len(e.Filter)/enter.InstructionLen, mounts.GuestUID, mounts.GuestGID, flags, int(e.RulesetFlags))
	for _, l := range e.Limits {
		b = append(b, words(int(l.Resource), 0)...)
		b = binary.NativeEndian.AppendUint64(b, l.Most)
	}
	return append(b, e.Filter...)
}

// encode returns struct program and the data that follows it. It rejects programs that the
// child would reject with a less specific error.
func (p *Program) encode() ([]byte, error) {
	switch {
	case len(p.Files) < minFiles || len(p.Files) > maxFiles:
		return nil, fmt.Errorf("%d files for a process, want %d to %d", len(p.Files), minFiles, maxFiles)
	case len(p.Args) == 0 || p.Script < 0 || p.Script >= len(p.Args):
		return nil, fmt.Errorf("script %d of %d arguments", p.Script, len(p.Args))
	}
	text, err := enter.AppendText(nil, slices.Concat(p.Args, p.Env, []string{p.Dir})...)
	if err != nil {
		return nil, fmt.Errorf("arguments and environment: %w", err)
	}
	return append(words(p.Script, toInt(p.Terminal), len(p.Files), len(p.Args), len(p.Env), len(text)), text...), nil
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func words(list ...int) []byte {
	var b []byte
	for _, n := range list {
		b = binary.NativeEndian.AppendUint32(b, uint32(n))
	}
	return b
}

//go:embed src/protocol.c
var protocolSource string

//go:embed src/threads.c
var threadsSource string

//go:embed src/zygote.c
var zygoteSource string

//go:embed src/request.c
var requestSource string

//go:embed src/random.c
var randomSource string

//go:embed src/child.c
var childSource string

//go:embed src/addon.c
var addonSource string

// Source is the C source of the object that makes Node forkable, as one translation unit:
// src/protocol.c describes the protocol; src/threads.c records Node's helper threads and
// revives them in a child; src/zygote.c is preloaded into Node and forks; src/request.c
// reads a child's requests; src/random.c renews V8's random generator; src/child.c enters the jail, with enter.ConfineSource; and src/addon.c
// is the interface to JavaScript. It needs only a C library and should be linked as a shared
// object.
var Source = protocolSource + enter.ConfineSource + threadsSource + zygoteSource + requestSource + randomSource + childSource + addonSource

// Path is the path of the compiled object in an image.
const Path = "/usr/libexec/gaol/zygote.so"
