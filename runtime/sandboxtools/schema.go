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
	s := typeSchema(f.kind)
	switch f.kind {
	case reflect.String:
		f.describeText(s)
	case reflect.Bool, reflect.Pointer:
		s["default"] = f.fallback == "true"
	case reflect.Int64:
		s["minimum"], s["maximum"], s["default"] = f.minimum, f.maximum, mustInteger(f.fallback)
	case reflect.Slice:
		item := typeSchema(reflect.String)
		f.describeText(item)
		s["items"], s["maxItems"] = item, f.maxItems
	}
	s["description"] = f.about
	return s
}

// describeText adds the constraints of a text to its schema.
func (f *field) describeText(s members) {
	if f.fallback != "" {
		s["default"] = f.fallback
	}
	if f.enum != nil {
		s["enum"] = f.enum
		return
	}
	s["maxLength"] = f.maximum
	if f.minimum > 0 {
		s["minLength"] = f.minimum
	}
	if f.pattern != nil { // ECMAScript has no (?s); its [^=] matches newlines
		s["pattern"] = strings.TrimPrefix(f.pattern.String(), "(?s)")
	}
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
		m := typeSchema(s.Type.Kind())
		if s.Type.Kind() == reflect.Slice {
			m["items"] = resultSchema(s.Type.Elem())
		}
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

// jsonTypes are the JSON types of arguments and results. A *bool is a bool whose default is
// nil.
var jsonTypes = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "boolean", reflect.Pointer: "boolean", reflect.Int64: "integer", reflect.Slice: "array",
}

func typeSchema(k reflect.Kind) members {
	name := jsonTypes[k]
	if name == "" {
		panic("sandboxtools: unsupported type " + k.String())
	}
	return members{"type": name}
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
