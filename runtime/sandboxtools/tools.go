package sandboxtools

import (
	"context"
	"encoding/json"
	"reflect"
)

// Tool describes a tool, in the terms of the protocols that offer tools to models.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`  // JSON Schema, draft 2020-12
	OutputSchema json.RawMessage `json:"outputSchema"` // likewise
}

// Tools returns all tools. Their schemas are derived from the structs that [Toolbox.Call]
// decodes and encodes.
func Tools() []Tool {
	list := make([]Tool, 0, len(table))
	for _, r := range table {
		list = append(list, Tool{r.name, r.about, schemaText(r.args), schemaText(r.result)})
	}
	return list
}

// row is a tool with its implementation in JSON.
type row struct {
	name, about  string
	args, result reflect.Type
	call         func(context.Context, *Toolbox, json.RawMessage) (any, error)
}

func tool[A, R any](name, about string, do func(*Toolbox, context.Context, A) (R, error)) row {
	return row{
		name, about, reflect.TypeFor[A](), reflect.TypeFor[R](),
		func(ctx context.Context, t *Toolbox, text json.RawMessage) (any, error) {
			var a A
			if err := decode(text, &a); err != nil {
				return nil, err
			}
			return do(t, ctx, a)
		},
	}
}

var table = []row{
	tool("sandbox_init", "Creates a sandbox for untrusted Node.js programs and their files.", (*Toolbox).Init),
	tool("sandbox_destroy", "Destroys a sandbox: kills its commands and deletes its files.", (*Toolbox).Destroy),
	tool("sandbox_command", "Runs a program in a sandbox, without a shell, and returns its output and exit code.", (*Toolbox).Command),
	tool("sandbox_write_file", "Writes a file in a sandbox. An existing file is replaced.", (*Toolbox).WriteFile),
	tool("sandbox_read_file", "Reads a file in a sandbox.", (*Toolbox).ReadFile),
	tool("sandbox_list_directory", "Lists a folder in a sandbox.", (*Toolbox).ListDirectory),
	tool("sandbox_create_directory", "Creates a folder in a sandbox.", (*Toolbox).CreateDirectory),
	tool("sandbox_delete", "Deletes a file, a link or a folder in a sandbox.", (*Toolbox).Delete),
	tool("sandbox_exists", "Reports whether a path exists in a sandbox.", (*Toolbox).Exists),
	tool("sandbox_file_info", "Reports the type, size, permissions, owner and times of a path in a sandbox.", (*Toolbox).FileInfo),
}
