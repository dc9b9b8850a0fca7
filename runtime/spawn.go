package runtime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"gaol/internal/lazyregexp"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/stdio"
)

// SpawnOptions are the options of a spawned process. The zero value starts it with the
// runtime's settings, pipes as standard streams, and no time limit.
type SpawnOptions struct {
	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // laid over the runtime's Env
	Cwd         string             // the working directory, which must exist; empty: the runtime's

	// Name, Format and Args are as in RunOptions, for SpawnCode. With Spawn, Args are an
	// error, and the others are ignored.
	Name   string
	Format ModuleFormat
	Args   []string

	// Timeout is the wall-clock time that the process may take, including its start. Zero
	// means no limit; a negative one is an error. Limits.CPUTime applies, too.
	Timeout time.Duration

	// Terminal, if not nil, makes the process's standard streams a terminal. Process.Stdout
	// then has all output.
	Terminal *Terminal
}

// Terminal describes the terminal of a process: a pseudo-terminal of the guest, /dev/pts/N,
// that controls the process's session. The process has job control, /dev/tty, and signals by
// keys, such as SIGINT by "\x03". Its output is untrusted: the caller must filter escape
// sequences before showing it on a terminal of the host.
//
// All runs of a runtime belong to one user, and can open each other's terminals. A runtime can
// have at most 64 terminals, including the guests' own: beyond that Spawn's error wraps ENOSPC.
type Terminal struct {
	// Rows and Cols are the window's size in characters. If both are zero, they are 24 and
	// 80. A single zero is an error.
	Rows uint16 `json:"rows,omitempty" minimum:"0" maximum:"65535" doc:"Its height in characters. By default 24."`
	Cols uint16 `json:"cols,omitempty" minimum:"0" maximum:"65535" doc:"Its width in characters. By default 80."`

	// Term is the variable TERM, which Env may replace: the kind of terminal that the caller
	// emulates. At most 64 letters, digits and +-._ ; empty: "xterm-256color".
	Term string `json:"term,omitempty" maxLength:"64" doc:"The variable TERM. By default xterm-256color."`
}

const (
	defaultRows = 24
	defaultCols = 80
	defaultTerm = "xterm-256color"
)

// Spawn starts a long-lived process and returns once it runs. ctx bounds the start only: the
// process lives until it exits, is killed ([Process.Kill], [NodeRuntime.Kill]), exceeds a
// limit, or the runtime is closed. It is a run with the limits of one. While it lives it
// counts towards Options.MaxConcurrentRuns, and Spawn waits for its turn.
//
// name and the errors are as for [NodeRuntime.Command]. If ctx ends during the start, the
// error is its cause; if Timeout does, context.DeadlineExceeded.
//
// The caller must read the process's output: the process blocks when a pipe is full, see
// [Process].
func (rt *NodeRuntime) Spawn(ctx context.Context, name string, args []string, o SpawnOptions) (_ *Process, err error) {
	defer wrap(&err, "spawn")
	return rt.spawn(ctx, imageProgram(name, args), o)
}

// SpawnCode is Spawn for a Node program, as in [NodeRuntime.Run]. The value that it passes to
// __return is in the Result of [Process.Wait].
func (rt *NodeRuntime) SpawnCode(ctx context.Context, code string, o SpawnOptions) (_ *Process, err error) {
	defer wrap(&err, "spawn")
	return rt.spawn(ctx, rt.code(code), o)
}

func (rt *NodeRuntime) spawn(ctx context.Context, p *Process, o SpawnOptions) (*Process, error) {
	size, err := o.validate()
	if err != nil {
		return nil, err
	}
	streams := &stdio.Streams{}
	if o.Terminal != nil {
		p.command.Terminal = true
		streams.OpenTerminal = func() (sandbox.Terminal, error) { return rt.sandbox.OpenTerminal(size) }
	}
	p.streams, p.detached = streams, true
	if !rt.start(ctx, p, o.runOptions()) {
		return nil, p.startError()
	}
	p.Stdin, p.Stdout, p.Stderr = streams.Stdin, streams.Stdout, streams.Stderr
	return p, nil
}

// startError returns why a detached process could not be started.
func (p *Process) startError() error {
	return cmp.Or(p.err, errTimeout) // p.err is nil only after a timeout
}

// validate checks the options, and returns the size of the terminal.
func (o SpawnOptions) validate() (size sandbox.TerminalSize, err error) {
	if o.Timeout < 0 {
		return size, optionError("Timeout", "%v is negative", o.Timeout)
	}
	if o.Terminal == nil {
		return size, nil
	}
	size = sandbox.TerminalSize{Rows: o.Terminal.Rows, Cols: o.Terminal.Cols}
	size = cmp.Or(size, sandbox.TerminalSize{Rows: defaultRows, Cols: defaultCols})
	if term := o.Terminal.Term; term != "" && !termPattern().MatchString(term) {
		return size, optionError("Terminal", "%q is not a kind of terminal", term)
	}
	return size, checkSize(size)
}

var termPattern = lazyregexp.New(`^[A-Za-z0-9+._-]{1,64}$`)

func checkSize(s sandbox.TerminalSize) error {
	if s.Rows == 0 || s.Cols == 0 {
		return fmt.Errorf("a terminal of %d rows and %d columns", s.Rows, s.Cols)
	}
	return nil
}

// runOptions returns the options that RunOptions has, too.
func (o SpawnOptions) runOptions() RunOptions {
	r := RunOptions{Permissions: o.Permissions, Name: o.Name, Format: o.Format, Args: o.Args, Env: o.Env, Cwd: o.Cwd, Timeout: cmp.Or(o.Timeout, -1)}
	if o.Terminal == nil {
		return r
	}
	r.Env = map[string]string{"TERM": cmp.Or(o.Terminal.Term, defaultTerm)}
	maps.Copy(r.Env, o.Env)
	return r
}
