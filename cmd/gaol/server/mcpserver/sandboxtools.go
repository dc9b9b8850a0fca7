package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
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
func (e *endpoint) addSandboxTools() (err error) {
	if e.toolbox, err = e.service.NewToolbox(e.tenant); err != nil {
		return err
	}
	for _, t := range sandboxtools.Tools() {
		about := sandboxTitles[t.Name]
		described := describe(t.Name, about.title, t.Description, about.does, about.repeated, t.Name == "sandbox_command")
		described.InputSchema, described.OutputSchema = t.InputSchema, t.OutputSchema
		if t.Name == "sandbox_init" {
			described.Description += isolationAbout(e.service.Settings().IsolationNames())
		}
		e.mcp.AddTool(described, e.callSandboxTool)
	}
	return nil
}

// callSandboxTool calls a tool of package sandboxtools.
func (e *endpoint) callSandboxTool(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	p := newProgress(ctx, r)
	defer p.stop()
	ctx, record := audit.Begin(ctx, r.Params.Name)
	out, err := e.toolbox.Call(ctx, r.Params.Name, r.Params.Arguments)
	record(statusOf(err))
	res := &mcp.CallToolResult{}
	if err != nil {
		res.SetError(e.toolError(ctx, err))
		return res, nil
	}
	text, more := cut(string(out), maxText)
	if res.Content = texts(text); more {
		res.Content = append(res.Content, &mcp.TextContent{Text: "[cut: structuredContent has all of it]"})
	}
	res.StructuredContent, res.IsError = out, failed(out)
	return res, nil
}

// failed reports whether a result is that of a command that failed.
func failed(result json.RawMessage) bool {
	var r sandboxtools.CommandResult
	return json.Unmarshal(result, &r) == nil && (r.ExitCode != 0 || r.Cause != "")
}

// toolError returns an error of a tool for the model.
func (e *endpoint) toolError(ctx context.Context, err error) error {
	t, ok := errors.AsType[*sandboxtools.Error](err)
	switch {
	case !ok:
		return explain(ctx, e.call(), err)
	case t.Code == sandboxtools.NotFound && t.Place == "containerId":
		return fmt.Errorf("%w. Create a sandbox with sandbox_init (%s)", err, t.Code)
	}
	return fmt.Errorf("%w (%s)", err, t.Code)
}
