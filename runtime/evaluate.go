package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"gaol/internal/snippet"
	"gaol/internal/wire"
	"gaol/policy"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/work"
)

// EvaluateOptions are the options of an evaluation. A zero field takes its default; a
// negative one is an error, except for Timeout.
type EvaluateOptions struct {
	// Globals are variables in globalThis, like Options.Bindings, which they replace by name.
	// A cell of a context fails before it begins if an earlier cell has declared one of the
	// names.
	Globals map[string]any

	Timeout      time.Duration // as RunOptions.Timeout: default 30 s; negative: no limit
	MaxOutput    int64         // bytes of Value; default 1 MiB; at most Limits.Value
	MaxCalls     int           `bounds:"1..1073741824,50"` // calls of host functions; default 50
	MaxLogs      int           `bounds:"1..100000,100"`    // entries of Logs; default 100
	MaxLogLength int           `bounds:"1..1048576,1000"`  // characters of one entry, after which it ends in "…"; default 1,000

	// Form is the form of Evaluation.Value.
	Form ResultForm

	// Module passes the code to Node unchanged, without parsing it: it is an ES module that
	// calls globalThis.__evaluated with its value, as [Normalize] returns it. Positions in
	// Error.Stack refer to the module by its URL, and there is no Error.Frame.
	Module bool

	// Grace lets the code report after its Timeout: running JavaScript is terminated, and the
	// function that the code has set as globalThis.__interrupted is called. Its return value, which
	// must not be a promise, is Evaluation.Value. If it has not returned after Grace, the process
	// is killed; if Grace is zero, immediately after Timeout. Cause and Error report a timeout.
	//
	// Code is terminated in modules, after await, and in callbacks of promises, ticks, timers
	// and immediates. Code in other callbacks, such as a socket's, and native code cannot
	// report. A context interrupts its cells without Grace, which is an error there.
	Grace time.Duration `bounds:"0..10s"`

	// OnLog is called with each entry of Logs as it arrives, one at a time. A slow function
	// slows down the guest.
	OnLog func(Log)

	// OnEvent is as RunOptions.OnEvent. Everything that the snippet prints becomes LogEvents. They may
	// include more of what Node prints before it aborts than Evaluation.Logs has. A context refuses it.
	OnEvent func(Event)

	// Heap is the size of V8's heap in bytes. The default is that of Run, and the maximum what
	// Limits.Memory leaves. With LauncherZygote, each size in use costs the host
	// process one more Node: see [CloseIdle].
	Heap int64

	Permissions policy.Permissions // as RunOptions.Permissions
	Env         map[string]string  // as RunOptions.Env
	Cwd         string             // as RunOptions.Cwd
}

// ResultForm is how a snippet's value is encoded.
type ResultForm string

const (
	// ResultJSON encodes the value as JSON, as in [NodeRuntime.Run]. A last expression that
	// cannot be encoded, such as server.listen(80), is not an error: Evaluation.NoValue is the
	// reason. If a value that the code returns or exports cannot be encoded, that is an error.
	// Servers, timers and processes that the snippet has started continue in both cases.
	ResultJSON ResultForm = ""

	// ResultText is a string: the value as Node's REPL prints it, such as
	// "Map(1) { 'a' => 1 }". Text of more than MaxOutput bytes of JSON is truncated. Every
	// value has one, including undefined. It may contain escape sequences of the guest.
	ResultText ResultForm = "text"

	// ResultColors is ResultText with colors, by terminal escape sequences.
	ResultColors ResultForm = "colors"
)

// Evaluation is the result of a snippet.
type Evaluation struct {
	Value    json.RawMessage `json:"value,omitempty"`   // JSON text of the snippet's value; nil if it has none, or is undefined
	NoValue  string          `json:"noValue,omitempty"` // why the value of the last expression, such as a server, cannot be encoded as JSON; otherwise empty
	Error    *GuestError     `json:"error"`             // nil if it did not fail
	Logs     []Log           `json:"logs"`              // console's lines and other output, in the order of arrival
	Calls    []Call          `json:"calls"`             // of host functions, in the order of arrival
	Duration time.Duration   `json:"durationMs"`        // as Result.Duration
	Cause    Cause           `json:"cause"`             // why the process ended, unless its program exited
	Usage    Usage           `json:"usage"`
	Denials  []Denial        `json:"denials"` // as Result.Denials

	Truncated EvaluationTruncated `json:"truncated"`
}

// EvaluationTruncated marks incomplete lists.
type EvaluationTruncated struct {
	Logs    bool `json:"logs"`
	Calls   bool `json:"calls"`
	Denials bool `json:"denials"`
}

// Decode unmarshals Value into v. It returns Error if the snippet failed, and an error that
// wraps [ErrNoValue] if Value is nil.
func (e *Evaluation) Decode(v any) error {
	switch {
	case e.Error != nil:
		return e.Error
	case e.Value == nil && e.NoValue != "":
		return fmt.Errorf("%w: %s", ErrNoValue, e.NoValue)
	case e.Value == nil:
		return ErrNoValue
	}
	return json.Unmarshal(e.Value, v)
}

// GuestError is why a program or a snippet failed, in a form for its author. Everything comes
// from the guest, except for the following names.
//
// If no error of the guest ended a snippet, Name is one of "TimeoutError",
// "OutOfMemoryError", "LimitError" (another of Limits), "CanceledError", "SignalError",
// "ExitError" (process.exit with another code than 0) and "UnsettledError" (an await that
// never settles). Name is empty if the thrown value is not an Error.
type GuestError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`                  // with the snippet's own lines and columns; may be empty
	Frame   string `json:"frame" required:"false"` // the lines of the snippet around the position, if it is known

	// Code is the error's property code, such as "ENOENT", or a number as text. It may be
	// empty.
	Code string `json:"code,omitempty"`

	// Properties are its other own enumerable properties that have JSON, such as errno and
	// path: at most 32, of 4 KiB each. Getters are not called.
	Properties map[string]json.RawMessage `json:"properties,omitempty"`

	// Cause is its property cause, nested at most 4 deep. A cause that is not an error has only
	// a Message.
	Cause *GuestError `json:"cause,omitempty"`

	// Errors are the first 8 errors of an AggregateError, or the two of a SuppressedError. A
	// GuestError contains at most 16 others. None occurs twice.
	Errors []*GuestError `json:"errors,omitempty"`

	// Denied is the rule that denied the connection or look-up that caused an evaluation's error,
	// such as "network.default", or the limit that left no space. It may be empty.
	Denied string `json:"denied,omitempty"`
}

// Error returns "Name: Message" with the messages of the causes, and with Denied, such as
// "TypeError: fetch failed: connect EACCES 10.0.0.1:443, denied by network.default".
func (e *GuestError) Error() string {
	text := e.chain()
	if e.Name != "" {
		text = e.Name + ": " + text
	}
	if e.Denied != "" {
		text += ", denied by " + e.Denied
	}
	return text
}

// Limits of the texts of an error, in characters.
const (
	maxName    = 256
	maxMessage = 16 << 10
	maxStack   = 32 << 10
)

// newGuestError returns the error that a guest reported. sources may be nil.
func newGuestError(f *wire.Failure, sources *snippet.Sources) *GuestError {
	e := &GuestError{
		Name:    truncate(f.Name, maxName),
		Message: truncate(sources.Relocate(f.Message), maxMessage),
		Stack:   truncate(sources.Stack(f.Stack), maxStack), Frame: sources.Frame(f.Stack),
		Code: truncate(f.Code, maxName), Properties: f.Properties,
	}
	if f.Cause != nil { // package wire limits their number
		e.Cause = newGuestError(f.Cause, sources)
	}
	for _, inner := range f.Errors {
		e.Errors = append(e.Errors, newGuestError(inner, sources))
	}
	return e
}

// Normalize turns code that a model wrote into an ES module, as Evaluate does: it removes
// Markdown fences, translates TypeScript and JSX to JavaScript, and passes the value of the
// last expression to globalThis.__evaluated. If that value is a function, or the code only
// declares one function, the function is called and its result is the value. Without a last
// expression, an object with the exported variables is the value. Code that only
// scripts allow, such as an assignment to an undeclared variable, becomes a script in the module, and
// the value may then be a promise. A syntax error is a *GuestError with the position.
//
// Normalize does not replace the names of CommonJS: where the module runs, globalThis must
// define require, module, exports, __filename and __dirname, as Evaluate does. If the last
// expression sets a property of exports, __evaluated is called without a value, and
// module.exports is the value.
//
// Normalize works in this process, where nothing bounds its time and memory: some code of a few hundred bytes
// takes it years. Hostile code is for Evaluate.
func Normalize(code string) (string, error) {
	text, err := snippet.Normalize(code)
	if err != nil {
		return "", syntaxError(err, snippet.FileName)
	}
	return text, nil
}

// Unfinished reports whether code is incomplete: it has a syntax error that more lines could
// fix, such as an open bracket. Like [Normalize], it is not for hostile code.
func Unfinished(code string) bool { return snippet.Unfinished(code) }

func syntaxError(err error, name string) *GuestError {
	if syntax, ok := errors.AsType[*snippet.SyntaxError](err); ok {
		at := fmt.Sprintf("SyntaxError: %s\n    at %s:%d:%d", syntax.Message, name, syntax.Line, syntax.Column)
		return &GuestError{Name: "SyntaxError", Message: syntax.Message, Stack: at, Frame: syntax.Frame()}
	}
	return &GuestError{Name: "SyntaxError", Message: err.Error()}
}

// Evaluate runs code that a model wrote in a fresh process, as [NodeRuntime.Run] does after
// [Normalize]. It returns the code's value, the lines that it printed, and an error that can
// be shown to the model. If the last expression is a promise, it is awaited.
//
// The code may mix both module formats: it can use import and await, and also require, module,
// exports, __filename and __dirname, and require.main is module. If the code ends without a
// value but exports variables, has set module.exports or a property of it, an object with the variables
// or module.exports is the value. If the last statement sets module.exports to a function, the function is
// called. Code that uses nothing of ES modules need not obey strict mode: as with node -p, it may assign
// to variables that it does not declare.
//
// Like Run, Evaluate returns when the event loop is empty: with an active timer or server it
// runs until its timeout, and the Evaluation then has both the value and the error.
//
// The error is nil whatever the snippet does. If ctx or the runtime's Close ends it, the error
// is that of [NodeRuntime.Run], beside the Evaluation.
func (rt *NodeRuntime) Evaluate(ctx context.Context, code string, o EvaluateOptions) (_ *Evaluation, err error) {
	defer wrap(&err, "evaluate")
	return withEvents(ctx, o.OnEvent, func(ctx context.Context, f *feed) (*Evaluation, error) {
		return rt.evaluate(ctx, code, o, f)
	})
}

// evaluate sends the events to f, if f is not nil.
func (rt *NodeRuntime) evaluate(ctx context.Context, code string, o EvaluateOptions, f *feed) (*Evaluation, error) {
	o.Heap = cmp.Or(o.Heap, rt.opts.heapMiB<<20)
	o, err := o.resolve(rt.opts.Limits)
	if err != nil {
		return nil, err
	}
	l := newLogs(snippet.NewSources("", guest.Dir), o) // a module keeps its positions
	l.feed = f
	main := &cell{logs: l}
	res, err := rt.perform(ctx, &Process{
		code: &guest.Program{Code: code, Value: o.MaxOutput, Evaluate: &guest.Evaluate{
			LogBounds: guest.LogBounds{Logs: o.MaxLogs, LogLength: o.MaxLogLength}, Form: string(o.Form), Interruptible: o.Grace > 0,
		}},
		globals: o.Globals, heap: o.Heap, maxCalls: o.MaxCalls, grace: o.Grace, main: main, feed: f,
	}, RunOptions{Name: snippet.FileName, Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd, Timeout: o.Timeout})
	if _, invalid := errors.AsType[*snippet.SyntaxError](err); invalid {
		return &Evaluation{Error: syntaxError(err, snippet.FileName), Duration: time.Since(l.began)}, nil
	}
	if res == nil {
		return nil, err
	}
	return l.conclude(res, main), err
}

// compile replaces the code of a snippet by the module that it becomes.
func (p *Process) compile(ctx context.Context, s settings) error {
	compiled, err := s.work.Compile(ctx, work.Source{Code: []byte(p.code.Code)})
	if err != nil {
		return err
	}
	l := p.main.logs
	l.sources = snippet.NewSources(path.Join(p.command.Dir, snippet.FileName), guest.Dir)
	l.sources.Add(snippet.FileName, compiled, p.code.Code)
	p.code.Code, p.code.Evaluate.Explicit = compiled.Code(), compiled.Explicit
	return nil
}

// resolve checks the options and fills in defaults.
func (o EvaluateOptions) resolve(l Limits) (_ EvaluateOptions, err error) {
	if !slices.Contains([]ResultForm{ResultJSON, ResultText, ResultColors}, o.Form) {
		return o, optionError("Form", "%q is not a valid form", o.Form)
	}
	o.MaxOutput = cmp.Or(o.MaxOutput, min(1<<20, l.Value))
	return o, errors.Join(checkBytes("MaxOutput", o.MaxOutput, 1, l.Value), checkHeap(o.Heap, l), fill(&o, true))
}
