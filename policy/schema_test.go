package policy

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("permissions.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("permissions.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchema(t *testing.T) {
	schema := compileSchema(t)
	valid := func(text string) bool {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value) == nil
	}
	for _, text := range canonical {
		if !valid(text) {
			t.Errorf("refuses %s", text)
		}
	}
	refused := []string{
		`null`, `[]`, `{"files":"allow"}`, `{"fs":null}`, `{"fs":"ask"}`, `{"fs":{}}`, `{"fs":{"rules":[]}}`,
		`{"fs":{"rules":[{"mode":"deny"}]}}`, `{"fs":{"rules":[{"mode":"deny","paths":[]}]}}`,
		`{"fs":{"rules":[{"mode":"deny","patterns":["/a"]}]}}`, `{"fs":{"rules":[{"mode":"deny","paths":["/a"],"x":1}]}}`,
		`{"fs":{"rules":[{"mode":"deny","paths":["/a"],"operations":["spawn"]}]}}`,
		`{"process":{"rules":[{"mode":"deny","patterns":["1"]}]}}`,
	}
	for _, text := range refused {
		if valid(text) {
			t.Errorf("accepts %s", text)
		}
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("Parse accepts %s", text)
		}
	}
}

func TestSchemaIsAlwaysTheSame(t *testing.T) {
	if first := Schema(); !bytes.Equal(first, Schema()) {
		t.Error("two calls, two texts")
	}
}
