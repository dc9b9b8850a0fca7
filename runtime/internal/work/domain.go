package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/strictjson"
	"gaol/jail/cgroup"
	"gaol/jail/subprocess"
	"gaol/runtime/snippets/bundle"
)

// Limits of a process and its operations.
const (
	maxTime   = 10 * time.Second // of an operation: large valid code takes less than a second
	maxMemory = 256 << 20        // of a process: bundles of the maximum size take a fifth
	maxText   = 24 << 20         // of a request or reply in bytes: programs have up to 16 MiB
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

	mu     sync.Mutex
	idle   []*subprocess.Process // the last one was used last
	expiry *time.Timer           // ends them
}

// domains are the domains of this program by parent.
var domains sync.Map

// InProcess is the domain that performs operations in this process.
var InProcess = &Domain{}

// Of returns the domain of a parent of cgroups. It starts no process.
func Of(parent string) *Domain {
	d, _ := domains.LoadOrStore(parent, &Domain{parent: parent, slots: make(chan struct{}, maxProcesses), limit: maxTime})
	return d.(*Domain)
}

// CloseIdle ends the idle processes, and returns when nothing is left of them.
func CloseIdle() (failed error) {
	for _, d := range domains.Range {
		failed = errors.Join(failed, d.(*Domain).closeIdle())
	}
	return failed
}

// closeIdle ends the idle processes.
func (d *Domain) closeIdle() (failed error) {
	for p := d.take(); p != nil; p = d.take() {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}

// take removes an idle process that is alive, or returns nil.
func (d *Domain) take() *subprocess.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.idle) > 0 {
		p := d.idle[len(d.idle)-1]
		d.idle = d.idle[:len(d.idle)-1]
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
func (d *Domain) put(p *subprocess.Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, p)
	if d.expiry == nil {
		d.expiry = time.AfterFunc(idleTime, func() { _ = d.closeIdle() }) // a failure leaves a claim, which a sweep removes
	}
	d.expiry.Reset(idleTime)
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

// perform performs a request in a process of the domain, and decodes the reply.
func (d *Domain) perform(ctx context.Context, name string, limit time.Duration, request []byte, reply any) error {
	if len(request) > maxText {
		return &Failure{Operation: name, Reason: fmt.Sprintf("it has more than %d bytes", maxText)}
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p := d.take()
	if p == nil {
		spec := subprocess.Spec{CgroupParent: d.parent, Limits: cgroup.Limits{Memory: maxMemory, CPUs: 1, Pids: maxPids}}
		var err error
		if p, err = role.Start(ctx, spec); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	limit = cmp.Or(limit, d.limit)
	limited, cancel := context.WithTimeout(ctx, limit) // from now on: turns and starts are not the input's fault
	defer cancel()
	if err := exchange(limited, p, request, reply); err == nil {
		d.put(p)
		return nil
	}
	closed := p.Close()
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), closed)
	case closed != nil:
		return closed
	}
	return failure(p.Err(), name, limit, limited.Err())
}

// failure returns why an exchange failed, whose process has ended.
func failure(exit *subprocess.ExitError, name string, limit time.Duration, timeout error) *Failure {
	f := &Failure{Operation: name, Reason: "it is too complex", Err: exit}
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

// exchange sends a request and decodes the reply. After an error the process cannot be used any more.
func exchange(ctx context.Context, p *subprocess.Process, request []byte, reply any) error {
	stop := context.AfterFunc(ctx, p.Kill)
	_, err := p.Conn().Write(request)
	if err == nil {
		err = strictjson.Read(jsontext.NewDecoder(io.LimitReader(p.Conn(), maxText)), reply)
	}
	if !stop() && err == nil { // it is being killed
		err = ctx.Err()
	}
	return err
}

// maxStack bounds recursion before the limit on memory does: the kernel's OOM killer is slower.
const maxStack = maxMemory / 2

// serve performs requests in the subprocess.
func serve(host *os.File) error {
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(400) // the heap is small: by default each request or two would collect it
	requests := jsontext.NewDecoder(host)
	for {
		var m message
		if err := strictjson.Read(requests, &m); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		run := operations[m.Operation]
		if run == nil {
			return fmt.Errorf("%q is not a valid operation", m.Operation)
		}
		reply, err := run(m.In)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(host).Encode(reply); err != nil {
			return err
		}
	}
}

var role *subprocess.Role

// In an init function, so that all operations of this package are defined.
func init() { role = subprocess.Register(subprocess.Role{Name: "work", Serve: serve}) }

// ContextError returns the error of work, or of a run, whose context ended: ctx.Err, and the cause of ctx if it is
// another error.
//
// Preconditions: ctx is done.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// operations perform requests, by name. They panic only for a fault of the code that parses: the
// process then ends.
var operations = map[string]func(in json.RawMessage) (any, error){}

// message is a request.
type message struct {
	Operation string
	In        json.RawMessage
}

// An operation computes Out from In. Both have JSON, with text that may be any bytes as []byte.
type operation[In, Out any] struct {
	name  string        // as errors name it
	limit time.Duration // of its time; 0: the domain's
	run   func(In) Out
}

// define defines an operation. It must be called while this package's variables are initialized.
func define[In, Out any](name string, limit time.Duration, run func(In) Out) operation[In, Out] {
	operations[name] = func(text json.RawMessage) (any, error) {
		var in In
		if err := strictjson.Decode(text, &in); err != nil {
			return nil, err
		}
		return run(in), nil
	}
	return operation[In, Out]{name, limit, run}
}

// do performs the operation in the domain. The error is a [*Failure] if the input is to blame, the
// cause of ctx if that is done, or an error of this machine.
func (o operation[In, Out]) do(ctx context.Context, d *Domain, in In) (out Out, err error) {
	if d.parent == "" {
		var here Out
		if o.limit > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, o.limit, failure(nil, o.name, o.limit, context.DeadlineExceeded))
			defer cancel()
			ctx = limited
		}
		if err := bundle.Await(ctx, func() { here = o.run(in) }); err != nil {
			return out, err
		}
		return here, nil
	}
	text, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	request, err := json.Marshal(message{o.name, text})
	if err != nil {
		return out, err
	}
	return out, d.perform(ctx, o.name, o.limit, request, &out)
}

var bundleOperation = define("bundle", 0, func(j bundle.Job) bundle.Built { return j.Run() })

// Bundle is [bundle.Job.Run], for bundle.Options.Run.
func (d *Domain) Bundle(ctx context.Context, j bundle.Job) (bundle.Built, error) {
	built, err := bundleOperation.do(ctx, d, j)
	if failure, ok := errors.AsType[*Failure](err); ok {
		return bundle.Built{Problems: []bundle.Problem{{Path: bundle.EntryPath, Line: 1, Column: 1, Message: "the snippet: " + failure.Reason}}}, nil
	}
	return built, err
}
