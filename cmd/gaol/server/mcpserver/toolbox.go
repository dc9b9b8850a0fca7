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
	if e.toolbox, err = sandboxtools.New(e.service.ToolboxOptions(e.tenant)); err != nil {
		return err
	}
	for _, t := range sandboxtools.Tools() {
		about := sandboxTitles[t.Name]
		described := describe(t.Name, about.title, t.Description, about.does, about.repeated, t.Name == "sandbox_command")
		described.InputSchema, described.OutputSchema = t.InputSchema, t.OutputSchema
		e.mcp.AddTool(described, e.callSandboxTool)
	}
	return nil
}

// callSandboxTool calls a tool of package sandboxtools.
func (e *endpoint) callSandboxTool(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, end, err := e.service.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	p := newProgress(ctx, r)
	defer p.stop()
	args := r.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	ctx, record := audit.Begin(ctx, r.Params.Name)
	out, err := e.callToolbox(ctx, r.Params.Name, args)
	record(statusOf(err))
	if err != nil {
		res := &mcp.CallToolResult{}
		res.SetError(e.toolError(err))
		return res, nil
	}
	text, more := cut(string(out), maxText)
	res := textResult(text)
	if more {
		res.Content = append(res.Content, &mcp.TextContent{Text: "[cut: structuredContent has all of it]"})
	}
	res.StructuredContent, res.IsError = out, failed(out)
	return res, nil
}

// callToolbox calls a tool within the quotas and the settings.
func (e *endpoint) callToolbox(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	switch name {
	case "sandbox_init":
		var a struct {
			ImageName string `json:"imageName"`
		}
		if json.Unmarshal(args, &a) == nil { // Call reports invalid arguments
			if err := e.service.CheckImage(a.ImageName); err != nil {
				return nil, err
			}
		}
	case "sandbox_command":
		release, err := e.service.AdmitCommand(ctx, e.tenant)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	return e.toolbox.Call(ctx, name, args)
}

// failed reports whether a result is that of a command that failed.
func failed(result json.RawMessage) bool {
	var r sandboxtools.CommandResult
	return json.Unmarshal(result, &r) == nil && (r.ExitCode != 0 || r.Cause != "")
}

// toolError returns an error of a tool for the model.
func (e *endpoint) toolError(err error) error {
	t, ok := errors.AsType[*sandboxtools.Error](err)
	switch {
	case !ok:
		return e.explain(err)
	case t.Code == sandboxtools.Internal:
		e.server.Log.Error("call a tool", "tool", t.Tool, "tenant", e.tenant.Name, "err", err)
		return fmt.Errorf("gaol: %s: the server failed; its log says why", t.Tool)
	case t.Code == sandboxtools.NotFound && t.Place == "containerId":
		return fmt.Errorf("%w. Create a sandbox with sandbox_init (%s)", err, t.Code)
	}
	return fmt.Errorf("%w (%s)", err, t.Code)
}
