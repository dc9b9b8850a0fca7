package zygote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/kernel"
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
	host, child, err := kernfile.SocketPair(unix.SOCK_SEQPACKET)
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
	deadline := time.Now().Add(kernel.Timeout(startTimeout))
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

// Options limit the use of a zygote. Zero fields have defaults. Forks and Age are not
// strict: an old zygote is used until its successor is warm.
type Options struct {
	Forks int           // children of one zygote, which share an address space layout; default 5,000
	Age   time.Duration // since its start; default 10 minutes

	// Patience is how long a fork may take. It normally takes milliseconds: a zygote that
	// takes longer is considered hung and is replaced. The next attempt has twice as long,
	// so that a busy machine is not mistaken for a hung zygote. Default 2 seconds, by kernel.Timeout.
	Patience time.Duration
}

// Pool keeps a zygote warm and replaces it. It is safe for concurrent use.
type Pool struct {
	spec    Spec // its Cgroup is for the zygotes of this pool only
	options Options
	sweep   sync.Once

	mu         sync.Mutex
	now        *Zygote
	next       *successor // nil: none is being started
	closed     bool
	background sync.WaitGroup // goroutines
	closeErr   error          // of closing old zygotes
}

// successor is a zygote that is being started.
type successor struct {
	done   chan struct{} // closed when the start has ended
	zygote *Zygote       // valid then
	err    error
}

// NewPool returns a pool of zygotes that s describes. It does not start one yet. The
// zygotes' cgroup is a child of s.Cgroup. Successive zygotes share it, because the kernel keeps a removed group
// for as long as anything is charged to it, such as pages of the image that its zygote was the first to read.
func NewPool(s Spec, o Options) *Pool {
	o.Forks = cmp.Or(o.Forks, 5000)
	o.Age = cmp.Or(o.Age, 10*time.Minute)
	o.Patience = cmp.Or(o.Patience, kernel.Timeout(2*time.Second))
	s.Cgroup = fmt.Sprintf("%s/"+groupPattern, s.Cgroup, os.Getpid(), groups.Add(1))
	return &Pool{spec: s, options: o}
}

// ErrClosed is the error of a closed pool.
var ErrClosed = errors.New("the pool of zygotes is closed")

// Fork calls [Zygote.Fork]. If the zygote is broken, Fork replaces it and retries with the
// new one: the run has not started in that case.
func (p *Pool) Fork(ctx context.Context, e *Entry, program *Program) (*Child, error) {
	const attempts = 3
	var err error
	for attempt := range attempts {
		var z *Zygote
		var child *Child
		if z, err = p.get(ctx); err == nil {
			child, err = z.Fork(ctx, e, program, p.options.Patience<<attempt)
		}
		if !errors.Is(err, ErrBroken) {
			return child, err
		}
		p.drop(z)
	}
	return nil, err
}

// Warm starts a zygote in the background, unless there is one, so that the first Fork waits
// for less time.
func (p *Pool) Warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.now == nil && p.next == nil {
		p.startNext()
	}
}

// Wait waits until a zygote is ready. It returns an error if none can be started.
func (p *Pool) Wait(ctx context.Context) error {
	_, err := p.get(ctx)
	return err
}

// get returns the current zygote. It starts one if there is none.
func (p *Pool) get(ctx context.Context) (*Zygote, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if p.next == nil && (p.now == nil || p.old(p.now)) {
		p.startNext()
	}
	z, next := p.now, p.next
	p.mu.Unlock()
	if z != nil {
		return z, nil
	}
	select {
	case <-next.done:
		return next.zygote, next.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// old reports whether it is time to start a successor, at nine tenths of a zygote's life.
func (p *Pool) old(z *Zygote) bool {
	forks, age := int(z.forks.Load()), time.Since(z.started)
	return forks >= p.options.Forks-p.options.Forks/10 || age >= p.options.Age-p.options.Age/10
}

// startNext starts a zygote in the background, which then replaces the current one.
//
// Preconditions: p.mu is held.
func (p *Pool) startNext() {
	next := &successor{done: make(chan struct{})}
	p.next = next
	p.background.Go(func() {
		p.sweep.Do(func() { _ = sweep(path.Dir(p.spec.Cgroup)) }) // leftover groups are harmless
		next.zygote, next.err = Start(p.spec)
		p.mu.Lock()
		old := p.now
		if next.err == nil {
			p.now = next.zygote
		} else {
			old = nil // keep the old one
		}
		p.next = nil
		close(next.done)
		p.mu.Unlock()
		p.retire(old)
	})
}

// drop closes a zygote, which may be nil, unless another goroutine does.
func (p *Pool) drop(z *Zygote) {
	p.mu.Lock()
	if p.now != z {
		z = nil
	} else {
		p.now = nil
	}
	p.mu.Unlock()
	p.retire(z)
}

// retire closes a zygote, which may be nil.
func (p *Pool) retire(z *Zygote) {
	if z == nil {
		return
	}
	z.mu.Lock() // waits for a fork
	z.broken = true
	z.mu.Unlock()
	err := z.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeErr = errors.Join(p.closeErr, err)
}

// Close closes the pool's zygote. Its children continue to run. Close is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.background.Wait()
	p.mu.Lock()
	last := p.now
	p.mu.Unlock()
	p.drop(last)
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.closeErr, cgroup.Remove(context.Background(), p.spec.Cgroup))
}

var groups atomic.Int64

// groupPattern contains the pid of the host, for sweep.
const groupPattern = "zygote-%d-%d"

// sweep removes the groups below parent whose hosts are dead. Their zygotes died with them.
func sweep(parent string) error {
	group, err := cgroup.Open(parent)
	if err != nil {
		return err
	}
	return group.Sweep(context.Background(), func(name string) bool {
		var pid, n int
		if _, err := fmt.Sscanf(name, groupPattern, &pid, &n); err != nil {
			return true
		}
		return unix.Kill(pid, 0) != unix.ESRCH
	})
}
