package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime/sandboxtools"
)

// sandboxTitles are the titles of the tools of package sandboxtools, with their effects.
var sandboxTitles = map[string]struct {
	title    string
	does     effect
	repeated bool
}{
	"sandbox_init":             {"Create a sandbox", adds, false},
	"sandbox_destroy":          {"Destroy a sandbox", changes, false},
	"sandbox_command":          {"Run a program", changes, false},
	"sandbox_write_file":       {"Write a file", changes, true},
	"sandbox_read_file":        {"Read a file", reads, true},
	"sandbox_list_directory":   {"List a folder", reads, true},
	"sandbox_create_directory": {"Create a folder", adds, false},
	"sandbox_delete":           {"Delete a file or folder", changes, false},
	"sandbox_exists":           {"Check whether a path exists", reads, true},
	"sandbox_file_info":        {"Describe a file", reads, true},
}

// addSandboxTools adds the tools of package sandboxtools, with their own names and schemas.
func (e *endpoint) addSandboxTools() {
	toolbox := e.service.NewToolbox(e.tenant)
	for _, t := range sandboxtools.Tools() {
		about := sandboxTitles[t.Name]
		described := describe(t.Name, about.title, t.Description, about.does, about.repeated, t.Name == "sandbox_command")
		described.InputSchema, described.OutputSchema = t.InputSchema, t.OutputSchema
		if t.Name == "sandbox_init" {
			described.Description += isolationAbout(e.service.Settings().IsolationNames())
		}
		e.addTool(described, func(ctx context.Context, c *operation.Call, args json.RawMessage) (result, error) {
			out, err := toolbox.Call(ctx, t.Name, args)
			return toolResult{out}, toolError(ctx, c, err)
		})
	}
}

// toolResult is the result of a tool of package sandboxtools.
type toolResult struct{ json.RawMessage }

// content returns the result. A command has failed if it has not ended normally with the exit code 0.
func (r toolResult) content() ([]mcp.Content, bool) {
	text, more := cut(string(r.RawMessage), maxText)
	content := texts(text)
	if more {
		content = append(content, &mcp.TextContent{Text: "[cut: structuredContent has all of it]"})
	}
	var c sandboxtools.CommandResult
	return content, json.Unmarshal(r.RawMessage, &c) == nil && (c.ExitCode != 0 || c.Cause != "")
}

// toolError returns an error of a tool for the model.
func toolError(ctx context.Context, c *operation.Call, err error) error {
	t, ok := errors.AsType[*sandboxtools.Error](err)
	switch {
	case !ok:
		return explain(ctx, c, err)
	case t.Code == sandboxtools.NotFound && t.Place == "containerId":
		return fmt.Errorf("%w. Create a sandbox with sandbox_init (%s)", err, t.Code)
	}
	return fmt.Errorf("%w (%s)", err, t.Code)
}
