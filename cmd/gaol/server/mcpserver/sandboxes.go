package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/sandboxtools"
)

const createAbout = `Creates a sandbox whose files are kept between calls, until it is closed, or unused for some time. Permissions restrict its code, for example which hosts it may reach.`

// sandboxTools are the tools that create and close sandboxes.
func sandboxTools() []*tool {
	return []*tool{
		newTool(tool{does: adds, adapt: adaptIsolation}, operation.Operation{
			Name: "create_sandbox", Summary: "Create a sandbox", Doc: createAbout,
			Fields: []string{"image", "files", "env", "permissions", "limits", "idleTimeoutMs", "isolation"},
		}, createSandbox),
		newTool(tool{}, operation.Operation{
			Name: "close_sandbox", Summary: "Close a sandbox", Doc: "Deletes a sandbox with its files, and ends all that runs in it.",
		}, closeSandbox),
	}
}

// InSandbox names a sandbox.
type InSandbox struct {
	SandboxID string `json:"sandboxId" maxLength:"64" doc:"The sandbox."`
}

func (in InSandbox) in() requestjson.InSandbox { return requestjson.InSandbox{Sandbox: in.SandboxID} }

// adaptIsolation lists the isolations that callers may choose, the default one first. There is no argument if they
// cannot choose.
func adaptIsolation(e *endpoint, t *mcp.Tool, in *huma.Schema) {
	names := e.service.Settings().IsolationNames()
	if len(names) == 1 {
		delete(in.Properties, "isolation")
		t.Description += isolationAbout(names)
		return
	}
	for _, name := range names {
		in.Properties["isolation"].Enum = append(in.Properties["isolation"].Enum, name)
	}
}

// isolationAbout names the isolation of the sandboxes of a tool without an argument for it.
func isolationAbout(names []string) string { return " Its isolation is " + names[0] + "." }

// sandboxOut is the result of create_sandbox.
type sandboxOut struct {
	SandboxID string   `json:"sandboxId" text:"[sandboxId %s]" doc:"The id for the other tools."`
	Isolation string   `json:"isolation" text:"[isolation %s]" doc:"What confines the sandbox."`
	Expires   string   `json:"expires" text:"[expires %s]" doc:"When the sandbox is deleted unless it is used before, as RFC 3339."`
	Missing   []string `json:"missing,omitempty" text:"[not enforced: %s]" doc:"Rules that the server's kernel does not enforce."`
}

func createSandbox(ctx context.Context, c *operation.Call, in *requestjson.SandboxRequest) (*sandboxOut, error) {
	files := map[string]string{}
	for name, text := range in.Files {
		f, err := InSandbox{}.file(name)
		if err != nil {
			return nil, err
		}
		files[f.Path] = text
	}
	in.Files = files
	info, err := operation.Perform[*resultjson.SandboxInfo](ctx, c, "createSandbox", in)
	if err != nil {
		return nil, err
	}
	return &sandboxOut{info.ID, info.Isolation, info.Expires.UTC().Format(time.RFC3339), info.Missing}, nil
}

// closeOut is the result of close_sandbox.
type closeOut struct {
	SandboxID string `json:"sandboxId"`
	Closed    bool   `json:"closed" text:"[closed]"`
}

func closeSandbox(ctx context.Context, c *operation.Call, in *InSandbox) (*closeOut, error) {
	if _, err := operation.Perform[any](ctx, c, "deleteSandbox", new(in.in())); err != nil {
		return nil, err
	}
	return &closeOut{in.SandboxID, true}, nil
}

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
