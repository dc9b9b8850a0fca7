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
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/jail/enter"
)

// Spec is what a zygote is made of.
type Spec struct {
	// Image is the folder that is its root. Its Path must hold the object compiled
	// from Source.
	Image string

	// Layer is laid over Image.
	Layer []File

	// Args are the program, a guest path, and its arguments. It must be Node, and
	// call the addon's serve once it is warm.
	Args []string

	Env []string // K=V

	// Dir is an empty folder to mount at; the host sees none of it. Zygotes may
	// share one.
	Dir string

	// Cgroup is the path of a cgroup for the zygote alone. Start makes it if it is
	// missing; the caller removes it.
	Cgroup string
}

// File is a file of Spec.Layer, which root owns and all may read.
type File struct {
	Path string // guest path
	Data []byte
}

const (
	startTimeout = 20 * time.Second // until it is warm: a busy machine takes its time
	sendTimeout  = 10 * time.Second // until a child has taken in its request
	answerLen    = 16
	orderLen     = 8
	bornInCgroup = 1 // order.flags
)

// Zygote is a running zygote.
type Zygote struct {
	process *os.Process
	cgroup  string
	started time.Time

	forks atomic.Int64

	mu     sync.Mutex // one order at a time
	conn   *net.UnixConn
	serial uint32
	broken bool // it died or does not answer
	lost   bool // it may have a child whose pid it has not told

	children known

	end  chan struct{} // closed to end the thread that it depends on
	dead chan struct{} // closed when it died unasked
	gone chan struct{} // closed when it is no more
	err  error         // of the clearing
	once sync.Once
}

// Start starts a zygote and returns when it is warm.
func Start(ctx context.Context, s Spec) (*Zygote, error) {
	z := &Zygote{cgroup: s.Cgroup, started: time.Now(), end: make(chan struct{}), dead: make(chan struct{}), gone: make(chan struct{})}
	if err := z.start(ctx, &s); err != nil {
		return nil, fmt.Errorf("start zygote: %w", err)
	}
	return z, nil
}

func (z *Zygote) start(ctx context.Context, s *Spec) error {
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
	launched := make(chan error)
	go z.keep(s, child, written, launched)
	err = <-launched
	written.Close() // both are the zygote's alone now: their end tells of its death
	child.Close()
	if err != nil {
		return errors.Join(err, host.Close())
	}
	if err := z.waitWarm(ctx, s); err != nil {
		_ = z.process.Kill()
		_ = output.SetReadDeadline(time.Now().Add(time.Second))
		said, _ := io.ReadAll(io.LimitReader(output, 4<<10))
		return errors.Join(fmt.Errorf("%w: %s", err, bytes.TrimSpace(said)), z.Close())
	}
	return nil
}

// keep starts the process on a thread of its own, which the process is to end
// with, and clears up after it.
func (z *Zygote) keep(s *Spec, child, written *os.File, launched chan<- error) {
	goruntime.LockOSThread() // never unlocked: the thread has another root
	defer close(z.gone)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		err = stage(s.Dir, s)
	}
	if err == nil {
		z.process, err = os.StartProcess(s.Args[0], s.Args, &os.ProcAttr{
			Dir: "/",
			// Bound now, a function's first call in a child costs neither a search nor a page.
			Env:   append([]string{"LD_PRELOAD=" + Path, "LD_BIND_NOW=1"}, s.Env...),
			Files: []*os.File{null, written, written, null, null, null, child}, // CONTROL of src/wire.c is the last
			// Its own prctl comes only with its first line: a host that is killed before would leave it to warm up.
			Sys: &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
		})
	}
	launched <- enter.StartError(err)
	if err != nil {
		return
	}
	ended := make(chan error, 1)
	go func() {
		_, err := z.process.Wait()
		ended <- err
	}()
	select {
	case z.err = <-ended:
		close(z.dead)
		<-z.end
	case <-z.end:
		_ = z.process.Kill()
		z.err = <-ended
	}
}

// waitWarm also moves the zygote to its cgroup: what it allocates is its own.
func (z *Zygote) waitWarm(ctx context.Context, s *Spec) error {
	group, err := cgroup.New(s.Cgroup, cgroup.Limits{})
	if err != nil {
		return err
	}
	if err := group.AddPID(z.process.Pid); err != nil {
		return err
	}
	deadline := time.Now().Add(startTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	defer context.AfterFunc(ctx, func() { _ = z.conn.SetReadDeadline(time.Now()) })()
	_, err = z.answer(deadline)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Fork makes a child that enters a jail as e says and becomes p there, and returns
// when its own program runs, or when it has ended. A failed step is a [*StepError];
// another error means that the zygote is not to be used any more, see
// [Zygote.Broken]. That is so, too, when patience is over before the zygote has
// forked, which takes it milliseconds.
//
// The child is this process's, which has to wait for it. It ends when ctx does, if
// that is while Fork runs.
func (z *Zygote) Fork(ctx context.Context, e *Entry, p *Program, patience time.Duration) (*Child, error) {
	text, err := p.encode()
	if err != nil {
		return nil, err
	}
	c, err := z.send(e, false, patience)
	if err != nil {
		return nil, err
	}
	defer c.letGo()
	if err := c.bounded(ctx, func() error { return c.become(p, text) }); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// Park is Fork up to the program: the child is in its jail, and waits for
// [Child.Run].
func (z *Zygote) Park(ctx context.Context, e *Entry, patience time.Duration) (*Child, error) {
	c, err := z.send(e, true, patience)
	if err != nil {
		return nil, err
	}
	if err := c.bounded(ctx, c.report); err != nil {
		c.letGo()
		c.end()
		return nil, err
	}
	c.parked.Store(true)
	return c, nil
}

// send makes a child that has its Entry.
func (z *Zygote) send(e *Entry, parked bool, patience time.Duration) (*Child, error) {
	host, run, err := enter.SocketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	c, err := z.order(e, run, patience)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	c.host, c.listening = host, e.Listening
	if err := c.setOOMScore(e.OOMScore); err != nil {
		c.end()
		return nil, errors.Join(err, host.Close())
	}
	// Not before the answer: a child whose zygote died without one gets no request,
	// and so can't run what another zygote is then asked for.
	if err := c.tell(e.encode(parked), e.files()); err != nil {
		c.end()
		return nil, errors.Join(err, host.Close())
	}
	return c, nil
}

// order has the zygote fork, and closes run.
func (z *Zygote) order(e *Entry, run *os.File, patience time.Duration) (*Child, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	defer run.Close()
	if z.broken {
		return nil, ErrBroken
	}
	z.serial++
	z.forks.Add(1)
	fds := []int{int(run.Fd()), int(e.Jail.Fd())}
	flags := uint32(0)
	if e.Cgroup != nil {
		flags = bornInCgroup
		fds = append(fds, int(e.Cgroup.Fd()))
	}
	message := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, z.serial), flags)
	deadline := time.Now().Add(patience)
	_ = z.conn.SetWriteDeadline(deadline)
	if _, _, err := z.conn.WriteMsgUnix(message, unix.UnixRights(fds...), nil); err != nil {
		return nil, z.fail(err)
	}
	run.Close() // so that the child's end is the last
	pid, err := z.answer(deadline)
	if err != nil {
		z.lost = z.broken
		return nil, err
	}
	return z.child(pid)
}

// ErrBroken is what a zygote that died, or does not answer, gives.
var ErrBroken = errors.New("the zygote is broken")

// answer reads one, and returns the pid in it.
//
// Preconditions: z.mu is held, or z is new.
func (z *Zygote) answer(deadline time.Time) (int, error) {
	var b [answerLen]byte
	_ = z.conn.SetReadDeadline(deadline)
	n, err := z.conn.Read(b[:])
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }
	switch {
	case err != nil:
		return 0, z.fail(err)
	case n != answerLen || word(0) != z.serial:
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

// Broken reports whether the zygote died or did not answer.
func (z *Zygote) Broken() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.broken
}

// Close ends the zygote. Its children live on.
func (z *Zygote) Close() error {
	z.once.Do(func() {
		close(z.end)
		<-z.gone
		z.err = errors.Join(z.err, z.conn.Close(), z.reapLost())
	})
	return z.err
}
