package sandboxtools

import (
	"encoding/json"
	"reflect"
	"strings"
)

// members are the members of a JSON object. encoding/json sorts them by name, so the text
// is deterministic.
type members map[string]any

// schemaText returns the JSON Schema of the arguments or the result of a tool. decode is
// stricter: it counts bytes instead of characters, and rejects duplicate keys.
func schemaText(t reflect.Type) json.RawMessage {
	s := objectSchema(t)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out, err := json.Marshal(s)
	if err != nil {
		panic(err) // it contains only maps, lists, strings, and defaults from our own tags
	}
	return out
}

func objectSchema(t reflect.Type) members {
	properties, required := members{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	return members{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func (f *field) schema() members {
	s := members{"type": jsonTypes[f.kind].name, "description": f.about}
	s.set("format", f.format)
	s.set("default", f.fallback)
	text := s // what constraints of texts belong to
	switch {
	case f.kind == reflect.Int64:
		s.set("minimum", f.minimum)
		s.set("maximum", f.maximum)
		return s
	case f.entries != nil:
		s["items"] = objectSchema(f.entries)
		return s
	case f.kind == reflect.Slice:
		text = members{"type": "string"}
		s["items"] = text
		s.set("maxItems", f.maxItems)
	}
	text.set("enum", f.enum)
	text.set("minLength", f.minimum)
	text.set("maxLength", f.maximum)
	if f.pattern != nil { // ECMAScript has no (?s); its [^=] matches newlines
		text["pattern"] = strings.TrimPrefix(f.pattern.String(), "(?s)")
	}
	return s
}

// set sets a member, unless the value is zero.
func (m members) set(name string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		m[name] = value
	}
}
