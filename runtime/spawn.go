package runtime

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"gaol/jail"
	"gaol/policy"
)

// SpawnOptions says how a spawned process goes. The zero value starts it with the
// runtime's own settings, standard streams that are pipes, and no limit of time.
type SpawnOptions struct {
	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // laid over the runtime's Env
	Cwd         string             // the working directory, which must exist; empty: the runtime's

	// Name, Format and Args are those of RunOptions, for SpawnCode. With Spawn, Args are an
	// error, and the others are ignored.
	Name   string
	Format ModuleFormat
	Args   []string

	// Timeout is the wall-clock time that the process may take, its start included.
	// Zero: no limit. A negative one is an error. Limits.CPUTime bounds it too.
	Timeout time.Duration

	// Terminal, if not nil, has the process's standard streams be a terminal. Its output
	// is then one stream, which Process.Stdout has.
	Terminal *Terminal
}

// Terminal says what terminal a process gets: one of the guest's own, by the name
// /dev/pts/N, that controls the process's session. So there are job control, /dev/tty
// and signals by keys, such as SIGINT by "\x03". What it shows is the guest's: escape
// sequences that do harm in a terminal of the host's are the caller's affair.
//
// All runs of a runtime are one user's, and can open each other's terminals. A runtime
// has room for 64, those that guests make included: Spawn's error wraps ENOSPC where
// there is none.
type Terminal struct {
	// Rows and Cols are the window's size in characters. Both zero: 24 and 80. One zero
	// is an error.
	Rows, Cols uint16

	// Term is the variable TERM, which Env may replace: what the caller takes the
	// output for. At most 64 letters, digits and +-._ ; empty: "xterm-256color".
	Term string
}

const (
	defaultRows = 24
	defaultCols = 80
	defaultTerm = "xterm-256color"
)

// Spawn starts a program of the image and returns when it runs, or has ended. ctx
// bounds the start alone: the process lives until it ends by itself, is killed
// ([Process.Kill], [NodeRuntime.Kill]), uses up a limit, or the runtime is closed. It
// is a run, and the limits of one hold; of Options.MaxConcurrentRuns it takes up one for
// as long as it lives, and Spawn waits for that.
//
// name is as for [NodeRuntime.Command], and so are the errors. If ctx ends before the
// start has, the error is its cause; if Timeout does, context.DeadlineExceeded.
//
// The caller reads the process's output, or the process waits as soon as the kernel
// holds some of it for each stream: see [Process].
func (rt *NodeRuntime) Spawn(ctx context.Context, name string, args []string, o SpawnOptions) (*Process, error) {
	return rt.spawn(ctx, o, func(r RunOptions) (*task, error) { return rt.opts.commandTask(name, args, r) })
}

// SpawnCode is Spawn for a program for Node, as [NodeRuntime.Run] has it: what it
// returns by __return is in the Result that [Process.Wait] has.
func (rt *NodeRuntime) SpawnCode(ctx context.Context, code string, o SpawnOptions) (*Process, error) {
	return rt.spawn(ctx, o, func(r RunOptions) (*task, error) { return rt.opts.nodeTask(code, r, true) })
}

func (rt *NodeRuntime) spawn(ctx context.Context, o SpawnOptions, lower func(RunOptions) (*task, error)) (*Process, error) {
	p, err := rt.spawnTask(ctx, o, lower)
	if err != nil {
		return nil, fmt.Errorf("gaol: spawn: %w", err)
	}
	return p, nil
}

func (rt *NodeRuntime) spawnTask(ctx context.Context, o SpawnOptions, lower func(RunOptions) (*task, error)) (*Process, error) {
	size, err := o.check()
	if err != nil {
		return nil, err
	}
	t, err := lower(o.run())
	if err != nil {
		return nil, err
	}
	var ends interface {
		ends
		hand(*Process)
	} = &attached{}
	if o.Terminal != nil {
		t.terminal = true
		ends = &onTerminal{jail: rt.jail, size: size}
	}
	p, err := rt.raise(ctx, t, ends, o.Timeout)
	if err != nil {
		return nil, err
	}
	ends.hand(p)
	return p, nil
}

// raise starts a process that its runtime looks after. Zero is no limit of time.
func (rt *NodeRuntime) raise(ctx context.Context, t *task, e ends, timeout time.Duration) (*Process, error) {
	if !rt.live.spawn() {
		return nil, ErrClosed
	}
	p, err := rt.launch(ctx, t, e, timeout)
	if err != nil {
		rt.live.spawned.Done()
		return nil, err
	}
	go p.attend()
	return p, nil
}

// launch starts a process when its turn has come. The runtime's queue is then left by
// [Process.attend].
func (rt *NodeRuntime) launch(ctx context.Context, t *task, e ends, timeout time.Duration) (*Process, error) {
	asked := time.Now()
	started, ok := rt.takeTurn(ctx)
	if !ok {
		return nil, rt.whyNot(ctx, nil)
	}
	defer started()
	p := &Process{queued: time.Since(asked), done: make(chan struct{})}
	if timeout == 0 {
		timeout = -1
	}
	p.limit, p.stop = withTimeout(context.WithoutCancel(ctx), timeout)
	detach := context.AfterFunc(ctx, p.stop)
	var err error
	p.live, err = rt.begin(p.limit, t, e)
	if detach() && err == nil {
		return p, nil
	}
	if err == nil { // it began just as ctx ended
		_, err = p.live.finish(p.limit, nil)
	}
	err = rt.whyNot(ctx, errors.Join(err, context.Cause(p.limit)))
	p.stop()
	rt.queue.leave()
	return nil, err
}

// whyNot is why there is no process.
func (rt *NodeRuntime) whyNot(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return contextError(ctx)
	case <-rt.closing:
		return ErrClosed
	default:
	}
	if errors.Is(err, errTimeout) {
		return errTimeout
	}
	return err
}

// check refuses what is out of bounds, and settles the size of the terminal.
func (o SpawnOptions) check() (size jail.TerminalSize, err error) {
	if o.Timeout < 0 {
		return size, fmt.Errorf("option Timeout: %v is negative", o.Timeout)
	}
	if o.Terminal == nil {
		return size, nil
	}
	size = jail.TerminalSize{Rows: o.Terminal.Rows, Cols: o.Terminal.Cols}
	if size == (jail.TerminalSize{}) {
		size = jail.TerminalSize{Rows: defaultRows, Cols: defaultCols}
	}
	if term := o.Terminal.Term; term != "" && !termPattern.MatchString(term) {
		return size, fmt.Errorf("option Terminal: %q is no kind of terminal", term)
	}
	return size, checkSize(size)
}

var termPattern = regexp.MustCompile(`^[A-Za-z0-9+._-]{1,64}$`)

func checkSize(s jail.TerminalSize) error {
	if s.Rows == 0 || s.Cols == 0 {
		return fmt.Errorf("a terminal of %d rows and %d columns", s.Rows, s.Cols)
	}
	return nil
}

// run is what a spawned process's options have in common with a run's.
func (o SpawnOptions) run() RunOptions {
	r := RunOptions{Permissions: o.Permissions, Name: o.Name, Format: o.Format, Args: o.Args, Env: o.Env, Cwd: o.Cwd}
	if o.Terminal == nil {
		return r
	}
	r.Env = map[string]string{"TERM": defaultTerm}
	if o.Terminal.Term != "" {
		r.Env["TERM"] = o.Terminal.Term
	}
	for name, value := range o.Env {
		r.Env[name] = value
	}
	return r
}
