package operation

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"gaol/internal/lazyregexp"
	"gaol/internal/session"
	"gaol/internal/strictjson"
)

// input is the type of an operation's input.
type input struct {
	kind   reflect.Type
	schema *huma.Schema
	path   []PathField
}

func init() { huma.ValidateStrictCasing, huma.DefaultArrayNullable = true, false }

// PathField is a field of the input that is in the path by HTTP.
type PathField struct{ Name, Field string } // in the path, and in the input

// fieldOf maps names in paths to fields with another name.
var fieldOf = map[string]string{"id": "sandbox"}

var pathName = lazyregexp.New(`\{(\w+)\}`)

func newInput(kind reflect.Type, o *Operation) *input {
	in := &input{kind: kind, schema: registry.Schema(kind, false, o.Name)}
	for _, m := range pathName().FindAllStringSubmatch(o.Path, -1) {
		in.path = append(in.path, PathField{m[1], cmp.Or(fieldOf[m[1]], m[1])})
	}
	return in
}

// DecodeHost decodes the functions of a session's client. It returns an [*InvalidError] for an invalid text.
func DecodeHost(text []byte) (*session.Host, error) {
	o := host()
	in, err := o.Decode(text, nil)
	if err != nil {
		return nil, err
	}
	return in.(*session.Host), nil
}

var host = sync.OnceValue(func() *Operation {
	o := &Operation{Name: "host"}
	o.input = newInput(reflect.TypeFor[session.Host](), o)
	return o
})

// Type is the type of the input, a struct.
func (o *Operation) Type() reflect.Type { return o.input.kind }

// PathFields returns the fields of the input that are in the path by HTTP.
func (o *Operation) PathFields() []PathField { return o.input.path }

// Parameters returns the schemas of the fields of the input.
func (o *Operation) Parameters() map[string]*huma.Schema { return o.input.schema.Properties }

// IsRequired reports whether the input must have a field.
func (o *Operation) IsRequired(field string) bool {
	return slices.Contains(o.input.schema.Required, field)
}

// Location is the part of an HTTP request that carries a field of the input.
type Location string

// The locations.
const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// Locate returns the location of a field of the input.
func (o *Operation) Locate(field string) Location {
	switch {
	case slices.ContainsFunc(o.input.path, func(f PathField) bool { return f.Field == field }):
		return InPath
	case o.Query:
		return InQuery
	}
	return InBody
}

// HasBody reports whether by HTTP the body has fields of the input.
func (o *Operation) HasBody() bool {
	return !o.Query && len(o.input.schema.Properties) > len(o.input.path)
}

// InvalidError lists the invalid parts of an input.
type InvalidError struct {
	Syntax  bool // the input is not JSON, or exceeds the bounds of all requests
	Details []*huma.ErrorDetail
}

// Error returns the first reason.
func (e *InvalidError) Error() string { return e.Details[0].Error() }

// Decode decodes and checks an input: an object in JSON, and strings from a path and a query. It returns an
// [*InvalidError] for an invalid input.
func (o *Operation) Decode(body []byte, params map[string]string) (any, error) {
	var found huma.ValidateResult
	tree, err := o.tree(body, params, &found)
	if err != nil {
		return nil, err
	}
	huma.Validate(registry, o.input.schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, tree, &found)
	if len(found.Errors) > 0 {
		return nil, &InvalidError{Details: details(found.Errors)}
	}
	in := reflect.New(o.input.kind).Interface()
	if len(body) > 0 {
		if err := strictjson.Unmarshal(body, in); err != nil {
			return nil, syntaxError(err)
		}
	}
	object, ok := tree.(map[string]any)
	if !ok || len(params) == 0 {
		return in, nil
	}
	values := map[string]any{}
	for name := range params {
		for _, name := range []string{name, name + bytesSuffix} {
			if v, ok := object[name]; ok {
				values[name] = v
			}
		}
	}
	text, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(text, in)
	}
	return in, err
}

func syntaxError(err error) error {
	return &InvalidError{Syntax: true, Details: []*huma.ErrorDetail{{Message: err.Error()}}}
}

// bytesSuffix ends the name of a field with the bytes of the field before it, for text that is not UTF-8.
const bytesSuffix = "Bytes"

// tree returns the input as a tree of values without its opaque members. It adds the errors of params.
func (o *Operation) tree(body []byte, params map[string]string, found *huma.ValidateResult) (any, error) {
	var tree any = map[string]any{}
	if len(body) > 0 {
		if err := strictjson.Unmarshal(body, &tree); err != nil {
			return nil, syntaxError(err)
		}
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return tree, nil // which is invalid
	}
	for name := range object {
		if o.Locate(name) != InBody && params != nil {
			found.Errors = append(found.Errors, &huma.ErrorDetail{Message: "unexpected property", Location: "body." + name})
		}
	}
	for name, text := range params {
		schema := o.input.schema.Properties[name]
		switch {
		case schema == nil:
			object[name] = text // which is unexpected
		case schema.Type == huma.TypeString && !utf8.ValidString(text) && o.input.schema.Properties[name+bytesSuffix] != nil:
			object[name+bytesSuffix] = base64.StdEncoding.EncodeToString([]byte(text))
		default:
			v, why := parse(schema, text)
			if why != "" {
				found.Errors = append(found.Errors, &huma.ErrorDetail{Message: why, Location: name, Value: text})
				continue
			}
			object[name] = v
		}
	}
	return object, nil
}

// parse parses a parameter of a path or a query, or returns why it is invalid.
func parse(schema *huma.Schema, text string) (v any, why string) {
	switch schema.Type {
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

// At returns the details of invalid fields, with the locations that they have by HTTP.
func (o *Operation) At(list []*huma.ErrorDetail) (located []*huma.ErrorDetail) {
	for _, d := range list {
		copied := *d
		field, _, _ := strings.Cut(d.Location, ".")
		if field, _, _ = strings.Cut(field, "["); field != string(InBody) {
			where := string(o.Locate(field))
			if field == "" && o.HasBody() {
				where = string(InBody)
			}
			copied.Location = strings.TrimSuffix(where+"."+d.Location, ".")
		}
		located = append(located, &copied)
	}
	return located
}

const (
	maxDetails    = 20
	maxDetailText = 300 // bytes
)

// details describes invalid fields, at most 20.
func details(errs []error) (list []*huma.ErrorDetail) {
	for _, err := range errs[:min(len(errs), maxDetails)] {
		if d, ok := err.(huma.ErrorDetailer); ok {
			list = append(list, bounded(d.ErrorDetail()))
		} else if err != nil {
			list = append(list, bounded(&huma.ErrorDetail{Message: err.Error()}))
		}
	}
	return list
}

// bounded returns a detail without the value that was sent, which can be the whole body, unless that
// is short.
func bounded(d *huma.ErrorDetail) *huma.ErrorDetail {
	short := &huma.ErrorDetail{Message: cut(d.Message), Location: cut(d.Location)}
	switch v := d.Value.(type) {
	case string:
		if len(v) <= maxDetailText {
			short.Value = v
		}
	case bool, float64, json.Number:
		short.Value = v
	}
	return short
}

func cut(text string) string {
	if len(text) <= maxDetailText {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetailText], "") + "..."
}

// CompleteSchemas replaces the schemas that package huma cannot derive from their types.
func CompleteSchemas(r huma.Registry) {
	r.Map()["NodeModules"] = nodeModulesSchema()
}

// nodeModulesSchema returns the schema of both forms of a NodeModules.
func nodeModulesSchema() *huma.Schema {
	text := func(doc string, least int) *huma.Schema {
		most := 4095
		return &huma.Schema{Type: huma.TypeString, Description: doc, MinLength: &least, MaxLength: &most}
	}
	object := &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"hostPath"},
		Properties: map[string]*huma.Schema{
			"hostPath":  text("A folder of the server's machine, or snapshot:NAME.", 1),
			"guestPath": text("Where the sandbox shows it, such as /tmp/node_modules. By default node_modules in the working directory.", 1),
		},
	}
	s := &huma.Schema{
		Description: "A folder of packages to show read-only. Programs below its parent find the packages.",
		OneOf:       []*huma.Schema{text("A folder of the server's machine, or snapshot:NAME, to show as node_modules in the working directory.", 0), object},
	}
	s.PrecomputeMessages()
	return s
}
