package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	goruntime "runtime"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/lazyregexp"
)

// Bounds of a request. A tree of values can need a hundred times as much memory as its text, and
// huma reports each invalid element, so that values are counted before they are kept.
const (
	maxValues  = 1 << 20 // numbers, strings, objects, arrays, ..., and names, of a request
	maxTree    = 1 << 16 // values that are kept as a tree
	maxMembers = 1 << 14 // of the request's object, and of each object and array directly in it
	maxDepth   = 64
)

// opaque are the members of requests whose objects and arrays stay text, for the guest or another parser. A tree has
// an empty object or array in their place.
var opaque = map[string]bool{"globals": true, "permissions": true, "arguments": true, "schema": true}

// parsing bounds concurrent parsing of texts above largeText, so that half of the processors stay available.
var parsing = make(chan struct{}, max(1, goruntime.NumCPU()/2))

const largeText = 64 << 10

// Unmarshal parses a text within the bounds: into an *any as a tree without its opaque members, into other types as
// [json.Unmarshal] does. Huma parses each body in both ways, also after a failure of the first.
func Unmarshal(text []byte, v any) error {
	tree, ok := v.(*any)
	if !ok && len(text) <= largeText {
		return unmarshalTyped(text, v)
	}
	if len(text) > largeText {
		parsing <- struct{}{}
		defer func() { <-parsing }()
	}
	p := parser{d: jsontext.NewDecoder(bytes.NewReader(text)), maxValues: maxValues, keep: true, tree: ok}
	parsed, err := p.parse()
	switch {
	case err != nil:
		return err
	case !ok:
		return unmarshalTyped(text, v)
	}
	*tree = parsed
	return nil
}

// unmarshalTyped is json.Unmarshal that also accepts integers such as 1e3 and 1000.0.
func unmarshalTyped(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if _, mismatch := errors.AsType[*json.UnmarshalTypeError](err); mismatch {
		if whole, changed := wholeNumbers(text); changed {
			err = json.Unmarshal(whole, v)
		}
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return at(e.Field, mismatch(e.Type))
	}
	return err
}

// wholeNumbers returns the text with integers instead of numbers such as 1e3 and 1000.0.
func wholeNumbers(text []byte) (whole []byte, changed bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	copied := 0
	for {
		token, err := d.ReadToken()
		if err != nil {
			return append(whole, text[copied:]...), changed
		}
		if token.Kind() != '0' {
			continue
		}
		digits := token.String()
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 || n == 0 && math.Signbit(n) {
			continue
		}
		if end := int(d.InputOffset()); strconv.FormatInt(int64(n), 10) != digits {
			whole = strconv.AppendInt(append(whole, text[copied:end-len(digits)]...), int64(n), 10)
			copied, changed = end, true
		}
	}
}

// Decode parses an object into a struct that has all of its fields, with their exact names. The bounds do
// not apply: fields of the type [json.RawMessage] need another check.
func Decode(text []byte, v any) error {
	return errorOf(jsonv2.Unmarshal(text, v, jsonv2.RejectUnknownMembers(true)))
}

// Check returns an error for text that is not one JSON value within the bounds, with at most some values. Options can
// allow duplicate names and invalid UTF-8.
func Check(text []byte, values int, options ...jsontext.Options) error {
	p := parser{d: jsontext.NewDecoder(bytes.NewReader(text), options...), maxValues: values}
	_, err := p.parse()
	return err
}

// errorOf returns a decoder's error with the path of a value, and without the decoder's and Go's names.
func errorOf(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && e.Err != nil {
		return fmt.Errorf("at byte %d: %w", e.ByteOffset, e.Err)
	}
	e, ok := errors.AsType[*jsonv2.SemanticError](err)
	if !ok {
		return err
	}
	why := e.Err
	switch mistyped := e.JSONKind != '"' && wanted(e.GoType) == "a string"; {
	case errors.Is(why, jsonv2.ErrUnknownName):
		why = errors.New("unknown field")
	case why == nil || mistyped || errors.Is(why, strconv.ErrSyntax) || errors.Is(why, strconv.ErrRange):
		why = mismatch(e.GoType)
	}
	return at(Path(e.JSONPointer), why)
}

// at returns an error with the path of a value, unless it has that already.
func at(path string, err error) error {
	if path == "" || strings.HasPrefix(err.Error(), path+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

const maxName = 64 // characters of a name in a path

var name = lazyregexp.New(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// Join returns the path of a member of the value with a name.
func Join(name, path string) string {
	if path == "" || path[0] == '[' {
		return name + path
	}
	return name + "." + path
}

// Path returns a pointer as a path, as in tenants["uid:1"].runs and list[0].
func Path(pointer jsontext.Pointer) string {
	var path strings.Builder
	for member := range pointer.Tokens() {
		switch _, err := strconv.Atoi(member); {
		case err == nil:
			fmt.Fprintf(&path, "[%s]", member)
		case !name().MatchString(member) || len(member) > maxName:
			fmt.Fprintf(&path, "[%.*q]", maxName, member)
		case path.Len() > 0:
			path.WriteByte('.')
			fallthrough
		default:
			path.WriteString(member)
		}
	}
	return path.String()
}

// kinds are JSON's names for the values of Go's kinds.
var kinds = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.String: "a string", reflect.Float32: "a number", reflect.Float64: "a number",
	reflect.Array: "an array", reflect.Slice: "an array", reflect.Map: "an object", reflect.Struct: "an object",
}

func mismatch(want reflect.Type) error { return fmt.Errorf("want %s", wanted(want)) }

func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a string"
	case k >= reflect.Int && k <= reflect.Int64:
		return "a whole number"
	case k >= reflect.Uint && k <= reflect.Uint64:
		return "a whole number, not negative"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "a string"
	}
	return cmp.Or(kinds[t.Kind()], "another value")
}
