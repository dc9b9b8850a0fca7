package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/lazyregexp"
)

// errorOf returns a decoder's error without its package's name.
func errorOf(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && e.Err != nil {
		return fmt.Errorf("at byte %d: %w", e.ByteOffset, e.Err)
	}
	return err
}

// at returns an error with the path of a value, unless it has that already.
func at(path string, err error) error {
	if path == "" || strings.HasPrefix(err.Error(), path+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// pathAt returns the path of the first value that ends or begins at an offset or later, as in tenants["uid:1"].runs.
func pathAt(text []byte, offset int64) string {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for d.InputOffset() < offset {
		if _, err := d.ReadToken(); err != nil {
			return ""
		}
	}
	return Path(d)
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

// Path returns the path of the value that a decoder has read, or whose beginning.
func Path(d *jsontext.Decoder) string {
	var path strings.Builder
	depth := 0
	for member := range d.StackPointer().Tokens() {
		depth++
		switch kind, _ := d.StackIndex(depth); {
		case kind == '[':
			fmt.Fprintf(&path, "[%s]", member)
		case !name().MatchString(member) || len(member) > maxName:
			fmt.Fprintf(&path, "[%.*q]", maxName, member)
		case depth > 1:
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

// values are the words of [json.UnmarshalTypeError] for kinds of values.
var values = map[jsontext.Kind]string{'f': "bool", 't': "bool", '"': "string", '0': "number", '{': "object", '[': "array"}

func mismatch(want reflect.Type, value string) error {
	return fmt.Errorf("want %s, got %s", wanted(want), got(value))
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

// got names a value as [json.UnmarshalTypeError] describes it, such as "number 1.5".
func got(value string) string {
	kind, rest, _ := strings.Cut(value, " ")
	article := "a "
	if kind == "array" || kind == "object" {
		article = "an "
	}
	if kind == "bool" {
		kind = "boolean"
	}
	if len(rest) > 40 {
		rest = rest[:40] + "..."
	}
	return strings.TrimSpace(article + kind + " " + rest)
}
