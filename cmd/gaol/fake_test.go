package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"gaol/cmd/gaol/repl"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

// fake is a sandbox that runs nothing. It records its requests, and its
// guest function provides results.
type fake struct {
	options runtime.Options
	run     runtime.RunOptions
	code    string
	command []string
	closed  int

	evaluated  runtime.EvaluateOptions
	evaluation runtime.Evaluation

	context    runtime.ContextOptions
	contextErr error
	session    fakeContext

	saved   []string // names of snapshots
	missing []string

	mostFiles int64 // hard limit of the host process; zero: enough

	createErr, closeErr error
	// guest provides the result of a run. Nil: an empty result.
	guest func(ctx context.Context, o runtime.RunOptions) (*runtime.Result, error)
}

func (f *fake) create(_ context.Context, o runtime.Options) (sandbox, error) {
	f.options = o
	if f.createErr != nil {
		return nil, f.createErr
	}
	return f, nil
}

func (f *fake) Run(ctx context.Context, code string, o runtime.RunOptions) (*runtime.Result, error) {
	f.code = code
	return f.do(ctx, o)
}

func (f *fake) Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error) {
	f.command = append([]string{name}, args...)
	return f.do(ctx, o)
}

func (f *fake) Evaluate(_ context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	if o.OnLog != nil {
		for _, l := range f.evaluation.Logs {
			o.OnLog(l)
		}
	}
	o.OnLog = nil // which cannot be compared
	f.code, f.evaluated = code, o
	return &f.evaluation, nil
}

func (f *fake) do(ctx context.Context, o runtime.RunOptions) (*runtime.Result, error) {
	f.run = o
	if f.guest == nil {
		return &runtime.Result{}, nil
	}
	return f.guest(ctx, o)
}

func (f *fake) Snapshot(_ context.Context, o runtime.SnapshotOptions) (*runtime.Snapshot, error) {
	f.saved = append(f.saved, o.Name)
	return &runtime.Snapshot{}, nil
}

var errNoProcess = errors.New("a fake has no processes")

func (f *fake) spawn(context.Context, *program, runtime.SpawnOptions) (*terminalProcess, error) {
	return nil, errNoProcess
}

func (f *fake) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, errNoProcess }

func (f *fake) WaitForListener(context.Context, uint16) error { return errNoProcess }

func (f *fake) Missing() []string { return f.missing }

func (f *fake) Limits() runtime.Limits {
	l := f.options.Limits
	l.OpenFiles = cmp.Or(l.OpenFiles, f.mostFiles, 1024)
	return l
}

func (f *fake) Close() error { f.closed++; return f.closeErr }

// returns makes a guest that returns res.
func returns(res runtime.Result) func(context.Context, runtime.RunOptions) (*runtime.Result, error) {
	return func(context.Context, runtime.RunOptions) (*runtime.Result, error) { return &res, nil }
}

// outcome is what one call of gaol did.
type outcome struct {
	code           int
	stdout, stderr string
}

// call runs the command line with f instead of a runtime.
func (f *fake) call(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return f.callContext(t.Context(), stdin, args...)
}

func (f *fake) callContext(ctx context.Context, stdin string, args ...string) outcome {
	return f.callReader(ctx, strings.NewReader(stdin), args...)
}

func (f *fake) callReader(ctx context.Context, stdin io.Reader, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	a := &app{stdin: stdin, stdout: &stdout, stderr: &stderr, create: f.create}
	code := a.main(ctx, args)
	return outcome{code, stdout.String(), stderr.String()}
}

// checkFailure checks that gaol failed with one line that contains text.
func checkFailure(t *testing.T, got outcome, text string) {
	t.Helper()
	if got.code != report.ExitFailure {
		t.Errorf("exit status %d, want %d", got.code, report.ExitFailure)
	}
	if got.stdout != "" {
		t.Errorf("standard output has %q, want nothing", got.stdout)
	}
	line, rest, _ := strings.Cut(got.stderr, "\n")
	if rest != "" || !strings.HasPrefix(line, "gaol: ") || strings.HasPrefix(line, "gaol: gaol: ") {
		t.Errorf("standard error has %q, want one line that starts with gaol:", got.stderr)
	}
	if !strings.Contains(line, text) {
		t.Errorf("standard error has %q, want %q in it", line, text)
	}
}

func (f *fake) newContext(_ context.Context, o runtime.ContextOptions) (repl.Context, error) {
	f.context = o
	return &f.session, f.contextErr
}

// fakeContext is a context whose guest function evaluates the cells.
type fakeContext struct {
	options runtime.EvaluateOptions
	cells   []string
	guest   func(ctx context.Context, code string, o runtime.EvaluateOptions) *runtime.Evaluation // nil: no value
	ended   error
}

func (n *fakeContext) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	n.options, n.cells = o, append(n.cells, code)
	if n.guest == nil {
		return &runtime.Evaluation{}, nil
	}
	return n.guest(ctx, code, o), nil
}

func (n *fakeContext) Complete(context.Context, string) (string, []string, error) {
	return "", nil, n.ended
}

func (n *fakeContext) Err() error { return n.ended }
