package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"gaol/internal/strictjson"
	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
)

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
	name string // as errors name it
	run  func(In) Out
}

// define defines an operation. It must be called while this package's variables are initialized.
func define[In, Out any](name string, run func(In) Out) operation[In, Out] {
	operations[name] = func(text json.RawMessage) (any, error) {
		var in In
		if err := strictjson.Decode(text, &in); err != nil {
			return nil, err
		}
		return run(in), nil
	}
	return operation[In, Out]{name, run}
}

// perform performs the request in the subprocess.
func (m message) perform() (any, error) {
	run := operations[m.Operation]
	if run == nil {
		return nil, fmt.Errorf("%q is not a valid operation", m.Operation)
	}
	return run(m.In)
}

// do performs the operation in the domain. The error is a [*Failure] if the input is to blame, the
// cause of ctx if that is done, or an error of this machine.
func (o operation[In, Out]) do(ctx context.Context, d *Domain, in In) (out Out, err error) {
	if d.parent == "" {
		var here Out
		if err := abandonable(ctx, func() { here = o.run(in) }); err != nil {
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
	return out, d.perform(ctx, o.name, request, &out)
}

// abandonable calls f on a goroutine, and does not wait for it once ctx is done. f's results may be
// read if there is no error.
func abandonable(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var bundleOperation = define("bundle", func(j bundle.Job) bundle.Built { return j.Run() })

// Bundle is [bundle.Job.Run], for bundle.Options.Run.
func (d *Domain) Bundle(ctx context.Context, j bundle.Job) (bundle.Built, error) {
	built, err := bundleOperation.do(ctx, d, j)
	if failure, ok := errors.AsType[*Failure](err); ok {
		return bundle.Built{Problems: []bundle.Problem{{Path: bundle.EntryPath, Line: 1, Column: 1, Message: "the snippet: " + failure.Reason}}}, nil
	}
	return built, err
}

// checkedFile is a file to lint.
type checkedFile struct {
	Rules  lint.Rules
	Path   string
	Source string
}

var lintOperation = define("lint", func(f checkedFile) []lint.Problem { return f.Rules.Check(f.Path, f.Source) })

// maxProblems is how many problems of a file are reported.
const maxProblems = 100

// Lint is [lint.Rules.Check].
func (d *Domain) Lint(ctx context.Context, rules lint.Rules, path, source string) ([]lint.Problem, error) {
	problem := func(message string) []lint.Problem {
		return []lint.Problem{{Path: path, Line: 1, Column: 1, Rule: lint.Syntax, Message: message}}
	}
	if !utf8.ValidString(source) { // JSON would hide that
		return problem("the code is not UTF-8"), nil
	}
	list, err := lintOperation.do(ctx, d, checkedFile{rules, path, source})
	if failure, ok := errors.AsType[*Failure](err); ok {
		return problem("the code: " + failure.Reason), nil
	}
	list = list[:min(len(list), maxProblems)]
	for i := range list {
		list[i].Path, list[i].Message = path, list[i].Message[:min(len(list[i].Message), maxMessage)]
	}
	return list, err
}
