package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gaol/internal/snippet"
	"gaol/policy"
)

// EvaluateOptions says how a snippet is evaluated. A zero field takes its default; a
// negative one is an error, but for Timeout.
type EvaluateOptions struct {
	// Globals are what the snippet finds in globalThis, as Options.Bindings, over which
	// they are laid by name. A cell of a context fails before it begins if one has the name
	// of what a cell has declared.
	Globals map[string]any

	Timeout      time.Duration // as RunOptions.Timeout: default 30 s; negative: no limit
	MaxOutput    int64         // bytes of Result; default 1 MiB; at most Limits.Value
	MaxCalls     int           // calls of host functions; default 50
	MaxLogs      int           // entries of Logs; default 100
	MaxLogLength int           // characters of one entry, after which it ends in "…"; default 1,000

	// Form is what Evaluation.Result is.
	Form ResultForm

	// OnLog gets the entries of Logs as they come, one at a time. A slow one slows the
	// guest down.
	OnLog func(Log)

	// Heap is V8's, in bytes. Default: what Limits.Memory leaves, as for a Run; more is an
	// error. With LauncherZygote, each size in use costs the host process one more Node:
	// see [CloseIdle].
	Heap int64

	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // as RunOptions.Env
	Cwd         string             // as RunOptions.Cwd
}

const (
	defaultEvaluateOutput = 1 << 20
	defaultEvaluateCalls  = 50
	defaultLogs           = 100
	defaultLogLength      = 1000

	mostLogs      = 100_000
	mostLogLength = 1 << 20

	snippetName = "snippet.mjs"
)

// ResultForm is what is made of a snippet's value.
type ResultForm int

const (
	// ResultJSON is the value itself, as [NodeRuntime.Run] has values. A last expression
	// that has no JSON, such as server.listen(80), is no error: Evaluation.NoResult says why. What
	// the code returns or exports must have JSON, and is an error otherwise. Neither
	// ends what the snippet has begun.
	ResultJSON ResultForm = iota

	// ResultText is a string: the value as Node's REPL shows it, such as
	// "Map(1) { 'a' => 1 }". What has more than MaxOutput bytes of JSON is cut. There is
	// always one, also of undefined. Escape sequences in it are the guest's.
	ResultText

	// ResultColors is ResultText with colors, by a terminal's escape sequences.
	ResultColors
)

var formNames = map[ResultForm]string{ResultJSON: "", ResultText: "text", ResultColors: "colors"}

// Evaluation is what came of a snippet.
type Evaluation struct {
	Result   json.RawMessage // JSON text of the snippet's value; nil when it has none, or undefined
	NoResult string          // why the value of the last expression has no JSON, such as a server's; empty if that is not why Result is nil
	Error    *GuestError     // nil if it did not fail
	Logs     []Log           // console's lines, and what else was printed, in the order of arrival
	Calls    []Call          // of host functions, in the order in which they came
	Duration time.Duration   // as Result.Duration
	Cause    Cause           // why the process ended, if not by itself
	Usage    Usage
	Denials  []Denial // as Result.Denials
	// Truncated says whether there was more of what is listed.
	Truncated struct{ Logs, Calls, Denials bool }
}

// Decode unmarshals Result into v. It returns the Error, if there is one, and an error that
// wraps [ErrNoValue] when there is no value.
func (e *Evaluation) Decode(v any) error {
	switch {
	case e.Error != nil:
		return e.Error
	case e.Result == nil && e.NoResult != "":
		return fmt.Errorf("%w: %s", ErrNoValue, e.NoResult)
	case e.Result == nil:
		return ErrNoValue
	}
	return json.Unmarshal(e.Result, v)
}

// Normalize turns what a model wrote into an ES module, as Evaluate does: Markdown's
// fences go, TypeScript and JSX become JavaScript, and the value of the last expression is
// handed to globalThis.__evaluated. If that is a function itself, or one is declared and
// nothing else is, it is called, and what it gives is the value. The error for what is no
// program, with the place, is a *GuestError.
//
// Names of CommonJS stay as they are: where the module runs, globalThis has to define require,
// module, exports, __filename and __dirname, as Evaluate does. If the last expression sets a
// property of exports, __evaluated is called without a value, and module.exports is the value.
func Normalize(code string) (string, error) {
	p, err := snippet.Module(code)
	if err != nil {
		return "", syntaxError(err, snippetName)
	}
	return p.Code, nil
}

// Unfinished reports whether code is none that [Context.Evaluate] takes, and could become
// so by more lines, as what is typed until a bracket is closed.
func Unfinished(code string) bool { return snippet.Unfinished(code) }

func syntaxError(err error, name string) *GuestError {
	if syntax, ok := errors.AsType[*snippet.SyntaxError](err); ok {
		at := fmt.Sprintf("SyntaxError: %s\n    at %s:%d:%d", syntax.Message, name, syntax.Line, syntax.Column)
		return &GuestError{Name: "SyntaxError", Message: syntax.Message, Stack: at, Frame: syntax.Frame()}
	}
	return &GuestError{Name: "SyntaxError", Message: err.Error()}
}

// Evaluate runs code that a model wrote in a fresh process, as [NodeRuntime.Run] does
// after [Normalize], and returns its value, the lines that it printed, and an error that
// can be told to the model. What the last expression is a promise of is awaited.
//
// The code may mix both module formats: beside import and await it finds require, module,
// exports, __filename and __dirname, and require.main is module. If the code ends without a
// value but has set module.exports or a property of it, module.exports is the value. A
// function that the last statement sets as module.exports is called.
//
// Like a Run, it ends when nothing is left to do: a timer or a server that goes on keeps
// it going until its time is up, and Evaluation then has the value and the error.
//
// The error is nil whatever the snippet did. If ctx ended it, or the runtime's Close, the
// error is that of [NodeRuntime.Run], beside the Evaluation.
func (rt *NodeRuntime) Evaluate(ctx context.Context, code string, o EvaluateOptions) (*Evaluation, error) {
	var out *Evaluation
	_, err := rt.named("evaluate", func() (_ *Result, err error) {
		out, err = rt.evaluate(ctx, code, o, nil)
		return nil, err
	})
	return out, err
}

// evaluate evaluates for f, if that is not nil.
func (rt *NodeRuntime) evaluate(ctx context.Context, code string, o EvaluateOptions, f *feed) (*Evaluation, error) {
	o, err := o.settle(rt.opts)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	p, err := snippet.Module(code)
	if err != nil {
		return &Evaluation{Error: syntaxError(err, snippetName), Duration: time.Since(began)}, nil
	}
	notes := newNotes(p, code, o)
	notes.feed = f
	t, err := rt.opts.evaluateTask(p, o, notes)
	if err != nil {
		return nil, err
	}
	notes.sources.file = string(t.dir.Join(snippetName))
	t.feed = f
	res, err := rt.do(ctx, t, RunOptions{Timeout: o.Timeout, OnStdout: notes.stdout.take, OnStderr: notes.stderr.take})
	if res == nil {
		return nil, err
	}
	return notes.conclude(res), err
}

// settle checks the options and fills in what is not given.
func (o EvaluateOptions) settle(s settings) (EvaluateOptions, error) {
	if _, known := formNames[o.Form]; !known {
		return o, fmt.Errorf("option Form: there is no form %d", o.Form)
	}
	heap := heapMiB(s.limits.Memory) << 20
	for _, f := range []struct {
		name            string
		value           *int64
		fallback, least int64
		most            int64
	}{
		{"MaxOutput", &o.MaxOutput, min(defaultEvaluateOutput, s.limits.Value), 1, s.limits.Value},
		{"Heap", &o.Heap, heap, minHeap, heap},
	} {
		if *f.value == 0 {
			*f.value = f.fallback
		}
		if *f.value < f.least || *f.value > f.most {
			return o, &LimitError{f.name, float64(*f.value), float64(f.least), float64(f.most)}
		}
	}
	for _, f := range []struct {
		name           string
		value          *int
		fallback, most int
	}{
		{"MaxCalls", &o.MaxCalls, defaultEvaluateCalls, 1 << 30},
		{"MaxLogs", &o.MaxLogs, defaultLogs, mostLogs},
		{"MaxLogLength", &o.MaxLogLength, defaultLogLength, mostLogLength},
	} {
		if *f.value == 0 {
			*f.value = f.fallback
		}
		if *f.value < 1 || *f.value > f.most {
			return o, &LimitError{f.name, float64(*f.value), 1, float64(f.most)}
		}
	}
	return o, nil
}

// evaluateTask lowers an evaluation to what it starts.
func (s settings) evaluateTask(p *snippet.Program, o EvaluateOptions, n *notes) (*task, error) {
	given, err := newGlobals(o.Globals)
	if err != nil {
		return nil, optionError("Globals", "%w", err)
	}
	s.calls.Calls = o.MaxCalls
	s.bindings = s.bindings.with(given)
	s.limits.Value = o.MaxOutput
	s.heapMiB = o.Heap >> 20
	s.evaluate = &evaluateHead{logBounds{o.MaxLogs, o.MaxLogLength}, formNames[o.Form], p.Explicit}
	t, err := s.nodeTask(p.Code, RunOptions{Name: snippetName, Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd}, true)
	if err != nil {
		return nil, err
	}
	t.told = &told{onLog: n.log, maxLog: maxLog(o.MaxLogLength)}
	return t, nil
}

// maxLog is how many bytes the text of a line may have that is cut to so many characters.
func maxLog(characters int) int64 { return int64(6*(characters+1)) + 8 }
