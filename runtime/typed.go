package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"gaol/runtime/internal/hostcall"
)

// NewFunction returns a Function for a typed one with a single argument. In must be a type
// that encoding/json can decode. The argument is validated against In's JSON Schema, which
// the fields' json and jsonschema tags (descriptions) determine, before f is called. An
// argument that does not match is refused with CodeArguments, for example "argument
// 1.user.id: want integer, got string". NewFunction panics if In has no schema, for example
// because it contains a channel.
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
	return &CallError{CodeArguments, hostcall.ArgumentText(n, err)}
}

// arguments holds the arguments of a call: one more than any typed function has. The array
// bounds the memory, however many arguments a guest sends.
type arguments [3]json.RawMessage

// mismatch returns the error text for a count other than n.
func (a arguments) mismatch(n int) string {
	got := 0
	for got < len(a) && a[got] != nil {
		got++
	}
	text := fmt.Sprintf("want %d argument", n)
	if n != 1 {
		text += "s"
	}
	if got == len(a) {
		return fmt.Sprintf("%s, got %d or more", text, got)
	}
	return fmt.Sprintf("%s, got %d", text, got)
}

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
			return nil, &CallError{CodeArguments, "the arguments: want array"}
		}
		if args[n] != nil || n > 0 && args[n-1] == nil {
			return nil, &CallError{CodeArguments, args.mismatch(n)}
		}
		return f(ctx, args)
	}}
}
