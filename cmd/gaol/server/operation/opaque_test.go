package operation

import (
	"encoding/json"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"gaol/internal/strictjson"
)

// TestOpaqueMembers: members that are not checked against a schema, because the tree lacks them, have no schema in any
// request.
func TestOpaqueMembers(t *testing.T) {
	All()
	untyped := func(s *huma.Schema) bool { return s != nil && s.Type == "" && s.Ref == "" && len(s.OneOf) == 0 }
	found := 0
	for name, schema := range registry.Map() {
		for member, s := range schema.Properties {
			text, _ := json.Marshal(map[string]any{member: []int{1}})
			var tree any
			if err := strictjson.Unmarshal(text, &tree); err != nil {
				t.Fatal(err)
			}
			if list, _ := tree.(map[string]any)[member].([]any); len(list) == 1 {
				continue
			}
			found++
			values, _ := s.AdditionalProperties.(*huma.Schema)
			if s.Type != huma.TypeString && !untyped(s) && !untyped(values) {
				t.Errorf("%s: %s has the schema %+v", name, member, s)
			}
		}
	}
	if found == 0 {
		t.Error("no request has an opaque member")
	}
}
