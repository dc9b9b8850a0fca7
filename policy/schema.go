package policy

import (
	"bytes"
	"encoding/json"
)

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
		"description":          "What a guest may do. An omitted scope keeps its default.",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		panic(err) // only maps, lists and strings: an error is a bug in this package
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
