package zygote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/mounts"
)

// Spec describes a zygote.
type Spec struct {
	// Image is the folder that becomes the root. It must have the object compiled from
	// Source at Path.
	Image string

	// Layer is mounted over Image.
	Layer []File

	// Args are the program, a guest path, and its arguments. The program must be Node, and
	// call the addon's serve when it is warm.
	Args []string

	Env []string // K=V

	// Dir is an empty folder to use as a mount point. The mounts are not visible to the
	// host. Zygotes may share it.
	Dir string

	// Cgroup is the path of a cgroup for zygotes only. Start creates it if it is
	// missing; the caller removes it.
	Cgroup string
}

// File is a file of Spec.Layer. It belongs to root.
type File = mounts.File

const (
	startTimeout   = 20 * time.Second // until the zygote is warm, on a busy machine
	sendTimeout    = 10 * time.Second // until a child has read its request
	replyLen       = 16
	createInCgroup = 1 // order.flags
	enlarge        = 2
)

// Zygote is a running zygote.
type Zygote struct {
	process *os.Process
	started time.Time

	forks atomic.Int64

	mu     sync.Mutex // serializes orders
	conn   *net.UnixConn
	serial uint32
	broken bool // it died or does not reply
	lost   bool // it may have a child whose pid it has not reported

	children sync.Map // pids of children that were reported and not yet waited for

	ended  chan struct{} // closed when the process has ended and its parent thread ends
	err    error         // of waiting and closing
	closed sync.Once
}

// Start starts a zygote and returns when it is warm.
func Start(s Spec) (*Zygote, error) {
	z := &Zygote{started: time.Now(), ended: make(chan struct{})}
	if err := z.start(&s); err != nil {
		return nil, fmt.Errorf("start zygote: %w", err)
	}
	return z, nil
}

// start reads the output of a zygote only if it does not get warm: then it is a part of the
// error.
func (z *Zygote) start(s *Spec) error {
	host, child, err := enter.SocketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return err
	}
	z.conn = host
	output, written, err := os.Pipe()
	if err != nil {
		return errors.Join(err, host.Close(), child.Close())
	}
	defer output.Close()
	err = kernfile.StartOnThread(func() (err error) { // the kernel kills the process when the thread ends
		z.process, err = startProcess(s, child, written)
		return err
	}, func() {
		_, z.err = z.process.Wait()
		close(z.ended)
	})
	written.Close() // only the zygote has both now: they are closed when it dies
	child.Close()
	if err != nil {
		return errors.Join(err, host.Close())
	}
	if err := z.waitWarm(s); err != nil {
		_ = z.process.Kill()
		_ = output.SetReadDeadline(time.Now().Add(time.Second))
		text, _ := io.ReadAll(io.LimitReader(output, 4<<10))
		return errors.Join(fmt.Errorf("%w: %s", err, bytes.TrimSpace(text)), z.Close())
	}
	return nil
}

// startProcess changes the thread's root and starts the process.
//
// Preconditions: see mounts.EnterImage.
func startProcess(s *Spec, child, output *os.File) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := mounts.EnterImage(s.Dir, s.Image, s.Layer); err != nil {
		return nil, err
	}
	p, err := os.StartProcess(s.Args[0], s.Args, &os.ProcAttr{
		Dir: "/",
		// LD_BIND_NOW: the first call of a function in a child then neither resolves the
		// symbol nor copies a page.
		Env:   append([]string{"LD_PRELOAD=" + Path, "LD_BIND_NOW=1"}, s.Env...),
		Files: []*os.File{null, output, output, null, null, null, child}, // the last is CONTROL of src/protocol.c
		// It also calls prctl itself, but only after execve: without Pdeathsig it would
		// survive a host that is killed before that.
		Sys: &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
	return p, enter.StartError(err)
}

// waitWarm moves the zygote to its cgroup, which its memory is charged to, and waits until
// it is warm.
func (z *Zygote) waitWarm(s *Spec) error {
	group, err := cgroup.New(s.Cgroup, cgroup.Limits{})
	if err != nil {
		return err
	}
	if err := group.AddPID(z.process.Pid); err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	if _, err := z.readReply(deadline); err != nil {
		return err
	}
	return z.enlarge(deadline)
}

// enlarge makes the zygote move memory that its children copy to huge pages. The host passes
// smaps, because the zygote lacks /proc. Objects in older images take the order for one to fork,
// and fail, which does not matter.
func (z *Zygote) enlarge(deadline time.Time) error {
	smaps, err := os.Open(fmt.Sprintf("/proc/%d/smaps", z.process.Pid))
	if err != nil {
		return err
	}
	defer smaps.Close()
	if err := z.order(enlarge, []int{int(smaps.Fd())}, deadline); err != nil {
		return err
	}
	if _, err = z.readReply(deadline); errors.Is(err, ErrBroken) {
		return err
	}
	return nil
}

// order sends the zygote an order.
//
// Preconditions: z.mu is held, or z is new.
func (z *Zygote) order(flags uint32, fds []int, deadline time.Time) error {
	z.serial++
	message := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, z.serial), flags)
	_ = z.conn.SetWriteDeadline(deadline)
	if _, _, err := z.conn.WriteMsgUnix(message, unix.UnixRights(fds...), nil); err != nil {
		return z.fail(err)
	}
	return nil
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
	host, run, err := enter.SocketPair(unix.SOCK_STREAM)
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

func (z *Zygote) fail(err error) error {
	z.broken = true
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// Close kills the zygote. Its children continue to run.
func (z *Zygote) Close() error {
	z.closed.Do(func() {
		_ = z.process.Kill() // if it has not ended
		<-z.ended
		z.err = errors.Join(z.err, z.conn.Close(), z.reapLost())
	})
	return z.err
}
