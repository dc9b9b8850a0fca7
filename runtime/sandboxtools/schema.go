package sandboxtools

import (
	"encoding/json"
	"reflect"
	"strings"
)

// members are those of a JSON object: they are written in the order of their names, so
// the text is always the same.
type members map[string]any

const draft = "https://json-schema.org/draft/2020-12/schema"

// inputSchema is what decode reads, in JSON Schema. decode is stricter: it counts bytes
// where a schema counts characters, and refuses keys twice.
func inputSchema(t reflect.Type) json.RawMessage {
	properties, required := members{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	return schemaText(members{"$schema": draft, "type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

func (f *field) schema() members {
	var s members
	switch f.kind {
	case text:
		s = f.textSchema()
	case flag, choice:
		s = members{"type": "boolean", "default": f.fallback == "true"}
	case number:
		s = members{"type": "integer", "minimum": f.least, "maximum": f.most, "default": mustNumber(f.fallback)}
	case list:
		s = members{"type": "array", "items": f.textSchema(), "maxItems": f.items}
	}
	s["description"] = f.about
	return s
}

func (f *field) textSchema() members {
	if f.enum != nil {
		return members{"type": "string", "enum": f.enum, "default": f.fallback}
	}
	s := members{"type": "string", "maxLength": f.most}
	if f.least > 0 {
		s["minLength"] = f.least
	}
	if f.fallback != "" {
		s["default"] = f.fallback
	}
	if f.pattern != nil { // those of ECMA have no (?s), and their [^=] has newlines
		s["pattern"] = strings.TrimPrefix(f.pattern.String(), "(?s)")
	}
	return s
}

// outputSchema is of a result.
func outputSchema(t reflect.Type) json.RawMessage {
	s := resultSchema(t)
	s["$schema"] = draft
	return schemaText(s)
}

func resultSchema(t reflect.Type) members {
	properties, required := members{}, []string{}
	for i := range t.NumField() {
		s := t.Field(i)
		name, rest, _ := strings.Cut(s.Tag.Get("json"), ",")
		m := valueSchema(s.Type)
		m["description"] = s.Tag.Get("about")
		if format := s.Tag.Get("format"); format != "" {
			m["format"] = format
		}
		properties[name] = m
		if rest != "omitempty" {
			required = append(required, name)
		}
	}
	return members{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func valueSchema(t reflect.Type) members {
	switch t.Kind() {
	case reflect.String:
		return members{"type": "string"}
	case reflect.Bool:
		return members{"type": "boolean"}
	case reflect.Int64:
		return members{"type": "integer"}
	case reflect.Slice:
		return members{"type": "array", "items": resultSchema(t.Elem())}
	}
	panic("sandboxtools: no result has a " + t.String())
}

func schemaText(m members) json.RawMessage {
	out, err := json.Marshal(m)
	if err != nil {
		panic(err) // maps, lists and strings of ours
	}
	return out
}
