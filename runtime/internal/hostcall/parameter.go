package hostcall

import (
	"bytes"
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

// schemas has the schemas of types for which the library assumes another form than
// encoding/json reads.
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

// NewParameter returns the parameter of a type. It panics if the type has no schema.
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
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p := reflect.PointerTo(t)
		return !p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	return false
}

// Decode decodes an argument. It decodes into the type first and validates the schema
// afterwards, because a small text can be a large tree of untyped values.
func (p Parameter[T]) Decode(text json.RawMessage) (v T, err error) {
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
