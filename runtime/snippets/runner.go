package snippets

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"gaol/runtime"
	"gaol/runtime/internal/work"
	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
)

// ServerCache is the folder in which gaol serve keeps bundles of packages.
const ServerCache = "/var/cache/gaol"

// Options are the options of a [Runner]. The zero value runs plain programs without network.
type Options struct {
	// Adapter reads the state of a framework. The zero value is [None].
	Adapter Adapter

	// NodeModules is a folder of the host with the packages that snippets may import.
	NodeModules string

	// Rules are the lint rules for all files. They are not a security boundary: the sandbox is. Nil: the
	// adapter's rules, which only [Directive] has.
	Rules *lint.Rules

	// NoLint turns off all lint rules.
	NoLint bool

	// Network is "" for none, or "public" for hosts of the public internet: see docs/network.md.
	Network string

	// MaxConcurrent is the maximum number of concurrent snippets; others wait in order. Zero: twice
	// the number of processors.
	MaxConcurrent int

	// Shared runs all snippets in one sandbox, whose files they can only read. It is faster, and
	// for snippets of one owner only.
	Shared bool

	// Sandbox has the options of the sandboxes. The runner sets their Heap, Limits, Mounts, ReadOnlyRoot and
	// MaxConcurrentRuns. Permissions restrict snippets further: rules that allow more are an error. WorkInProcess also
	// lints and bundles in this process. IsolationOCI lacks Zygote.
	Sandbox runtime.Options

	// Cache is the folder for bundles of packages. Servers have one in [ServerCache]. Empty: gaol in the user's cache folder.
	Cache string
}

// Runner runs snippets. Its methods are safe for concurrent use.
type Runner struct {
	adapter   Adapter
	checking  *semaphore.Weighted // of the adapter: one check at a time
	checked   bool
	packages  *bundle.Packages // nil: none
	rules     *lint.Rules      // nil: none
	domain    *work.Domain     // lints and bundles
	sandboxes sandboxes
	turns     *semaphore.Weighted

	open   context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // calls of Run, and reading the adapter

	mu sync.Mutex // held to begin a call and to close, so that no call begins after Close
}

// New returns a runner, and prepares it in the background: it creates the first sandboxes and
// reads the adapter. Run returns the errors of this preparation. The caller must close the runner.
func New(o Options) (*Runner, error) {
	if o.MaxConcurrent < 0 {
		return nil, fmt.Errorf("snippets: option MaxConcurrent: %d is negative", o.MaxConcurrent)
	}
	o.Adapter = cmp.Or(o.Adapter, None)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 2*goruntime.GOMAXPROCS(0))
	r := &Runner{adapter: o.Adapter, rules: o.rules(), checking: semaphore.NewWeighted(1), turns: semaphore.NewWeighted(int64(o.MaxConcurrent))}
	r.open, r.cancel = context.WithCancelCause(context.Background())
	if r.domain = work.InProcess; !o.Sandbox.WorkInProcess {
		r.domain = work.Of(cmp.Or(o.Sandbox.CgroupParent, runtime.DefaultCgroupParent))
	}
	err := r.openPackages(o)
	if err == nil {
		err = r.sandboxes.init(o, r.packages)
	}
	if err != nil {
		return nil, fmt.Errorf("snippets: %w", err)
	}
	r.work.Go(func() { _ = r.checkAdapter(r.open) }) // Run retries and returns the error
	return r, nil
}

// Run runs a snippet. A failing snippet is an Output with Errors. For a bad input, the error is
// an [*InputError], beside an Output that reports it; if ctx ends the run, it wraps ctx's error,
// beside the Output so far. An Output is nil only beside an error of this machine.
func (r *Runner) Run(ctx context.Context, in Input) (*Output, error) {
	if !r.begin() {
		return nil, fmt.Errorf("snippets: %w", runtime.ErrClosed)
	}
	defer r.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.open, func() { cancel(context.Cause(r.open)) })()
	out := newOutput()
	err := r.run(ctx, in, out)
	_, refused := errors.AsType[*InputError](err)
	switch {
	case err == nil:
		return out, nil
	case refused:
		out.addError(err.Error())
		return out, err
	case ctx.Err() != nil:
		out.addError("sandbox: aborted by caller signal")
		return out, fmt.Errorf("snippets: %w", work.ContextError(ctx))
	}
	return nil, fmt.Errorf("snippets: %w", err)
}

// begin registers a call. It returns false if the runner is closed.
func (r *Runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open.Err() != nil {
		return false
	}
	r.work.Add(1)
	return true
}

// run waits for its turn, runs a snippet, and completes out.
func (r *Runner) run(ctx context.Context, in Input, out *Output) error {
	files, timeout, err := in.check()
	if err != nil {
		return err
	}
	if err := r.turns.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.turns.Release(1)
	if err := r.checkAdapter(ctx); err != nil {
		return err
	}
	p, err := r.compile(ctx, files, out)
	if p == nil || err != nil {
		return err
	}
	code, err := guestProgram{Code: p.Code, Adapter: r.adapter.Code, Packages: p.Packages}.module("start")
	if err != nil {
		return err
	}
	to := outcome{out, p.Position, timeout}
	l := logs{onLog: in.OnLog, position: to.program.locate}
	return r.sandboxes.use(ctx, func(rt *runtime.NodeRuntime) error {
		e, err := rt.Evaluate(ctx, code, runtime.EvaluateOptions{
			Module: true, Timeout: timeout, Grace: grace, MaxOutput: maxReport,
			MaxLogs: MaxLogs + 1, MaxLogLength: MaxLogBytes, OnLog: l.add,
		})
		if e != nil {
			to.add(e)
		}
		return err
	})
}

// grace is how long a snippet may take to report its state after its timeout.
const grace = 500 * time.Millisecond

// Close ends all runs, which return an error that wraps [runtime.ErrClosed], and closes all
// sandboxes. It returns when all of them are gone; only the zygotes stay until [runtime.CloseIdle].
func (r *Runner) Close() error {
	r.mu.Lock()
	r.cancel(runtime.ErrClosed)
	r.mu.Unlock()
	r.work.Wait()
	return r.sandboxes.close()
}

// Adapter connects a framework.
type Adapter struct {
	Name string // such as "directive"
	Code string // an ES module: see docs/snippets.md
}

//go:embed adapters/none.mjs
var noneCode string

//go:embed adapters/directive.mjs
var directiveCode string

// None reads the snippet's exports.
var None = Adapter{Name: "none", Code: noneCode}

// Directive reads the systems that createSystem of @directive-run/core makes.
var Directive = Adapter{Name: "directive", Code: directiveCode}

// checkAdapter loads the adapter in a sandbox, until that succeeds once: a broken adapter is the operator's mistake, not
// that of a snippet. This also warms up the zygote, so that the first snippet need not wait for it.
func (r *Runner) checkAdapter(ctx context.Context) error {
	if err := r.checking.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.checking.Release(1)
	if r.checked {
		return nil
	}
	code, err := guestProgram{Adapter: r.adapter.Code}.module("inspect")
	if err != nil {
		return err
	}
	err = r.sandboxes.use(ctx, func(rt *runtime.NodeRuntime) error {
		e, err := rt.Evaluate(ctx, code, runtime.EvaluateOptions{Module: true})
		if err != nil {
			return err
		}
		var ok bool
		if err := e.Decode(&ok); err != nil {
			return fmt.Errorf("adapter %s: %w", r.adapter.Name, err)
		}
		return nil
	})
	r.checked = err == nil
	return err
}
