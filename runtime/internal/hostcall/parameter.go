package hostcall

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"gaol/internal/lazyregexp"
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

// Decode decodes an argument. It decodes into the type first and validates the schema
// afterwards.
func (p Parameter[T]) Decode(text json.RawMessage) (v T, err error) {
	if p.checked == nil {
		if string(text) == "null" {
			return v, &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[T]()}
		}
		err = json.Unmarshal(text, &v)
		return v, err
	}
	if err := strictjson.Check(text, maxTree, lenient); err != nil {
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

// ArgumentText returns the text of the error for the nth argument, from 1, in JSON's terms
// instead of Go's type names.
func ArgumentText(n int, err error) string {
	path, why := mismatch(err)
	return fmt.Sprintf("argument %d%s: %s", n, path, why)
}

// mismatch returns the place in an argument that does not have the expected type, and why.
func mismatch(err error) (path, why string) {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field != "" {
			path = "." + e.Field
		}
		return path, "want " + wanted(e.Type) + ", got " + e.Value
	}
	if e, ok := errors.AsType[*time.ParseError](err); ok {
		return "", fmt.Sprintf("want a time such as 2006-01-02T15:04:05Z, got %q", e.Value)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return "", "want a string of base64"
	}
	return schemaMismatch(strings.TrimPrefix(err.Error(), "json: "))
}

// jsonNames has JSON's names for the values of a kind; the others are strings.
var jsonNames = map[reflect.Kind]string{
	reflect.Bool: "boolean",
	reflect.Int:  "integer", reflect.Int64: "integer",
	reflect.Uint: "integer, not negative", reflect.Uint64: "integer, not negative",
	reflect.Float32: "number", reflect.Float64: "number",
	reflect.Array: "array", reflect.Slice: "array",
	reflect.Map: "object", reflect.Struct: "object",
}

// wanted returns JSON's name for the values of a type.
func wanted(t reflect.Type) string {
	switch k := t.Kind(); {
	case k >= reflect.Int8 && k <= reflect.Int32:
		return fmt.Sprintf("integer from %d to %d", -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1)
	case k >= reflect.Uint8 && k <= reflect.Uint32:
		return fmt.Sprintf("integer from 0 to %d", uint64(1)<<t.Bits()-1)
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "string of base64"
	}
	return cmp.Or(jsonNames[t.Kind()], "string")
}

// The library's error texts for a value that does not match its schema.
var (
	atSchema   = lazyregexp.New(`^(?:validating root: )?(?:validating (\S+): )*`)
	wrongType  = lazyregexp.New(`(?s)^type: .* has type "(\w+)", want (?:one of )?(.+)$`)
	missing    = lazyregexp.New(`^required: missing properties: `)
	additional = lazyregexp.New(`^unexpected additional properties `)
)

func schemaMismatch(text string) (path, why string) {
	at := atSchema().FindStringSubmatch(text)
	why = text[len(at[0]):]
	if m := wrongType().FindStringSubmatch(why); m != nil {
		why = "want " + strings.ReplaceAll(m[2], `"`, "") + ", got " + m[1]
	}
	why = missing().ReplaceAllString(why, "missing ")
	why = additional().ReplaceAllString(why, "unknown ")
	return schemaPath(at[1]), why
}

// schemaPath turns a JSON pointer into a schema into a path in the value.
func schemaPath(pointer string) string {
	var path strings.Builder
	words := strings.Split(pointer, "/")[1:]
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "properties" && i+1 < len(words):
			i++
			path.WriteString("." + strings.NewReplacer("~1", "/", "~0", "~").Replace(words[i]))
		case words[i] == "items":
			path.WriteString("[]")
		case words[i] == "additionalProperties":
			path.WriteString(".*")
		}
	}
	return path.String()
}
