package repl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gaol/cmd/gaol/report"
	"gaol/internal/snippet"
	"gaol/runtime"
)

// Context is the part of a [runtime.Context] that a session uses.
type Context interface {
	Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error)
	Complete(ctx context.Context, line string) (prefix string, names []string, err error)
	Err() error
}

// Options configures Run.
type Options struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal is set if stdin and stdout are the user's terminal.
	Terminal  bool
	NoHistory bool   // neither read nor write the history
	Welcome   string // the first line on a terminal

	NewContext func(ctx context.Context, o runtime.ContextOptions) (Context, error)
	Globals    map[string]any
	Timeout    time.Duration                  // of each cell, as in runtime.EvaluateOptions
	Denials    func(*runtime.Result) []string // lines about the denials of a failed cell
}

// Limits of the lines that a cell may print. They are far above the limits of gaol eval: a user
// who prints a table wants all of it, while a loop without end must not fill the memory.
const (
	maxLogs      = 8_000 // with maxLogLength, as many as a server keeps
	maxLogLength = 2_000
)

// Run evaluates lines until there are no more, and returns gaol's exit status.
func Run(ctx context.Context, o Options) (exit int, err error) {
	s := &session{
		options: o,
		// IdleTimeout: a user who pauses must not lose the variables.
		context: runtime.ContextOptions{Globals: o.Globals, IdleTimeout: -1, LastValue: true},
		cell:    runtime.EvaluateOptions{Timeout: o.Timeout, MaxLogs: maxLogs, MaxLogLength: maxLogLength, Form: runtime.ResultText},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout := output{o.Stdout, cancel}
	if o.Terminal {
		err = s.runOnTerminal(ctx, stdout)
	} else {
		s.screen = screen{stdout: stdout, stderr: o.Stderr}
		s.interruptible = func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
		s.keep = func(string) {}
		err = s.run(ctx, readLines(ctx, o.Stdin))
	}
	return s.exit, err
}

// session evaluates cells in a context, one after the other.
type session struct {
	screen
	options Options
	context runtime.ContextOptions
	cell    runtime.EvaluateOptions

	// interruptible returns a context that Ctrl-C cancels, until stop is called.
	interruptible func(context.Context) (_ context.Context, stop func())
	keep          func(code string) // adds the code of a cell to the history

	current Context
	exit    int
	done    bool
}

// nextLine waits for a line of a new cell or, if continued, of the same cell. It returns
// io.EOF at the end, and errAbandoned if the user abandoned the cell.
type nextLine func(continued bool) (string, error)

var errAbandoned = errors.New("the input was abandoned")

// run evaluates all cells.
func (s *session) run(ctx context.Context, next nextLine) error {
	if err := s.newContext(ctx); err != nil {
		return err
	}
	for !s.done {
		code, err := readCell(next)
		switch {
		case errors.Is(err, errAbandoned):
			continue
		case errors.Is(err, io.EOF):
			s.done = true
		case errors.Is(err, errTooLong) && s.options.Terminal: // the evaluation rejects it, which the user sees
		case err != nil:
			return err
		}
		s.keep(code)
		if err := s.perform(ctx, code); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) newContext(ctx context.Context) (err error) {
	s.current, err = s.options.NewContext(ctx, s.context)
	return err
}

// maxLine is longer than a cell may be.
const maxLine = 1 << 20

// errTooLong ends input without a terminal: where a cell ends that is too long to be
// parsed is not known.
var errTooLong = fmt.Errorf("read standard input: a cell of more than %d bytes", snippet.MaxCode)

// readCell reads lines until they are complete code, or too long to become any.
func readCell(next nextLine) (string, error) {
	code := ""
	for continued := false; ; continued = true {
		line, err := next(continued)
		if errors.Is(err, errAbandoned) {
			return "", err
		}
		code += line
		if err != nil {
			return strings.TrimSuffix(code, "\n"), err
		}
		if continued && len(code) > snippet.MaxCode {
			return code, errTooLong
		}
		if !runtime.Unfinished(code) {
			return code, nil
		}
		code += "\n"
	}
}

// Help is the answer to .help.
const Help = `.exit     quits, as Ctrl-D does
.help     shows this
Tab       completes a name, or lists the possible names
Ctrl-C    abandons what is typed, or stops what runs
Up, Down  recall earlier lines`

// perform evaluates a cell, or executes a command, and shows the output.
func (s *session) perform(ctx context.Context, code string) error {
	switch strings.TrimSpace(code) {
	case "":
		return context.Cause(ctx)
	case ".exit":
		s.done = true
		return nil
	case ".help":
		s.note(Help)
		return context.Cause(ctx)
	}
	o := s.cell
	o.OnLog = s.log
	cellCtx, stop := s.interruptible(ctx)
	e, err := s.current.Evaluate(cellCtx, code, o)
	stop()
	switch {
	case e != nil: // an error beside it means that Ctrl-C or a signal canceled the cell
	case errors.Is(err, runtime.ErrContextEnded): // since the last cell
		e = &runtime.Evaluation{Error: &runtime.GuestError{Message: strings.TrimPrefix(err.Error(), "gaol: evaluate: ")}}
	case err != nil:
		return err
	}
	s.show(e, code)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return cmp.Or(s.replaceEnded(ctx, e), context.Cause(ctx))
}

func (s *session) show(e *runtime.Evaluation, code string) {
	if e.Truncated.Logs {
		s.note("the cell printed more lines, which are not shown")
	}
	var text string
	if e.Value != nil && json.Unmarshal(e.Value, &text) == nil {
		s.value(text)
	}
	if _, exited := s.exited(); e.Error == nil || e.Error.Name == "ExitError" && exited { // process.exit is not a failure
		return
	}
	s.failure(e.Error, code)
	for _, line := range s.options.Denials(&runtime.Result{ExitCode: 1, Denials: e.Denials}) {
		s.note(line)
	}
	if !s.options.Terminal {
		s.exit = 1
	}
}

// exited reports whether the code called process.exit.
func (s *session) exited() (*runtime.ExitError, bool) {
	return errors.AsType[*runtime.ExitError](s.current.Err())
}

// replaceEnded ends the session if the context has ended, or replaces the context if
// a user can continue without its variables.
func (s *session) replaceEnded(ctx context.Context, e *runtime.Evaluation) error {
	exit, exited := s.exited()
	switch {
	case s.current.Err() == nil:
	case exited:
		s.exit, s.done = exit.Code, true
	case s.options.Terminal:
		s.note("another context begins, without the variables")
		return s.newContext(ctx)
	default:
		s.exit, s.done = report.EvaluationStatus(e), true
	}
	return nil
}

// complete returns the names that complete line. An error means none: if the context has
// ended, the next cell reports it.
func (s *session) complete(ctx context.Context, line string) (prefix string, names []string) {
	prefix, names, _ = s.current.Complete(ctx, line)
	return prefix, names
}
