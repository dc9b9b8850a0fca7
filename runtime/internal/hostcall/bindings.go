package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"gaol/internal/lazyregexp"
)

// Func is a host function that takes its arguments as a JSON array.
type Func func(ctx context.Context, args json.RawMessage) (any, error)

// Function is a host function with the path that guest code calls it by.
type Function struct {
	Path  []string
	Call  Func
	Async bool // it returns a promise in the guest

	Schema   json.RawMessage // that the arguments must match; nil: any
	Verified *atomic.Bool    // whether Schema is known to be one; nil without Schema

	name     string
	integers Integers // of results
}

// Name returns the path as guest code writes it, such as "api.get".
func (f *Function) Name() string { return f.name }

// Bindings are what programs find in globalThis. The zero value has none.
type Bindings struct {
	Functions []Function
	values    map[string]json.RawMessage // by name
}

const (
	maxFunctions = 1024
	maxDepth     = 16
	maxValues    = 16 << 20 // bytes of their JSON
)

// NewBindings separates functions from data, and encodes the data. As is for both. Later changes of given
// have no effect.
func NewBindings(given map[string]any, classify Classifier, as Integers) (*Bindings, error) {
	b := &Bindings{}
	if len(given) == 0 {
		return b, nil
	}
	b.values = map[string]json.RawMessage{}
	values, err := b.split(nil, given, classify)
	if err != nil {
		return nil, err
	}
	for name, v := range values {
		if b.values[name], err = Encode(name, v, as); err != nil {
			return nil, err
		}
	}
	for i := range b.Functions {
		b.Functions[i].integers = as
	}
	// The number of functions and the size of the data bound what each program reads at its start.
	if len(b.Functions) > maxFunctions {
		return nil, fmt.Errorf("they have %d functions, the limit is %d", len(b.Functions), maxFunctions)
	}
	_, err = b.Values()
	return b, err
}

// Overlay returns b with others added, which replace bindings of the same name.
func (b *Bindings) Overlay(others *Bindings) *Bindings {
	if len(others.values) == 0 && len(others.Functions) == 0 {
		return b
	}
	all := &Bindings{values: maps.Clone(others.values)}
	for name, v := range b.values {
		if !others.Has(name) {
			all.values[name] = v
		}
	}
	for _, f := range b.Functions {
		if !others.Has(f.Path[0]) {
			all.Functions = append(all.Functions, f)
		}
	}
	all.Functions = append(all.Functions, others.Functions...)
	return all
}

// Has reports whether a variable of that name is defined. It may be called on nil.
func (b *Bindings) Has(name string) bool {
	if b == nil {
		return false
	}
	_, isData := b.values[name]
	return isData || slices.ContainsFunc(b.Functions, func(f Function) bool { return f.Path[0] == name })
}

// Values returns the data as a JSON object, or "" if there is none.
func (b *Bindings) Values() (string, error) {
	if len(b.values) == 0 {
		return "", nil
	}
	text, err := json.Marshal(b.values)
	if err == nil && len(text) > maxValues {
		err = fmt.Errorf("they have %d bytes of JSON, the limit is %d", len(text), maxValues)
	}
	return string(text), err
}

// Identifier matches the names of JavaScript's variables, reserved words included.
var Identifier = lazyregexp.New(`^[\p{L}_$][\p{L}\p{Nd}_$]*$`)

// forbidden are names that gaol, JavaScript or Object.prototype already define.
var forbidden = []string{"__return", "__evaluated", "globalThis", "global", "undefined", "NaN", "Infinity", "__proto__", "constructor", "prototype"}

// required are globals that gaol's JavaScript, or Node's, uses while a program runs. Members
// of objects may have these names.
var required = strings.Fields(`Array ArrayBuffer BigInt Boolean Buffer Date Error Function JSON Map Math Number Object
	Promise Proxy RangeError Reflect RegExp Set String Symbol SyntaxError TypeError Uint8Array WeakMap console process
	setImmediate __cell __const __meta __named`)

// reserved are the reserved words of modules and of strict mode.
var reserved = strings.Fields(`arguments await break case catch class const continue debugger default delete do else enum
	eval export extends false finally for function if implements import in instanceof interface let new null package
	private protected public return static super switch this throw true try typeof var void while with yield`)

func checkName(path []string) error {
	name := path[len(path)-1]
	switch {
	case len(path) == 1 && slices.Contains(required, name):
		return fmt.Errorf("%q can't be given: programs need Node's own; give it another name, or put it into an object", name)
	case len(path) == 1 && slices.Contains(reserved, name):
		return fmt.Errorf("%q is a word of JavaScript: give it another name, or put it into an object", name)
	case len(path) > maxDepth:
		return fmt.Errorf("%s: deeper than %d", strings.Join(path, "."), maxDepth)
	case !Identifier().MatchString(name):
		return fmt.Errorf("%q is not a valid JavaScript identifier", strings.Join(path, "."))
	case slices.Contains(forbidden, name):
		return fmt.Errorf("%q can't be given", strings.Join(path, "."))
	}
	return nil
}

// split moves the functions to b and returns the data. Names are checked where they lead to a
// function, not inside data.
func (b *Bindings) split(above []string, given map[string]any, classify Classifier) (map[string]any, error) {
	data := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path, before := append(slices.Clone(above), name), len(b.Functions)
		f, inside, err := classify(given[name])
		if err == nil && inside != nil && len(path) <= maxDepth {
			inside, err = b.split(path, inside, classify)
		}
		if err == nil && (f.Call != nil || len(b.Functions) > before || len(above) == 0) {
			err = checkName(path)
		}
		switch {
		case err != nil:
			return nil, err
		case f.Call != nil:
			f.Path, f.name = path, strings.Join(path, ".")
			b.Functions = append(b.Functions, f)
		case len(b.Functions) > before:
			data[name] = inside
		default:
			data[name] = given[name]
		}
	}
	return data, nil
}

// Classifier returns the kind of a caller's value: a function with its Call, a map that may contain
// functions, or data if neither is set.
type Classifier func(v any) (f Function, inside map[string]any, err error)

// NewClassifier returns the Classifier of programs whose functions have the type F, a pointer to it, or
// that of Func. Of converts a function.
func NewClassifier[F any](of func(F) Function) Classifier {
	return func(v any) (f Function, inside map[string]any, err error) {
		switch v := v.(type) {
		case func(context.Context, json.RawMessage) (any, error):
			f.Call = v
		case map[string]any:
			return f, v, nil
		case *F:
			if v != nil {
				f = of(*v)
			}
		case F:
			f = of(v)
		default:
			if v != nil && reflect.TypeOf(v).Kind() == reflect.Func {
				return f, nil, fmt.Errorf("a %T is not a host function: make one with NewFunction", v)
			}
			return f, nil, nil
		}
		if f.Call == nil {
			return f, nil, errors.New("a function without Call")
		}
		return f, nil, nil
	}
}
