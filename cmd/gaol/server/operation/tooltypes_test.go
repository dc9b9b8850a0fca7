package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"gaol/runtime/sandboxtools"
)

const definitionsFile = "../../../npm/src/tools/definitions.ts"

// TestToolDefinitions: the npm package defines the tools as package sandboxtools does.
func TestToolDefinitions(t *testing.T) {
	compareGenerated(t, definitionsFile, definitions(t))
}

// definitions returns the tools as TypeScript.
func definitions(t *testing.T) []byte {
	t.Helper()
	var list bytes.Buffer
	e := json.NewEncoder(&list)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(sandboxtools.Tools()); err != nil {
		t.Fatal(err)
	}
	arguments, results := toolTypes(t)
	text := "// Code generated from package sandboxtools by make generate. DO NOT EDIT.\n" +
		"import type { JSONSchema } from \"../schema.js\";\n\n" +
		"/** A tool as the protocols describe it that offer tools to models. */\n" +
		"export interface Definition {\n  name: string;\n  description: string;\n  inputSchema: JSONSchema;\n  outputSchema: JSONSchema;\n}\n\n" +
		"/** The arguments of each tool. */\nexport interface ToolArguments {\n" + arguments + "}\n\n" +
		"/** The result of each tool. */\nexport interface ToolResults {\n" + results + "}\n\n" +
		"/** The name of a tool. */\nexport type ToolName = keyof ToolArguments;\n\n" +
		"export const definitions: readonly Definition[] = "
	return append(append([]byte(text), bytes.TrimSpace(list.Bytes())...), ";\n"...)
}

// toolSchema is the part of a JSON Schema that types need.
type toolSchema struct {
	Type, Description string
	Enum, Required    []string
	Items             *toolSchema
	Properties        map[string]*toolSchema
}

// toolTypes returns the types of the arguments and results of the tools, as fields of interfaces.
func toolTypes(t *testing.T) (arguments, results string) {
	t.Helper()
	for _, tool := range sandboxtools.Tools() {
		var in, out toolSchema
		if err := errors.Join(json.Unmarshal(tool.InputSchema, &in), json.Unmarshal(tool.OutputSchema, &out)); err != nil {
			t.Fatal(err)
		}
		arguments += fmt.Sprintf("  %s: %s;\n", tool.Name, in.typeScript("  "))
		results += fmt.Sprintf("  %s: %s;\n", tool.Name, out.typeScript("  "))
	}
	return arguments, results
}

func (s *toolSchema) typeScript(indent string) string {
	switch {
	case s.Enum != nil:
		return union(s.Enum)
	case s.Type == "integer":
		return "number"
	case s.Type == "array":
		return s.Items.typeScript(indent) + "[]"
	case s.Type != "object":
		return s.Type
	}
	text := "{\n"
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		mark, absent := "", ""
		if !slices.Contains(s.Required, name) {
			mark, absent = "?", " | undefined"
		}
		text += comment(indent+"  ", p.Description) + fmt.Sprintf("%s  %s%s: %s%s;\n", indent, name, mark, p.typeScript(indent+"  "), absent)
	}
	return text + indent + "}"
}
