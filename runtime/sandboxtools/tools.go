package sandboxtools

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
)

// Tool says what a tool is, in the words of the protocols that offer them to models.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`  // JSON Schema, draft 2020-12
	OutputSchema json.RawMessage `json:"outputSchema"` // likewise
}

// Tools are all there are. The schemas are made from the structs that [Toolbox.Call]
// reads into, and writes.
func Tools() []Tool {
	list := make([]Tool, 0, len(table))
	for _, r := range table {
		tool := r.Tool
		tool.InputSchema, tool.OutputSchema = slices.Clone(tool.InputSchema), slices.Clone(tool.OutputSchema)
		list = append(list, tool)
	}
	return list
}

// row is a tool, and what it does with JSON.
type row struct {
	Tool
	call func(context.Context, *Toolbox, json.RawMessage) (any, error)
}

func tool[A, R any](name, about string, do func(*Toolbox, context.Context, A) (R, error)) row {
	return row{
		Tool{name, about, inputSchema(reflect.TypeFor[A]()), outputSchema(reflect.TypeFor[R]())},
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
	tool("sandbox_init", "Makes a sandbox to run untrusted Node.js programs in, and files to go with them.", (*Toolbox).Init),
	tool("sandbox_destroy", "Ends a sandbox, what runs in it, and its files.", (*Toolbox).Destroy),
	tool("sandbox_command", "Runs a program in a sandbox, without a shell, and returns what it printed and its exit code.", (*Toolbox).Command),
	tool("sandbox_write_file", "Writes a file in a sandbox, over the one that is there.", (*Toolbox).WriteFile),
	tool("sandbox_read_file", "Reads a file of a sandbox.", (*Toolbox).ReadFile),
	tool("sandbox_list_directory", "Lists a folder of a sandbox.", (*Toolbox).ListDirectory),
	tool("sandbox_create_directory", "Makes a folder in a sandbox.", (*Toolbox).CreateDirectory),
	tool("sandbox_delete", "Removes a file, a link or a folder of a sandbox.", (*Toolbox).Delete),
	tool("sandbox_exists", "Tells whether a path of a sandbox leads to something.", (*Toolbox).Exists),
	tool("sandbox_file_info", "Tells what is at a path of a sandbox: type, size, permissions, owner, times.", (*Toolbox).FileInfo),
}

var rows = func() map[string]row {
	m := map[string]row{}
	for _, r := range table {
		m[r.Name] = r
	}
	return m
}()
