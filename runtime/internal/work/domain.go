package work

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"time"

	"gaol/jail/cgroup"
	"gaol/jail/subprocess"
)

// Limits of a process and its operations.
const (
	maxTime   = 10 * time.Second // of an operation: large valid code takes less than a second
	maxMemory = 256 << 20        // of a process: bundles of the maximum size take a fifth
	maxFrame  = 24 << 20         // of a request or reply in bytes: programs have up to 16 MiB
	maxPids   = 32               // threads
	idleTime  = 30 * time.Second // until an unused process ends
)

// maxProcesses is the maximum number of a domain's processes. Further operations wait in order.
var maxProcesses = min(4, max(2, goruntime.GOMAXPROCS(0)))

// Domain owns the processes of one trust domain. It is safe for concurrent use.
type Domain struct {
	parent string        // of their cgroups; empty: operations run in this process
	slots  chan struct{} // of running operations
	limit  time.Duration // of each

	mu    sync.Mutex
	users int        // calls of Open without Close
	idle  []*process // the last one was used last
}

// domains are the domains of this program by parent.
var domains struct {
	sync.Mutex
	byParent map[string]*Domain
}

// InProcess is the domain that performs operations in this process.
var InProcess = &Domain{}

// Open returns the domain of a parent of cgroups. It starts no process. The caller must close it.
func Open(parent string) *Domain {
	domains.Lock()
	defer domains.Unlock()
	d := domains.byParent[parent]
	if d == nil {
		d = &Domain{parent: parent, slots: make(chan struct{}, maxProcesses), limit: maxTime}
		if domains.byParent == nil {
			domains.byParent = map[string]*Domain{}
		}
		domains.byParent[parent] = d
	}
	d.users++
	return d
}

// Close gives the domain up. Its processes end when they have been idle for a while, unless another
// Open uses them.
func (d *Domain) Close() {
	if d.parent != "" {
		domains.Lock()
		defer domains.Unlock()
		d.users--
	}
}

// CloseIdle ends the processes of domains that are not open, and returns when nothing is left of them.
func CloseIdle() error {
	var unused []*process
	domains.Lock()
	for parent, d := range domains.byParent {
		if d.users == 0 {
			delete(domains.byParent, parent)
			unused = append(unused, d.takeAll()...)
		}
	}
	domains.Unlock()
	var failed error
	for _, p := range unused {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}

// takeAll removes the idle processes.
func (d *Domain) takeAll() []*process {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.idle
	d.idle = nil
	return list
}

// take removes an idle process that is alive, or returns nil.
func (d *Domain) take() *process {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.idle) > 0 {
		p := d.idle[len(d.idle)-1]
		d.idle = d.idle[:len(d.idle)-1]
		p.expiry.Stop()
		select {
		case <-p.Done():
			_ = p.Close() // the host's OOM killer, or its root, has killed it
		default:
			return p
		}
	}
	return nil
}

// put makes a process idle.
func (d *Domain) put(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, p)
	p.expiry = time.AfterFunc(idleTime, func() {
		if d.remove(p) {
			_ = p.Close() // a failure leaves a claim, which a sweep removes
		}
	})
}

// remove reports whether the process was idle.
func (d *Domain) remove(p *process) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.idle {
		if other == p {
			d.idle = append(d.idle[:i], d.idle[i+1:]...)
			return true
		}
	}
	return false
}

// A Failure is why an operation failed whose input is to blame: it took too long, too much memory or
// was too large, or it has crashed its process.
type Failure struct {
	Operation string
	Reason    string // for the input's author
	Err       error  // nil, or how the process ended
}

// Error returns "operation: reason".
func (f *Failure) Error() string { return f.Operation + ": " + f.Reason }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// perform performs a request in a process of the domain.
func (d *Domain) perform(ctx context.Context, name string, request []byte) ([]byte, error) {
	if len(request) > maxFrame {
		return nil, &Failure{Operation: name, Reason: fmt.Sprintf("it has more than %d bytes", maxFrame)}
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p := d.take()
	if p == nil {
		var err error
		if p, err = start(ctx, d.parent); err != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	reply, err := p.exchange(limited, request)
	if err == nil {
		d.put(p)
		return reply, nil
	}
	closed := p.Close()
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), closed)
	case closed != nil:
		return nil, closed
	}
	return nil, p.failure(name, d.limit, limited.Err())
}

// failure returns why an exchange failed. The process has ended.
func (p *process) failure(name string, limit time.Duration, timeout error) *Failure {
	f := &Failure{Operation: name, Reason: "it is too complex", Err: p.Err()}
	switch {
	case timeout != nil:
		f.Reason += fmt.Sprintf(": it took longer than %v", limit)
		f.Err = timeout
	case errors.Is(f.Err, subprocess.ErrMemory):
		f.Reason += fmt.Sprintf(": it needs more than %d MiB of memory", maxMemory>>20)
	default:
		f.Reason += ": it nests too deeply, or has found an error of the program that parses it"
	}
	return f
}

// start starts a process.
func start(ctx context.Context, parent string) (*process, error) {
	p, err := role.Start(ctx, subprocess.Spec{
		CgroupParent: parent, Limits: cgroup.Limits{Memory: maxMemory, CPUs: 1, Pids: maxPids},
	})
	if err != nil {
		return nil, err
	}
	return &process{Process: p}, nil
}

// process is a subprocess that performs one request at a time. Requests and replies are frames: a length of
// four bytes, and as many bytes.
type process struct {
	*subprocess.Process
	expiry *time.Timer // ends it while it is idle
}

var errFrame = errors.New("a frame that is too large")

func writeFrame(w io.Writer, b []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b)))
	_, err := w.Write(append(frame, b...))
	return err
}

// readFrame allocates as the bytes arrive.
func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > maxFrame {
		return nil, errFrame
	}
	b, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// exchange sends a request and returns the reply. After an error the process cannot be used any more.
func (p *process) exchange(ctx context.Context, request []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, p.Kill)
	err := writeFrame(p.Conn(), request)
	var reply []byte
	if err == nil {
		reply, err = readFrame(p.Conn())
	}
	if !stop() && err == nil { // it is being killed
		err = ctx.Err()
	}
	return reply, err
}

// maxStack bounds recursion before the limit on memory does: the kernel's OOM killer is slower.
const maxStack = maxMemory / 2

// serve performs requests in the subprocess.
func serve(host *os.File) error {
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(400) // the heap is small: by default each request or two would collect it
	for {
		request, err := readFrame(host)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := dispatch(request)
		if err != nil {
			return err
		}
		if err := writeFrame(host, reply); err != nil {
			return err
		}
	}
}

var role *subprocess.Role

// In an init function, so that all operations of this package are defined.
func init() { role = subprocess.Register(subprocess.Role{Name: "work", Serve: serve}) }
