package runtime

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// NewFunction makes a Function of a typed one with a single argument. In is what
// encoding/json can read; its JSON Schema, by its fields' json tags and jsonschema
// tags (their descriptions), is what the argument is held against before f is called. What is not
// in it is refused with CodeArguments, as by "argument 1.user.id: want integer, got string". It panics where In has no schema, such as with a
// channel in it.
func NewFunction[In, Out any](description string, f func(context.Context, In) (Out, error)) Function {
	in := newParameter[In]()
	return typedFunction(description, []*jsonschema.Schema{in.schema}, func(ctx context.Context, args arguments) (any, error) {
		v, err := in.read(args[0])
		if err != nil {
			return nil, argumentError(1, err)
		}
		return f(ctx, v)
	})
}

// NewFunction0 is NewFunction for one without arguments.
func NewFunction0[Out any](description string, f func(context.Context) (Out, error)) Function {
	return typedFunction(description, nil, func(ctx context.Context, _ arguments) (any, error) { return f(ctx) })
}

// NewFunction2 is NewFunction for one with two arguments.
func NewFunction2[A, B, Out any](description string, f func(context.Context, A, B) (Out, error)) Function {
	first, second := newParameter[A](), newParameter[B]()
	return typedFunction(description, []*jsonschema.Schema{first.schema, second.schema}, func(ctx context.Context, args arguments) (any, error) {
		a, err := first.read(args[0])
		if err != nil {
			return nil, argumentError(1, err)
		}
		b, err := second.read(args[1])
		if err != nil {
			return nil, argumentError(2, err)
		}
		return f(ctx, a, b)
	})
}

// arguments are those of a call, one more than any typed function has. Being so few, they
// take up no more than what came, however many a guest has sent.
type arguments [3]json.RawMessage

// count says that there are more or fewer than n.
func (a arguments) count(n int) string {
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
			return nil, &CallError{CodeArguments, args.count(n)}
		}
		return f(ctx, args)
	}}
}

// schemas has the types that encoding/json reads otherwise than the library takes them to
// be, besides those of ownForms.
var schemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[[]byte]():      {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[json.Number](): {Type: "number"},
	reflect.TypeFor[time.Time]():   {Type: "string"},
	reflect.TypeFor[slog.Level]():  {Type: "string"},
}

// ownForms adds types inside of t that read their JSON themselves, as an address does: the
// library goes by their fields.
func ownForms(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if known[t] != nil || seen[t] {
		return
	}
	seen[t] = true
	switch p := reflect.PointerTo(t); {
	case t.Kind() == reflect.Interface:
	case t.Kind() != reflect.Pointer && p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		known[t] = &jsonschema.Schema{Types: []string{"null", "boolean", "number", "string", "array", "object"}}
	case t.Kind() != reflect.Pointer && p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		known[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			ownForms(t.Field(i).Type, known, seen)
		}
	case slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()):
		ownForms(t.Elem(), known, seen)
	}
}

// parameter reads one argument of a typed function.
type parameter[T any] struct {
	schema  *jsonschema.Schema
	checked *jsonschema.Resolved // nil: reading is all the check that the type needs
}

func newParameter[T any]() parameter[T] {
	known := maps.Clone(schemas)
	ownForms(reflect.TypeFor[T](), known, map[reflect.Type]bool{})
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		panic(fmt.Errorf("gaol: function: %w", err))
	}
	p := parameter[T]{schema: schema}
	if isScalar(reflect.TypeFor[T]()) {
		return p
	}
	if p.checked, err = schema.Resolve(nil); err != nil {
		panic(fmt.Errorf("gaol: function: %w", err))
	}
	return p
}

// isScalar reports whether encoding/json reads a type by itself, from one kind of JSON's
// values, and from null.
func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p := reflect.PointerTo(t)
		return !p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	return false
}

// read reads into the type first, and holds what fits in there against the schema: a
// small text can be a large tree of anything.
func (p parameter[T]) read(text json.RawMessage) (v T, err error) {
	if p.checked == nil {
		if string(text) == "null" {
			return v, &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[T]()}
		}
		err = json.Unmarshal(text, &v)
		return v, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return v, err
	}
	return v, p.checked.Validate(tree)
}
