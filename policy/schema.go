package policy

import (
	"bytes"
	"encoding/json"
)

// object is a piece of JSON Schema: its keys are written in order of their names,
// so the text is always the same.
type object map[string]any

// Schema returns a JSON Schema, draft 2020-12, of what [Parse] reads, for editors
// and for models that write permissions. It is made from the tables that Parse
// itself reads. Parse is stricter: it knows patterns that no schema can tell.
func Schema() []byte {
	properties := object{}
	for _, info := range scopes {
		properties[info.name] = info.schema()
	}
	root := object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "gaol permissions",
		"description":          "What a guest may do. A scope that is left out keeps its default.",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		panic(err) // maps, lists and strings: only our own bug gets here
	}
	return out.Bytes()
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
				"properties":           object{"default": modeSchema("Where no rule matches; deny if left out."), "rules": rules},
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
	required := []string{"mode"}
	properties := object{
		"mode": modeSchema("What becomes of the operations."),
		"operations": object{
			"description": "All of the scope if left out.",
			"type":        "array", "minItems": 1, "uniqueItems": true, "items": object{"oneOf": ops},
		},
	}
	if s.key != "" {
		required = append(required, s.key)
		properties[s.key] = object{
			"description": "What the rule is about.",
			"type":        "array", "minItems": 1, "maxItems": maxEntries,
			"items": object{"type": "string", "minLength": 1, "maxLength": maxPattern, "description": s.entries},
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func modeSchema(about string) object {
	return object{"enum": []Mode{Allow, Deny}, "description": about}
}
