package operation

import "github.com/danielgtaylor/huma/v2"

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
