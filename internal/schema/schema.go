package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"gaol/internal/strictjson"
)

func init() { huma.ValidateStrictCasing, huma.DefaultArrayNullable = true, false }

// Set holds the schemas of types that refer to each other. It must be complete before it is used concurrently.
type Set struct{ huma.Registry }

// NewSet returns an empty set.
func NewSet() *Set { return &Set{huma.NewMapRegistry("#/", nameOf)} }

// nameOf names types by package: several packages have types with the same name.
func nameOf(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(strings.TrimPrefix(t.PkgPath()+"."+t.Name(), "."), hint)
}

// Input decodes a struct type.
type Input struct {
	Type   reflect.Type
	Schema *huma.Schema
	set    *Set
}

// Input returns the input of a type. Name is used for types without one. If fields are given, requests may have no
// others.
func (s *Set) Input(t reflect.Type, name string, fields ...string) *Input {
	in := &Input{t, s.Schema(t, false, name), s}
	if len(fields) > 0 {
		some := *in.Schema
		some.Properties = maps.Clone(some.Properties)
		maps.DeleteFunc(some.Properties, func(name string, _ *huma.Schema) bool { return !slices.Contains(fields, name) })
		some.Required = slices.DeleteFunc(slices.Clone(some.Required), func(name string) bool { return !slices.Contains(fields, name) })
		some.PrecomputeMessages()
		in.Schema = &some
	}
	return in
}

// Decode decodes and checks an object in JSON. More has members from elsewhere, such as a query, and found the
// errors of these. The result is a pointer to the struct, the error an [*InvalidError].
func (in *Input) Decode(text []byte, more map[string]any, found ...error) (any, error) {
	var tree any
	if len(text) == 0 {
		tree = map[string]any{}
	} else if err := strictjson.Unmarshal(text, &tree); err != nil {
		return nil, &InvalidError{Syntax: true, Details: []*huma.ErrorDetail{{Message: err.Error()}}}
	}
	object, _ := tree.(map[string]any)
	for name, value := range more {
		if _, twice := object[name]; twice {
			found = append(found, &huma.ErrorDetail{Message: "unexpected property", Location: name})
		}
		if object != nil {
			object[name] = value
		}
	}
	result := huma.ValidateResult{Errors: found}
	huma.Validate(in.set, in.Schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, tree, &result)
	if len(result.Errors) > 0 {
		return nil, &InvalidError{Details: details(result.Errors)}
	}
	v := reflect.New(in.Type).Interface()
	if len(text) > 0 {
		if err := strictjson.Unmarshal(text, v); err != nil { // its UnmarshalJSON checks more than the schema
			return nil, &InvalidError{Details: details([]error{err})}
		}
	}
	if len(more) == 0 {
		return v, nil
	}
	text, err := json.Marshal(more)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return v, err
}

// View returns the schema for clients, see [Set.View].
func (in *Input) View() *huma.Schema { return in.set.inline(in.Schema) }

// View returns the schema of a type for clients. References, null and formats of numbers are omitted: some
// clients cannot translate them for their models.
func (s *Set) View(t reflect.Type) *huma.Schema { return s.inline(s.Schema(t, false, "")) }

// inline returns a copy of a schema of View. Above are the schemas around it: recursion ends with an object of any
// kind.
func (s *Set) inline(schema *huma.Schema, above ...*huma.Schema) *huma.Schema {
	about := schema.Description
	for schema.Ref != "" {
		schema = s.SchemaFromRef(schema.Ref)
	}
	if slices.Contains(above, schema) {
		return &huma.Schema{Type: huma.TypeObject, Description: about}
	}
	above = append(slices.Clone(above), schema)
	c := *schema
	c.Description, c.Nullable = cmp.Or(about, c.Description), false
	if c.Type == huma.TypeInteger || c.Type == huma.TypeNumber {
		c.Format = ""
	}
	if c.Items != nil {
		c.Items = s.inline(c.Items, above...)
	}
	if values, ok := c.AdditionalProperties.(*huma.Schema); ok {
		c.AdditionalProperties = s.inline(values, above...)
	}
	c.Properties = maps.Clone(c.Properties)
	for name, p := range c.Properties {
		c.Properties[name] = s.inline(p, above...)
	}
	return &c
}

// InvalidError lists the invalid parts of an input.
type InvalidError struct {
	Syntax  bool // the input is not JSON, or exceeds the bounds of all requests
	Details []*huma.ErrorDetail
}

// Error returns the first reason.
func (e *InvalidError) Error() string { return e.Details[0].Error() }

const (
	maxDetails    = 20
	maxDetailText = 300 // characters
)

// details describes invalid fields, at most 20, without their values, which can be the whole body.
func details(errs []error) (list []*huma.ErrorDetail) {
	for _, err := range errs[:min(len(errs), maxDetails)] {
		d, ok := err.(huma.ErrorDetailer)
		if !ok {
			d = &huma.ErrorDetail{Message: err.Error()}
		}
		message, place := d.ErrorDetail().Message, d.ErrorDetail().Location
		list = append(list, &huma.ErrorDetail{Message: fmt.Sprintf("%.*s", maxDetailText, message), Location: fmt.Sprintf("%.*s", maxDetailText, place)})
	}
	return list
}
