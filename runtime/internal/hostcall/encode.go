package hostcall

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/google/jsonschema-go/jsonschema"

	"gaol/internal/strictjson"
)

// Names of the wrappers for values that JSON lacks, with that of [Integers]. The guest's wire.cjs has them, too.
const (
	bytesName = "\x00bytes"
	dateName  = "\x00date"
)

// jsonOptions are the defaults of encoding/json, except for bytes and times.
var jsonOptions = jsonx.JoinOptions(
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
			if isKey(e) {
				return errors.ErrUnsupported // as encoding/json does
			}
			text, err := dateText(t.UTC())
			if err != nil {
				return err
			}
			return writeForm(e, dateName, text)
		}),
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, n json.Number) error {
			if isKey(e) {
				return errors.ErrUnsupported // as encoding/json does
			}
			return e.WriteValue(jsontext.Value(cmp.Or(n, "0")))
		}),
	)),
)

// isKey reports whether the next token is a key of an object, which must be a string.
func isKey(e *jsontext.Encoder) bool {
	kind, n := e.StackIndex(e.StackDepth())
	return kind == '{' && n%2 == 0
}

// dateText returns a time as JavaScript's Date reads it, which wants a sign and six digits for
// years without four digits.
func dateText(t time.Time) (string, error) {
	const most = 271_820 // the last whole year of a Date, before and after the year 0
	year := t.Year()
	switch {
	case year >= 0 && year <= 9999:
		return t.Format("2006-01-02T15:04:05.000Z"), nil
	case year >= -most && year <= most:
		return fmt.Sprintf("%+07d%s", year, t.Format("-01-02T15:04:05.000Z")), nil
	}
	return "", fmt.Errorf("the year %d is outside the range of a Date", year)
}

func writeForm(e *jsontext.Encoder, name, text string) error {
	for _, token := range []jsontext.Token{jsontext.BeginObject, jsontext.String(name), jsontext.String(text), jsontext.EndObject} {
		if err := e.WriteToken(token); err != nil {
			return err
		}
	}
	return nil
}

// Encode returns a value as the guest reads it: JSON in which bytes and times have forms of
// their own, and integers are treated as requested. Errors begin with name.
func Encode(name string, v any, as Integers) (json.RawMessage, error) {
	text, err := jsonx.Marshal(v, jsonOptions)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return as.convert(name, text)
}

// Integers is what becomes of integers that a JavaScript number cannot hold.
type Integers int

const (
	RefuseIntegers Integers = iota // an error names their path
	BigInts                        // BigInts
	AnyIntegers                    // numbers of JSON, for another process that decides
)

// NewIntegers returns BigInts, or RefuseIntegers.
func NewIntegers(bigInts bool) Integers {
	if bigInts {
		return BigInts
	}
	return RefuseIntegers
}

// exactDigits is how many digits an integer can have that a JavaScript number always holds.
const exactDigits = 15

// convert applies i to the integers of a text of JSON.
func (i Integers) convert(name string, text []byte) ([]byte, error) {
	if i == AnyIntegers || !hasLongInteger(text) {
		return text, nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var converted []byte
	copied := 0
	for {
		token, err := d.ReadToken()
		if err == io.EOF {
			return append(converted, text[copied:]...), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if token.Kind() != '0' {
			continue
		}
		digits := token.String()
		switch {
		case isExact(digits):
			continue
		case i == RefuseIntegers:
			return nil, &Error{Code: CodeResult, Message: fmt.Sprintf("%s: a JavaScript number cannot hold the integer %.40s: make it a string, or allow BigInts", strictjson.Join(name, strictjson.Path(d.StackPointer())), digits)}
		}
		end := int(d.InputOffset())
		converted = append(converted, text[copied:end-len(digits)]...)
		converted = append(converted, `{"\u0000bigint":"`+digits+`"}`...)
		copied = end
	}
}

// hasLongInteger reports whether text contains more than exactDigits consecutive digits. Other texts need no
// parsing.
func hasLongInteger(text []byte) bool {
	n := 0
	return bytes.ContainsFunc(text, func(c rune) bool {
		if n++; c < '0' || c > '9' {
			n = 0
		}
		return n > exactDigits
	})
}

// isExact reports whether JavaScript prints a number of JSON as it is, or it is no integer.
func isExact(digits string) bool {
	if len(digits) <= exactDigits || strings.ContainsAny(digits, ".eE") {
		return true
	}
	n, err := strconv.ParseFloat(digits, 64)
	return err == nil && strconv.FormatFloat(n, 'f', -1, 64) == digits
}

// schemas overrides the library's schemas of types that encoding/json decodes from another form.
var schemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[[]byte]():      {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[json.Number](): {Type: "number"},
	reflect.TypeFor[time.Time]():   {Type: "string"},
	reflect.TypeFor[slog.Level]():  {Type: "string"},
}

// addCustom adds types inside t that decode themselves, such as netip.Addr. The library
// would use their fields.
func addCustom(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
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
			addCustom(t.Field(i).Type, known, seen)
		}
	case slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()):
		addCustom(t.Elem(), known, seen)
	}
}

// Parameter decodes one argument of a typed function.
type Parameter[T any] struct {
	Schema  *jsonschema.Schema
	checked *jsonschema.Resolved // nil: decoding is all the check that the type needs
}

// NewParameter returns the parameter of a type. It panics if a schema cannot describe the type.
func NewParameter[T any]() Parameter[T] {
	known := maps.Clone(schemas)
	addCustom(reflect.TypeFor[T](), known, map[reflect.Type]bool{})
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		panic(fmt.Errorf("gaol: function: %w", err))
	}
	p := Parameter[T]{Schema: schema}
	if isScalar(reflect.TypeFor[T]()) {
		return p
	}
	if p.checked, err = schema.Resolve(nil); err != nil {
		panic(fmt.Errorf("gaol: function: %w", err))
	}
	return p
}

// isScalar reports whether encoding/json decodes a type from one kind of JSON value, and
// from null.
func isScalar(t reflect.Type) bool {
	if k := t.Kind(); k != reflect.String && (k < reflect.Bool || k > reflect.Float64) {
		return false
	}
	p := reflect.PointerTo(t)
	return !p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// maxTree bounds the values of an argument: a small text can be a large tree of untyped values.
const maxTree = 1 << 17

// lenient accepts the strings with half of a surrogate pair that guests can send.
var lenient = jsontext.AllowInvalidUTF8(true)

// decoding is as in encoding/json, but fields need their exact names.
var decoding = jsonx.JoinOptions(
	jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false), jsonx.MatchCaseInsensitiveNames(false), lenient,
	jsonx.WithUnmarshalers(jsonx.UnmarshalFromFunc(func(d *jsontext.Decoder, n *json.Number) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported // as a string
		}
		text, err := d.ReadValue()
		*n = json.Number(text)
		return err
	})),
)

// schemaTerms removes Go's terms from the errors of package jsonschema.
var schemaTerms = strings.NewReplacer("validating root: ", "", "<invalid reflect.Value>", "null")

// Decode decodes an argument. It decodes into the type first and validates the schema
// afterwards. Errors are in JSON's terms instead of Go's type names.
func (p Parameter[T]) Decode(text json.RawMessage) (v T, err error) {
	if p.checked == nil {
		if string(text) == "null" {
			return v, fmt.Errorf("want %s, got null", p.Schema.Type)
		}
		return v, strictjson.Decode(text, &v, decoding)
	}
	if err := strictjson.Check(text, maxTree, lenient); err != nil {
		return v, err
	}
	if err := strictjson.Decode(text, &v, decoding); err != nil {
		return v, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return v, err
	}
	if err := p.checked.Validate(tree); err != nil {
		return v, errors.New(schemaTerms.Replace(err.Error()))
	}
	return v, nil
}
