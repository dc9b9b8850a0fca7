package examplecheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gaol/runtime/snippets"
)

// Runner runs snippets, as [snippets.Runner] does.
type Runner interface {
	Run(ctx context.Context, in snippets.Input) (*snippets.Output, error)
	Close() error
}

// Options are the options of [Check].
type Options struct {
	// Open returns the runner. It is called once, and only if an example has to run.
	Open func() (Runner, error)

	// Timeout is the wall-clock time of each example. Zero is the default of [snippets.Input].
	Timeout time.Duration

	// Workers is the number of examples that run concurrently. It is above zero.
	Workers int

	// Update writes the outputs of examples that pass beside them.
	Update bool

	// Progress is called for each finished example, one at a time.
	Progress func(finished int)
}

// Check runs examples. A failing example is a [Result], a failing host an error.
func Check(ctx context.Context, list []*Example, o Options) (*Report, error) {
	start := time.Now()
	r := &Report{Results: make([]*Result, len(list))}
	var missing []*Result
	for i, e := range list {
		r.Results[i] = &Result{Example: e, Errors: []Message{}}
		if e.Fault == "" && e.Skip == "" {
			missing = append(missing, r.Results[i])
		}
	}
	if err := o.run(ctx, missing, len(list)); err != nil {
		return nil, err
	}
	for _, result := range r.Results {
		result.judge()
	}
	if err := o.expectations(r.Results); err != nil {
		return nil, err
	}
	counts := map[Status]*int{Passed: &r.Passed, Failed: &r.Failed, Skipped: &r.Skipped}
	for _, result := range r.Results {
		*counts[result.Status]++
	}
	r.DurationMs = time.Since(start).Milliseconds()
	return r, nil
}

// run sets the outputs of results whose examples have to run.
func (o Options) run(ctx context.Context, missing []*Result, all int) (err error) {
	if len(missing) == 0 {
		return nil
	}
	runner, err := o.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(o.Workers)
	var mu sync.Mutex
	finished := all - len(missing)
	o.Progress(finished)
	for _, result := range missing {
		work.Go(func() (err error) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			result.Output, err = Run(ctx, runner, snippets.Input{Files: result.Files, Timeout: o.Timeout})
			mu.Lock()
			defer mu.Unlock()
			finished++
			o.Progress(finished)
			return err
		})
	}
	return work.Wait()
}

// Run runs a snippet. A mistake in the input is not an error, because the output contains it.
func Run(ctx context.Context, r Runner, in snippets.Input) (*snippets.Output, error) {
	out, err := r.Run(ctx, in)
	if _, bad := errors.AsType[*snippets.InputError](err); bad && out != nil {
		err = nil
	}
	return out, err
}

// judge sets the status of a result, and its errors.
func (r *Result) judge() {
	e, out := r.Example, r.Output
	r.Status = Passed
	switch {
	case e.Fault != "":
		r.fail(Message{File: e.File, Line: e.Line, Text: e.Fault})
	case e.Skip != "":
		r.Status, r.Reason = Skipped, e.Skip
	case e.WantError && !r.hasError():
		r.fail(Message{File: e.File, Line: e.Line, Text: expectedError(e)})
		r.failAll(out.Errors)
	case !e.WantError && (len(out.Errors) > 0 || out.TimedOut):
		r.failAll(out.Errors)
		if len(r.Errors) == 0 {
			r.fail(Message{File: e.File, Line: e.Line, Text: "it ran out of time"})
		}
	}
}

// hasError reports whether the expected error occurred. A timeout is expected only by a text
// that names it.
func (r *Result) hasError() bool {
	if r.ErrorText == "" {
		return len(r.Output.Errors) > 0 && !r.Output.TimedOut
	}
	return slices.ContainsFunc(r.Output.Errors, func(text string) bool { return strings.Contains(text, r.ErrorText) })
}

// failAll fails the example for the errors of its output.
func (r *Result) failAll(errs []string) {
	for _, text := range errs {
		m := locate(r.Example, text)
		m.Text = strings.TrimPrefix(m.Text, m.place()+" — ") // a report prints the position before it
		r.fail(m)
	}
}

func (r *Result) fail(m Message) {
	r.Status = Failed
	r.Errors = append(r.Errors, m)
}

// expectedError describes the error that an example should have had.
func expectedError(e *Example) string {
	if e.ErrorText == "" {
		return "an error is expected, and there was none"
	}
	return fmt.Sprintf("an error with the text %q is expected", e.ErrorText)
}

// Example is code that should work, and where it is.
type Example struct {
	File string `json:"file"`           // the file that contains it, as reports name it
	Line int    `json:"line"`           // where it begins: 1, or the line of a fence
	Name string `json:"name,omitempty"` // its name in a page, such as "counter", or "#2" for the second without a name; "" for a code file

	Files []snippets.File `json:"-"` // with src/main.ts

	Skip      string `json:"-"` // why it is not run; "" if it is
	WantError bool   `json:"-"` // it must report an error
	ErrorText string `json:"-"` // which contains this

	// Fault is the reason why it cannot be run, such as a wrong attribute of its fence.
	Fault string `json:"-"`

	folder  *folder
	path    string            // of File in folder
	sources map[string]source // by path in Files
}

// newExample returns an example without files, which begins in a line of the file p.
func newExample(f *folder, p string, line int) *Example {
	return &Example{File: f.shown(p), Line: line, folder: f, path: p, sources: map[string]source{}}
}

// add adds a file.
func (e *Example) add(name, text string, s source) {
	e.Files = append(e.Files, snippets.File{Path: name, Source: text})
	e.sources[name] = s
}

// source maps the lines of a file of an example to where they are written.
type source struct {
	file  string
	lines []place // nil: the same lines of file
}

// place is where a line begins.
type place struct {
	line   int // from 1
	column int // UTF-16 code units before it: the mark of a quote, the indentation of a list
}

// Position returns where a position in one of e's Files is written. Lines and columns count
// from 1, columns in UTF-16 code units. It is false for paths that e does not have.
func (e *Example) Position(path string, line, column int) (file string, l, c int, ok bool) {
	s, ok := e.sources[path]
	if !ok || s.lines == nil {
		return s.file, line, column, ok
	}
	if n := len(s.lines); line > n { // the end of the code, where the closing fence is
		last := place{line: e.Line}
		if n > 0 {
			last = s.lines[n-1]
		}
		return s.file, last.line + 1, 1, true
	}
	at := s.lines[max(line, 1)-1]
	return s.file, at.line, at.column + column, true
}

// folder is a folder that a PATH names, or that contains the file that it names.
type folder struct {
	root *os.Root
	name string // as reports name it
}

// shown returns the name of a file of the folder for reports.
func (f *folder) shown(path string) string { return filepath.Join(f.name, path) }
