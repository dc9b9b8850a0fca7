package sandboxtools

import (
	"encoding/json"
	"reflect"
	"strings"
)

// members are the members of a JSON object. encoding/json sorts them by name, so the text
// is deterministic.
type members map[string]any

const draft = "https://json-schema.org/draft/2020-12/schema"

// inputSchema returns the JSON Schema of the arguments that decode accepts. decode is
// stricter: it counts bytes instead of characters, and rejects duplicate keys.
func inputSchema(t reflect.Type) json.RawMessage {
	properties, required := members{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	return schemaText(objectSchema(properties, required))
}

func (f *field) schema() members {
	var s members
	switch f.kind {
	case reflect.String:
		s = f.textSchema()
	case reflect.Bool, reflect.Pointer:
		s = members{"type": "boolean", "default": f.fallback == "true"}
	case reflect.Int64:
		s = members{"type": "integer", "minimum": f.minimum, "maximum": f.maximum, "default": mustInteger(f.fallback)}
	case reflect.Slice:
		s = members{"type": "array", "items": f.textSchema(), "maxItems": f.maxItems}
	}
	s["description"] = f.about
	return s
}

func (f *field) textSchema() members {
	if f.enum != nil {
		return members{"type": "string", "enum": f.enum, "default": f.fallback}
	}
	s := members{"type": "string", "maxLength": f.maximum}
	if f.minimum > 0 {
		s["minLength"] = f.minimum
	}
	if f.fallback != "" {
		s["default"] = f.fallback
	}
	if f.pattern != nil { // ECMAScript has no (?s); its [^=] matches newlines
		s["pattern"] = strings.TrimPrefix(f.pattern.String(), "(?s)")
	}
	return s
}

func objectSchema(properties members, required []string) members {
	return members{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// outputSchema returns the JSON Schema of a result.
func outputSchema(t reflect.Type) json.RawMessage { return schemaText(resultSchema(t)) }

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
	return objectSchema(properties, required)
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
	panic("sandboxtools: unsupported type of a result: " + t.String())
}

// schemaText returns the text of a whole schema.
func schemaText(m members) json.RawMessage {
	m["$schema"] = draft
	out, err := json.Marshal(m)
	if err != nil {
		panic(err) // it contains only maps, lists and strings
	}
	return out
}
