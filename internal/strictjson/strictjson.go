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
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"gaol/internal/lazyregexp"
)

// Bounds of a request. A tree of values can need a hundred times as much memory as its text, so that values are counted
// before they are parsed.
const (
	maxValues  = 1 << 20 // numbers, strings, objects, arrays, ..., and names, of a request
	maxTree    = 1 << 16 // values that are kept as a tree
	maxMembers = 1 << 14 // of the request's object, and of each object and array directly in it: huma reports each invalid one
	maxDepth   = 64
)

// opaque are the members of requests whose objects and arrays stay text, for the guest or another parser. A tree has
// an empty object or array in their place.
var opaque = map[string]bool{"globals": true, "permissions": true, "arguments": true, "schema": true}

// parsing bounds concurrent parsing of texts above largeText, so that half of the processors stay available.
var parsing = make(chan struct{}, max(1, goruntime.NumCPU()/2))

const largeText = 64 << 10

// Unmarshal parses a text within the bounds: into an *any as a tree without its opaque members, into other types as
// [json.Unmarshal] does. It also accepts integers such as 1e3 and 1000.0.
func Unmarshal(text []byte, v any) error {
	if len(text) > largeText {
		parsing <- struct{}{}
		defer func() { <-parsing }()
	}
	if _, err := Count(text); err != nil {
		return err
	}
	return errorOf(text, jsonv2.Unmarshal(text, v, lenientTypes))
}

// Values returns the members of an object as values that stay as they are in JSON.
func Values(members map[string]json.RawMessage) map[string]any {
	values := make(map[string]any, len(members))
	for name, text := range members {
		values[name] = text
	}
	return values
}

var lenientTypes = jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
	jsonv2.UnmarshalFromFunc(unmarshalOpaque), integers[int](), integers[int64](), integers[uint16](), integers[uint32](), integers[uint64](),
))

// unmarshalOpaque skips the object or array of an opaque member.
func unmarshalOpaque(d *jsontext.Decoder, v *any) error {
	empty, ok := map[jsontext.Kind]any{'{': map[string]any{}, '[': []any{}}[d.PeekKind()]
	if !ok || !opaque[d.StackPointer().LastToken()] {
		return errors.ErrUnsupported // as without this function
	}
	*v = empty
	return d.SkipValue()
}

// integers accepts integers such as 1e3 and 1000.0.
func integers[T int | int64 | uint16 | uint32 | uint64]() *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, n *T) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		text, err := d.ReadValue()
		if err != nil || json.Unmarshal(text, n) == nil {
			return err
		}
		f, err := strconv.ParseFloat(string(text), 64)
		if *n = T(f); err != nil || float64(*n) != f || math.Abs(f) > 1<<53 {
			return strconv.ErrSyntax
		}
		return nil
	})
}

// Decode parses an object into a struct that has all of its fields, with their exact names. The bounds do
// not apply: fields of the type [json.RawMessage] need another check.
func Decode(text []byte, v any, options ...jsonv2.Options) error {
	return errorOf(text, jsonv2.Unmarshal(text, v, append(options, jsonv2.RejectUnknownMembers(true))...))
}

// Read is Decode for the next object of a stream. It returns [io.EOF] if there is none.
func Read(d *jsontext.Decoder, v any) error {
	return jsonv2.UnmarshalDecode(d, v, jsonv2.RejectUnknownMembers(true))
}

// Check returns an error for text that is not one JSON value within the bounds, with at most some values. Options can
// allow duplicate names and invalid UTF-8.
func Check(text []byte, values int, options ...jsontext.Options) error {
	if _, err := count(text, values, values); err != nil {
		return err
	}
	var value jsontext.Value
	return errorOf(text, jsonv2.Unmarshal(text, &value, options...))
}

// Error is an error in a text.
type Error struct {
	Place string // such as list[0].name; "line 2, column 7" for text that is not JSON; "" for the whole
	Err   error
}

// Error returns the place and the reason.
func (e *Error) Error() string {
	why := e.Err.Error()
	if e.Place == "" || strings.HasPrefix(why, e.Place+": ") {
		return why
	}
	return e.Place + ": " + why
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// errorOf returns a decoder's error as an *Error, without the decoder's and Go's names.
func errorOf(text []byte, err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && e.Err != nil {
		return &Error{lineOf(text, e.ByteOffset), e.Err}
	}
	e, ok := errors.AsType[*jsonv2.SemanticError](err)
	if !ok {
		return err
	}
	why := e.Err
	switch mistyped := e.JSONKind != '"' && wanted(e.GoType) == "a string"; {
	case errors.Is(why, jsonv2.ErrUnknownName):
		why = errors.New("unknown field")
	case errors.Is(why, strconv.ErrRange) && strings.Contains(wanted(e.GoType), "number"):
		why = errors.New("the number is out of range")
	case why == nil || mistyped || errors.Is(why, strconv.ErrSyntax) || errors.Is(why, strconv.ErrRange):
		why = fmt.Errorf("want %s", wanted(e.GoType))
	}
	return &Error{Path(e.JSONPointer), why}
}

// lineOf returns the line and column of an offset, both counted from 1.
func lineOf(text []byte, offset int64) string {
	before := text[:min(offset, int64(len(text)))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
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

// Count returns how many values of a text are outside of opaque members, and become a tree. It does not check the text.
// The error means that there are more values than a request may have.
func Count(text []byte) (kept int, err error) { return count(text, maxValues, maxTree) }

func count(text []byte, maxValues, maxKept int) (kept int, err error) {
	var (
		values, depth int    // of open objects and arrays
		inside        int    // depth of the opaque member that is open; 0: none is
		name          []byte // the last string
		isOpaque      bool   // the next value belongs to an opaque member
		inScalar      bool
		members       [3]int // of the open object or array at a depth, with names
	)
	for i := 0; i < len(text); i++ {
		first := text[i]
		switch first {
		case ',', ' ', '\n', '\r', '\t':
			inScalar = false
			continue
		case ':':
			isOpaque = inside == 0 && opaque[string(name)]
			continue
		case '}', ']':
			if depth == inside {
				inside = 0
			}
			depth, inScalar = max(0, depth-1), false
			continue
		case '{', '[':
			if depth++; isOpaque {
				inside = depth
			}
			if depth < len(members) {
				members[depth] = 0
			}
		case '"':
			begin := i + 1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			name = text[begin:min(i, len(text))]
		default:
			if inScalar {
				continue
			}
			inScalar = true
		}
		isOpaque = false
		values++
		in := depth // of the object or array that has the value
		if first == '{' || first == '[' {
			in--
		}
		if in < len(members) {
			members[in]++
		}
		if inside == 0 {
			kept++
		}
		switch {
		case values > maxValues:
			return kept, fmt.Errorf("more than %d values", maxValues)
		case kept > maxKept:
			return kept, fmt.Errorf("more than %d values outside of globals", maxKept)
		case inside == 0 && in < len(members) && members[in] > 2*maxMembers:
			return kept, fmt.Errorf("an object or array with more than %d members", maxMembers)
		case depth > maxDepth:
			return kept, fmt.Errorf("more than %d levels of objects and arrays", maxDepth)
		}
	}
	return kept, nil
}

// Encode encodes a value as one line, or as several with an indent. It does not escape <, > and &, which are frequent in
// code and stack traces.
func Encode(v any, indent string) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return text.Bytes(), err
}

// resultOptions encode as package encoding/json does, but never a list as null. They leave the escaping of <, > and &
// to the encoder that calls MarshalJSON.
var resultOptions = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsonv2.FormatNilSliceAsNull(false))

var (
	durations = jsonv2.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteToken(jsontext.Float(Milliseconds(d)))
	})
	decoding = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, to *time.Duration) error {
		var ms float64
		err := jsonv2.UnmarshalDecode(d, &ms)
		*to = time.Duration(ms * float64(time.Millisecond)).Round(time.Microsecond)
		return err
	})))
)

// MarshalResult encodes a struct without a method MarshalJSON. The functions more encode types in it differently.
func MarshalResult(v any, more ...*jsonv2.Marshalers) ([]byte, error) {
	return jsonv2.Marshal(v, resultOptions, jsonv2.WithMarshalers(jsonv2.JoinMarshalers(append(more, durations)...)))
}

// UnmarshalResult decodes into a struct without a method UnmarshalJSON.
func UnmarshalResult(text []byte, v any) error { return jsonv2.Unmarshal(text, v, decoding) }

// Milliseconds keeps three decimals: the rest is noise.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
