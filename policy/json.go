package policy

import (
	"cmp"
	"encoding/json"
	"errors"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/strictjson"
)

var errOmitted = errors.New("an omitted scope cannot be encoded as JSON")

// Parse parses permissions from at most 1 MiB of JSON. It is strict: unknown or repeated
// keys, null, empty lists and invalid patterns are a *[FormatError].
func Parse(text []byte) (Permissions, error) {
	type members Permissions // without UnmarshalJSON
	var m members
	if err := decode(text, &m); err != nil {
		return Permissions{}, err
	}
	p := Permissions(m)
	if err := p.Check(); err != nil {
		return Permissions{}, err
	}
	return p, nil
}

// UnmarshalJSON calls [Parse]. By convention, null changes nothing.
func (p *Permissions) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	parsed, err := Parse(text)
	if err == nil {
		*p = parsed
	}
	return err
}

// MarshalJSON writes "allow", "deny" or an object with rules. A zero Scope is an error,
// because its JSON would be null, which [Parse] rejects.
func (s Scope) MarshalJSON() ([]byte, error) {
	switch {
	case s.IsZero():
		return nil, errOmitted
	case s.Rules == nil:
		return json.Marshal(s.Default)
	}
	type members Scope // without MarshalJSON
	return json.Marshal(members(s))
}

// UnmarshalJSON parses one scope. [Permissions.Check] checks its rules, which depend on which scope it is.
func (s *Scope) UnmarshalJSON(text []byte) error {
	*s = Scope{} // decoding would merge
	return decode(text, s)
}

var unmarshalers = jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
	jsonv2.UnmarshalFromFunc(rejectNull), jsonv2.UnmarshalFromFunc(unmarshalScope),
))

// rejectNull rejects null, which json/v2 accepts for any type.
func rejectNull(d *jsontext.Decoder, _ any) error {
	if d.PeekKind() == 'n' {
		return errors.New("null is not allowed")
	}
	return errors.ErrUnsupported // json/v2 continues
}

func unmarshalScope(d *jsontext.Decoder, s *Scope) error {
	switch d.PeekKind() {
	case '"':
		return cmp.Or(jsonv2.UnmarshalDecode(d, &s.Default), s.Default.check())
	case '{':
		type members Scope // without UnmarshalJSON
		err := jsonv2.UnmarshalDecode(d, (*members)(s))
		if err == nil && s.Rules == nil {
			err = errors.New("rules missing")
		}
		return err
	}
	return errors.New("not allow, deny or an object with rules")
}

// decode parses a text of bounded size.
func decode(text []byte, value any) error {
	if len(text) > MaxText {
		return formatError("", "more than %d bytes", MaxText)
	}
	err := cmp.Or(strictjson.Check(text, MaxText), strictjson.Decode(text, value, unmarshalers)) // syntax first
	switch bad, ok := errors.AsType[*strictjson.Error](err); {
	case ok:
		return formatError(bad.Place, "%v", bad.Err)
	case err != nil:
		return formatError("", "%v", err)
	}
	return nil
}

// object is part of a JSON Schema. Its keys are written in sorted order, so that the text
// is deterministic.
type object map[string]any

// Schema returns a JSON Schema, draft 2020-12, of the language that [Parse] reads, for
// editors and for models that write permissions. It is generated from the tables that
// Parse uses. Parse is stricter: it also validates patterns, which a schema cannot
// express.
func Schema() []byte {
	properties := object{}
	for _, info := range scopes {
		properties[info.name] = info.schema()
	}
	root := object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "gaol permissions",
		"description":          "A guest's permissions. An omitted scope keeps its default.",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	text, err := strictjson.Encode(root, "  ")
	if err != nil {
		panic(err) // only maps, lists and strings: an error is a bug in this package
	}
	return text
}

func (s *scopeInfo) schema() object {
	rules := object{
		"description": "The last rule that matches decides.",
		"type":        "array", "minItems": 1, "maxItems": maxRules, "items": s.schemaRule(),
	}
	return object{
		"description": s.about,
		"oneOf": []object{
			modeSchema("The whole scope."),
			{
				"type":                 "object",
				"properties":           object{"default": modeSchema("Where no rule matches; deny if omitted."), "rules": rules},
				"required":             []string{"rules"},
				"additionalProperties": false,
			},
		},
	}
}

func (s *scopeInfo) schemaRule() object {
	var ops []object
	for _, o := range s.ops {
		ops = append(ops, object{"const": o.name, "description": o.about})
	}
	ops = append(ops, object{"const": everyOperation, "description": "all of the scope; the only entry"})
	if s.name == Network {
		ops = append(ops, object{"const": "http", "description": "the same as fetch"})
	}
	required := []string{"mode"}
	properties := object{
		"mode": modeSchema("Allow or deny the operations."),
		"operations": object{
			"description": "All of the scope if omitted.",
			"type":        "array", "minItems": 1, "uniqueItems": true, "items": object{"oneOf": ops},
		},
	}
	if s.key != "" {
		required = append(required, s.key)
		properties[s.key] = object{
			"description": "The resources that the rule decides.",
			"type":        "array", "minItems": 1, "maxItems": maxEntries,
			"items": object{"type": "string", "minLength": 1, "maxLength": maxPattern, "description": s.entries},
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func modeSchema(about string) object {
	return object{"enum": []Mode{Allow, Deny}, "description": about}
}
