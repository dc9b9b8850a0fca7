package mcpserver

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
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
