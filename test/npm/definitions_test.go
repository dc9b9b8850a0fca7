package npm

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"gaol/runtime/sandboxtools"
)

var update = flag.Bool("update", false, "write the definitions instead of comparing them")

const definitionsFile = "../../cmd/npm/src/tools/definitions.ts"

// TestToolDefinitions: the npm package defines the tools as package sandboxtools does.
func TestToolDefinitions(t *testing.T) {
	want := definitions(t)
	if *update {
		if err := os.WriteFile(definitionsFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(definitionsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from package sandboxtools: go test -run TestToolDefinitions ./test/npm -update", definitionsFile)
	}
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
	text := "// Code generated from package sandboxtools by go test ./test/npm -update. DO NOT EDIT.\n" +
		"import type { JSONSchema } from \"../schema.js\";\n\n" +
		"/** A tool as the protocols describe it that offer tools to models. */\n" +
		"export interface Definition {\n  name: string;\n  description: string;\n  inputSchema: JSONSchema;\n  outputSchema: JSONSchema;\n}\n\n" +
		"export const definitions: readonly Definition[] = "
	return append(append([]byte(text), bytes.TrimSpace(list.Bytes())...), ";\n"...)
}
