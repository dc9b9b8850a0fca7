package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	goruntime "runtime"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
		return at(pathAt(text, e.Offset), mismatch(e.Type, e.Value))
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
	err := jsonv2.Unmarshal(text, v, jsonv2.RejectUnknownMembers(true))
	e, ok := errors.AsType[*jsonv2.SemanticError](err)
	if !ok {
		return errorOf(err)
	}
	why := e.Err
	switch mistyped := e.JSONKind != '"' && wanted(e.GoType) == "a string"; {
	case errors.Is(why, jsonv2.ErrUnknownName):
		why = errors.New("unknown field")
	case why == nil || mistyped || errors.Is(why, strconv.ErrSyntax) || errors.Is(why, strconv.ErrRange):
		why = mismatch(e.GoType, values[e.JSONKind]+" "+string(e.JSONValue))
	}
	return at(pathAt(text, e.ByteOffset+1), why)
}

// Check returns an error for text that is not one JSON value within the bounds, with at most some values. Options can
// allow duplicate names and invalid UTF-8.
func Check(text []byte, values int, options ...jsontext.Options) error {
	p := parser{d: jsontext.NewDecoder(bytes.NewReader(text), options...), maxValues: values}
	_, err := p.parse()
	return err
}
