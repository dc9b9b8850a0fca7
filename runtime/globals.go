package runtime

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// globals are what a program finds in globalThis, as the host's side keeps it.
type globals struct {
	values    map[string]json.RawMessage // by name
	functions []hostFunction
}

// hostFunction is a Function with its place.
type hostFunction struct {
	path []string
	call func(context.Context, json.RawMessage) (any, error)
	full string
}

// name is the path as guest code writes it.
func (f *hostFunction) name() string { return f.full }

const (
	mostFunctions = 1024
	deepestGlobal = 16
	maxGlobals    = 16 << 20 // bytes of their JSON
)

// newGlobals takes apart what a caller gives to programs: maps of text to anything are
// looked into for functions, the rest is data. What the caller changes afterwards is
// not seen.
func newGlobals(given map[string]any) (*globals, error) {
	if len(given) == 0 {
		return &globals{}, nil
	}
	g := &globals{values: map[string]json.RawMessage{}}
	values, err := g.split(nil, given)
	if err != nil {
		return nil, err
	}
	for name, v := range values {
		if g.values[name], err = toGuest(v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(g.functions) > mostFunctions {
		return nil, fmt.Errorf("they have %d functions, the limit is %d", len(g.functions), mostFunctions)
	}
	_, err = g.text()
	return g, err
}

// with lays others over these, by name.
func (g *globals) with(others *globals) *globals {
	if len(others.values) == 0 && len(others.functions) == 0 {
		return g
	}
	all := &globals{values: maps.Clone(others.values)}
	for name, v := range g.values {
		if !others.has(name) {
			all.values[name] = v
		}
	}
	for _, f := range g.functions {
		if !others.has(f.path[0]) {
			all.functions = append(all.functions, f)
		}
	}
	all.functions = append(all.functions, others.functions...)
	return all
}

// has reports whether they define a variable of that name. It may be called on nil.
func (g *globals) has(name string) bool {
	if g == nil {
		return false
	}
	_, isData := g.values[name]
	return isData || slices.ContainsFunc(g.functions, func(f hostFunction) bool { return f.path[0] == name })
}

// text is the values' JSON, empty for none.
func (g *globals) text() (string, error) {
	if len(g.values) == 0 {
		return "", nil
	}
	text, err := json.Marshal(g.values)
	if err == nil && len(text) > maxGlobals {
		err = fmt.Errorf("they have %d bytes of JSON, the limit is %d", len(text), maxGlobals)
	}
	return string(text), err
}

// identifier is a name that JavaScript has for a variable, without words of its own and
// what would be none of ours to define.
var identifier = regexp.MustCompile(`^[\p{L}_$][\p{L}\p{Nd}_$]*$`)

// taken are names that a program's own world stands on.
var taken = []string{"__return", "__evaluated", "callBinding", "globalThis", "global", "undefined", "NaN", "Infinity", "__proto__", "constructor", "prototype"}

// stoodOn are variables that gaol's own half, or Node's, uses while a program goes on. A
// member of an object may be named so.
var stoodOn = strings.Fields(`Array ArrayBuffer BigInt Boolean Buffer Date Error Function JSON Map Math Number Object
	Promise Proxy RangeError Reflect RegExp Set String Symbol SyntaxError TypeError Uint8Array WeakMap console process
	setImmediate __cell __meta`)

// reserved are words of modules and of other strict code, where no variable has such a name.
var reserved = strings.Fields(`arguments await break case catch class const continue debugger default delete do else enum
	eval export extends false finally for function if implements import in instanceof interface let new null package
	private protected public return static super switch this throw true try typeof var void while with yield`)

func checkName(path []string) error {
	name := path[len(path)-1]
	switch {
	case len(path) == 1 && slices.Contains(stoodOn, name):
		return fmt.Errorf("%q can't be given: programs need Node's own; give it another name, or put it into an object", name)
	case len(path) == 1 && slices.Contains(reserved, name):
		return fmt.Errorf("%q is a word of JavaScript: give it another name, or put it into an object", name)
	case len(path) > deepestGlobal:
		return fmt.Errorf("%s: deeper than %d", strings.Join(path, "."), deepestGlobal)
	case !identifier.MatchString(name):
		return fmt.Errorf("%q is no name of a variable", strings.Join(path, "."))
	case slices.Contains(taken, name):
		return fmt.Errorf("%q can't be given", strings.Join(path, "."))
	}
	return nil
}

// split takes the functions out. Names of data inside data may be anything.
func (g *globals) split(above []string, given map[string]any) (map[string]any, error) {
	data := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path := append(slices.Clone(above), name)
		call, inside, err := look(given[name])
		if err == nil && (call != nil || hasFunction(inside) || len(above) == 0) {
			err = checkName(path)
		}
		switch {
		case err != nil:
			return nil, err
		case call != nil:
			g.functions = append(g.functions, hostFunction{path, call, strings.Join(path, ".")})
		case hasFunction(inside):
			if data[name], err = g.split(path, inside); err != nil {
				return nil, err
			}
		default:
			data[name] = given[name]
		}
	}
	return data, nil
}

// look says what a value is: a function, a map that may have some, or data.
func look(v any) (call func(context.Context, json.RawMessage) (any, error), inside map[string]any, err error) {
	switch v := v.(type) {
	case Function:
		call = v.Call
	case *Function:
		if v != nil {
			call = v.Call
		}
	case func(context.Context, json.RawMessage) (any, error):
		call = v
	case map[string]any:
		return nil, v, nil
	default:
		if v != nil && reflect.TypeOf(v).Kind() == reflect.Func {
			return nil, nil, fmt.Errorf("a %T is no host function: make one with NewFunction", v)
		}
		return nil, nil, nil
	}
	if call == nil {
		return nil, nil, fmt.Errorf("a function without Call")
	}
	return call, nil, nil
}

func hasFunction(m map[string]any) bool {
	for _, v := range m {
		if call, inside, err := look(v); call != nil || err != nil || hasFunction(inside) {
			return true
		}
	}
	return false
}

// Names for what JSON lacks; guest/wire.cjs has them, too.
const (
	bytesName = "\x00bytes"
	dateName  = "\x00date"
)

// guestForms are encoding/json's, but for bytes and times.
var guestForms = jsonx.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsontext.EscapeForHTML(false),
	jsonx.WithMarshalers(jsonx.JoinMarshalers(
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, b []byte) error {
			if b == nil {
				return e.WriteToken(jsontext.Null)
			}
			return writeForm(e, bytesName, base64.StdEncoding.EncodeToString(b))
		}),
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
			if isName(e) {
				return errors.ErrUnsupported // as encoding/json has it
			}
			text, err := dateText(t.UTC())
			if err != nil {
				return err
			}
			return writeForm(e, dateName, text)
		}),
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, n json.Number) error {
			if isName(e) {
				return errors.ErrUnsupported // as encoding/json has it
			}
			return e.WriteValue(jsontext.Value(cmp.Or(n, "0")))
		}),
	)),
)

// isName reports whether a name of an object's is to come, which can be text alone.
func isName(e *jsontext.Encoder) bool {
	kind, n := e.StackIndex(e.StackDepth())
	return kind == '{' && n%2 == 0
}

// dateText is a time as JavaScript's Date reads it, which has a sign and six digits for years
// that are not of four.
func dateText(t time.Time) (string, error) {
	const most = 271_820 // the last year, before and after the year 0, that a Date has as a whole
	year := t.Year()
	switch {
	case year >= 0 && year <= 9999:
		return t.Format("2006-01-02T15:04:05.000Z"), nil
	case year >= -most && year <= most:
		return fmt.Sprintf("%+07d%s", year, t.Format("-01-02T15:04:05.000Z")), nil
	}
	return "", fmt.Errorf("the year %d is none of a Date's", year)
}

func writeForm(e *jsontext.Encoder, name, text string) error {
	for _, token := range []jsontext.Token{jsontext.BeginObject, jsontext.String(name), jsontext.String(text), jsontext.EndObject} {
		if err := e.WriteToken(token); err != nil {
			return err
		}
	}
	return nil
}

// toGuest writes a value as the guest reads it: JSON in which bytes and times have forms
// of their own.
func toGuest(v any) (json.RawMessage, error) {
	return jsonx.Marshal(v, guestForms)
}
