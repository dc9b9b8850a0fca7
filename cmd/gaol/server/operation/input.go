package operation

import (
	"cmp"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"gaol/internal/lazyregexp"
	"gaol/internal/schema"
	"gaol/internal/session"
)

// PathField is a field of the input that is in the path by HTTP.
type PathField struct{ Name, Field string } // in the path, and in the input

// fieldOf maps names in paths to fields with another name.
var fieldOf = map[string]string{"id": "sandbox"}

var pathName = lazyregexp.New(`\{(\w+)\}`)

// setInput derives the input of the operation from its type.
func (o *Operation) setInput(set *schema.Set, kind reflect.Type) {
	o.Input = set.Input(kind, o.Name, o.Fields...)
	for _, m := range pathName().FindAllStringSubmatch(o.Path, -1) {
		o.PathFields = append(o.PathFields, PathField{m[1], cmp.Or(fieldOf[m[1]], m[1])})
	}
}

// DecodeHost decodes the functions of a session's client. It returns an [*schema.InvalidError] for an invalid text.
func DecodeHost(text []byte) (*session.Host, error) {
	in, err := host().Decode(text, nil)
	if err != nil {
		return nil, err
	}
	return in.(*session.Host), nil
}

var host = sync.OnceValue(func() *schema.Input {
	return schema.NewSet().Input(reflect.TypeFor[session.Host](), "")
})

// InPath reports whether by HTTP the path has a field of the input. The other fields are in the query if o.Query is
// set, or in the body.
func (o *Operation) InPath(field string) bool {
	return slices.ContainsFunc(o.PathFields, func(f PathField) bool { return f.Field == field })
}

// HasBody reports whether by HTTP the body has fields of the input.
func (o *Operation) HasBody() bool {
	return !o.Query && len(o.Input.Schema.Properties) > len(o.PathFields)
}

// Decode decodes and checks an input: an object in JSON, and strings from a path and a query. It returns an
// [*schema.InvalidError] for an invalid input.
func (o *Operation) Decode(body []byte, params map[string]string) (any, error) {
	more := map[string]any{}
	var found []error
	for name, text := range params {
		of := o.Input.Schema.Properties[name]
		switch {
		case of == nil:
			more[name] = text // which is unexpected
		case of.Type == huma.TypeString && !utf8.ValidString(text) && o.Input.Schema.Properties[name+bytesSuffix] != nil:
			more[name+bytesSuffix] = base64.StdEncoding.EncodeToString([]byte(text))
		default:
			v, why := parse(of, text)
			if why != "" {
				found = append(found, &huma.ErrorDetail{Message: why, Location: name, Value: text})
				continue
			}
			more[name] = v
		}
	}
	return o.Input.Decode(body, more, found...)
}

// bytesSuffix ends the name of a field with the bytes of the field before it, for text that is not UTF-8.
const bytesSuffix = "Bytes"

// parse parses a parameter of a path or a query, or returns why it is invalid.
func parse(of *huma.Schema, text string) (v any, why string) {
	switch of.Type {
	case huma.TypeInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, "invalid integer"
		}
		return float64(n), ""
	case huma.TypeBoolean:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, "invalid boolean"
		}
		return b, ""
	}
	return text, ""
}

// CompleteSchemas replaces the schemas that package huma cannot derive from their types: a NodeModules has two forms.
func CompleteSchemas(r huma.Registry) {
	for name, object := range r.Map() {
		if strings.HasSuffix(name, "NodeModules") {
			text := &huma.Schema{
				Type: huma.TypeString, MaxLength: object.Properties["hostPath"].MaxLength,
				Description: "A folder of the server's machine, or snapshot:NAME, to show as node_modules in the working directory.",
			}
			s := &huma.Schema{
				Description: "A folder of packages to show read-only. Programs below its parent find the packages.",
				OneOf:       []*huma.Schema{text, object},
			}
			s.PrecomputeMessages()
			r.Map()[name] = s
		}
	}
}
