package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"

	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/work"
)

// Function is a host function that guest code can call: a value of Options.Bindings or
// EvaluateOptions.Globals, directly or inside a map[string]any.
//
// In the guest, api.get(1) looks like any function: the call blocks the guest until the
// result arrives. The result may be awaited. api.get.async(1) returns a promise, so that
// many calls can run concurrently. With Async, api.get(1) does so, too. callBinding("api.get", 1) is
// the same by name, unless the host defines a variable callBinding. An error is thrown in the
// guest, or rejects the promise. Functions exist only in a program's main thread, not in its workers.
//
// Any code of the guest may call a function, with any arguments, at any time during the
// run: a function must check them like a stranger's request.
type Function struct {
	// Call gets the arguments as a JSON array of at most CallLimits.Arguments bytes, in which
	// bytes are base64 text and dates RFC 3339 text. ctx ends with the run, or after
	// CallLimits.Timeout. Calls may run concurrently. The run does not wait for functions that
	// have not returned when ctx ends, except for up to 200 ms at its end, for calls that have
	// just begun. No call begins after that.
	//
	// The result may be anything that encoding/json can encode, in at most CallLimits.Result
	// bytes. []byte and time.Time in it become a Uint8Array and a Date in the guest; for large integers
	// see Options.BigInts. Of an
	// error the guest sees the text and, of a *CallError, the code. A panic becomes an error
	// without further information.
	Call func(ctx context.Context, args json.RawMessage) (any, error)

	// Async makes the guest's function return a promise: calls do not block the guest, whose
	// timers and connections continue meanwhile.
	Async bool

	// Description and Schema are for prompts: the function's purpose, and the JSON Schema of
	// its arguments as an array. gaol does not use them, except for Schema if Strict is set.
	Description string
	Schema      json.RawMessage

	// Strict refuses calls whose arguments do not match Schema, with CodeArguments. The schema may be
	// hostile: it is used where code is compiled, see Options.WorkInProcess.
	Strict bool
}

// CallError is an error that a guest sees with a Code, such as "ENOENT", and a Message, like Node's own errors.
type CallError = hostcall.Error

// Codes of errors that guests see for calls that reach no function, or whose result cannot
// be sent.
const (
	CodeManyCalls = hostcall.CodeManyCalls // CallLimits.Calls is exhausted, or too many calls are running
	CodeArguments = hostcall.CodeArguments // the arguments do not match a typed function
	CodeTimeout   = hostcall.CodeTimeout   // CallLimits.Timeout passed
	CodeResult    = hostcall.CodeResult    // the result is too large, or cannot be encoded as JSON
	CodePanic     = hostcall.CodePanic     // the function panicked
	CodeNoCell    = hostcall.CodeNoCell    // a context called it between two cells
)

// CallLimits bound the calls of host functions that a run can make. A zero field takes its
// default; a negative one is an error.
//
//	Calls      int           // of one run, answered or not; default 100,000; with Evaluate 50
//	Concurrent int           // functions of one run that run concurrently on the host, at most 1,024; default 16
//	Arguments  int64         // bytes of the JSON of one call's arguments; default 1 MiB
//	Result     int64         // bytes of the JSON of one result; default 4 MiB
//	Timeout    time.Duration // wall-clock time of one call, including its time in the queue; default 30 s
type CallLimits = hostcall.Limits

// Call describes a call of a host function: its Name, Duration, the sizes of its Arguments and its Result, and its Error.
type Call = hostcall.Call

// newBindings separates functions and data of Options.Bindings and the like.
func (o Options) newBindings(given map[string]any) (*hostcall.Bindings, error) {
	return hostcall.NewBindings(given, classify, hostcall.NewIntegers(o.BigInts))
}

// classify separates functions from other values.
var classify = hostcall.NewClassifier(func(f Function) hostcall.Function {
	h := hostcall.Function{Call: f.Call, Async: f.Async}
	if f.Strict {
		h.Schema, h.Verified = f.Schema, new(atomic.Bool)
	}
	return h
})

// verifySchemas refuses functions whose Schema is not one. Each is verified once.
func (s settings) verifySchemas(ctx context.Context) error {
	for _, f := range s.bindings.Functions {
		if f.Schema == nil || f.Verified.Load() {
			continue
		}
		if err := s.work.CheckSchema(ctx, f.Schema); err != nil {
			if _, ok := errors.AsType[*work.Failure](err); ok || errors.Is(err, work.ErrSchema) {
				err = optionError("Bindings", "%s: the schema: %w", f.Name(), err)
			}
			return err
		}
		f.Verified.Store(true)
	}
	return nil
}

// checkedFunctions returns the functions that programs call: those with a Schema check their
// arguments.
func (s settings) checkedFunctions() []hostcall.Function {
	list := slices.Clone(s.bindings.Functions)
	for i, f := range list {
		if f.Schema == nil {
			continue
		}
		list[i].Call = func(ctx context.Context, args json.RawMessage) (any, error) {
			err := s.work.Validate(ctx, f.Schema, args)
			if err == nil {
				return f.Call(ctx, args)
			}
			failure, failed := errors.AsType[*work.Failure](err)
			mismatch, differs := errors.AsType[*work.MismatchError](err)
			switch {
			case failed:
				err = &CallError{Code: CodeArguments, Message: "the arguments: " + failure.Reason}
			case differs:
				err = &CallError{Code: CodeArguments, Message: "the arguments: " + mismatch.Text}
			}
			return nil, err
		}
	}
	return list
}

// NewFunction returns a Function for a typed one with a single argument. In must be a type
// that encoding/json can decode. The argument is validated against In's JSON Schema, which
// the fields' json and jsonschema tags (descriptions) determine, before f is called. An
// argument that does not match is refused with CodeArguments, for example "argument
// 1: user.id: want a whole number". NewFunction panics if In cannot be described by a schema,
// for example because it contains a channel.
func NewFunction[In, Out any](description string, f func(context.Context, In) (Out, error)) Function {
	in := hostcall.NewParameter[In]()
	return typedFunction(description, []*jsonschema.Schema{in.Schema}, func(ctx context.Context, args arguments) (any, error) {
		v, err := in.Decode(args[0])
		if err != nil {
			return nil, argumentError(1, err)
		}
		return f(ctx, v)
	})
}

// NewFunction0 is NewFunction for a function without arguments.
func NewFunction0[Out any](description string, f func(context.Context) (Out, error)) Function {
	return typedFunction(description, nil, func(ctx context.Context, _ arguments) (any, error) { return f(ctx) })
}

// NewFunction2 is NewFunction for a function with two arguments.
func NewFunction2[A, B, Out any](description string, f func(context.Context, A, B) (Out, error)) Function {
	first, second := hostcall.NewParameter[A](), hostcall.NewParameter[B]()
	return typedFunction(description, []*jsonschema.Schema{first.Schema, second.Schema}, func(ctx context.Context, args arguments) (any, error) {
		a, err := first.Decode(args[0])
		if err != nil {
			return nil, argumentError(1, err)
		}
		b, err := second.Decode(args[1])
		if err != nil {
			return nil, argumentError(2, err)
		}
		return f(ctx, a, b)
	})
}

// argumentError returns the error for the nth argument as guests, and Go programs that call
// Function.Call, get it.
func argumentError(n int, err error) error {
	return &CallError{Code: CodeArguments, Message: fmt.Sprintf("argument %d: %s", n, err)}
}

// arguments holds the arguments of a call: one more than any typed function has. The array
// bounds the memory, however many arguments a guest sends.
type arguments [3]json.RawMessage

func typedFunction(description string, parameters []*jsonschema.Schema, f func(context.Context, arguments) (any, error)) Function {
	n := len(parameters)
	list := &jsonschema.Schema{Type: "array", PrefixItems: parameters, MaxItems: &n}
	if n > 0 {
		list.MinItems = &n
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Errorf("gaol: function: %w", err))
	}
	return Function{Description: description, Schema: text, Call: func(ctx context.Context, text json.RawMessage) (any, error) {
		var args arguments
		if err := json.Unmarshal(text, &args); err != nil {
			return nil, &CallError{Code: CodeArguments, Message: "the arguments: want array"}
		}
		switch {
		case args[n] != nil:
			return nil, &CallError{Code: CodeArguments, Message: fmt.Sprintf("too many arguments, want %d", n)}
		case n > 0 && args[n-1] == nil:
			return nil, &CallError{Code: CodeArguments, Message: fmt.Sprintf("too few arguments, want %d", n)}
		}
		return f(ctx, args)
	}}
}
