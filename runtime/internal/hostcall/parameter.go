package hostcall

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/google/jsonschema-go/jsonschema"

	"gaol/internal/strictjson"
)

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
