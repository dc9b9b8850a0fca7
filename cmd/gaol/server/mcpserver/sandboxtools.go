package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime/sandboxtools"
)

// sandboxEffects are the effects of the tools of package sandboxtools, unless they may destroy something.
var sandboxEffects = map[string]effect{
	"sandbox_init": adds, "sandbox_create_directory": adds,
	"sandbox_read_file": reads, "sandbox_list_directory": reads, "sandbox_exists": reads, "sandbox_file_info": reads,
}

// addSandboxTools adds the tools of package sandboxtools, with their own names and schemas.
func (e *endpoint) addSandboxTools() {
	toolbox := e.service.NewToolbox(e.tenant)
	for _, t := range sandboxtools.Tools() {
		title := "Sandbox" + strings.ReplaceAll(strings.TrimPrefix(t.Name, "sandbox"), "_", " ")
		described := describe(t.Name, title, t.Description, sandboxEffects[t.Name], t.Name == "sandbox_write_file", t.Name == "sandbox_command")
		described.InputSchema, described.OutputSchema = t.InputSchema, t.OutputSchema
		if t.Name == "sandbox_init" {
			described.Description += isolationAbout(e.service.Settings().IsolationNames())
		}
		e.addTool(described, func(ctx context.Context, c *operation.Call, args json.RawMessage) (any, error) {
			out, err := toolbox.Call(ctx, t.Name, args)
			return newToolResult(out), toolError(ctx, c, err)
		})
	}
}

// toolResult is the result of a tool of package sandboxtools.
type toolResult struct {
	json.RawMessage
	Text string `text:"%s"`
	extra
}

// newToolResult returns a result. A command has failed if it has not ended normally with the exit code 0.
func newToolResult(out json.RawMessage) *toolResult {
	var c sandboxtools.CommandResult
	r := &toolResult{RawMessage: out}
	r.failed = json.Unmarshal(out, &c) == nil && (c.ExitCode != 0 || c.Cause != "")
	text, more := cut(string(out), maxText)
	if r.Text = text; more {
		r.note("[cut: structuredContent has all of it]")
	}
	return r
}

// toolError returns an error of a tool for the model.
func toolError(ctx context.Context, c *operation.Call, err error) error {
	t, ok := errors.AsType[*sandboxtools.Error](err)
	switch {
	case !ok:
		return explain(ctx, c, nil, err)
	case t.Code == sandboxtools.NotFound && t.Place == "containerId":
		return fmt.Errorf("%w. Create a sandbox with sandbox_init (%s)", err, t.Code)
	}
	return fmt.Errorf("%w (%s)", err, t.Code)
}
