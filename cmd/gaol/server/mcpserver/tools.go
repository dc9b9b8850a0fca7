package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/sandboxtools"
)

// effect is what a tool does to its sandbox.
type effect int

const (
	reads   effect = iota // it changes nothing
	adds                  // it only adds
	changes               // it may destroy files and processes
)

// describe returns a tool without schemas. Repeated says that calling it twice has the effect of
// calling it once; open, that it may reach hosts outside.
func describe(name, title, description string, does effect, repeated, open bool) *mcp.Tool {
	destroys := does == changes
	return &mcp.Tool{Name: name, Title: title, Description: description, Annotations: &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: does == reads, DestructiveHint: &destroys, IdempotentHint: repeated, OpenWorldHint: &open,
	}}
}

const codeAbout = `Runs JavaScript or TypeScript with Node.js in a sandbox, and returns what it prints and the value of its last expression. Without sandboxId it uses a fresh sandbox. With contextId, variables are kept between calls. A failure of the code is reported with its position.`

const commandAbout = `Runs a command in a sandbox, such as node, npm or a shell line, and returns its output and exit code when it has ended: servers need start_process. Without sandboxId it uses a fresh sandbox.`

const createAbout = `Creates a sandbox whose files are kept between calls, until it is closed, or unused for some time. Permissions say what its code may do, for example which hosts it may reach.`

// addTools adds the tools.
func (e *endpoint) addTools() {
	timeout := atLeastZero("timeoutMs")
	add(e, describe("run_code", "Run code", codeAbout, changes, false, true), e.runCode,
		timeout, longest("code", 4<<20), oneOf("language", "js", "ts"), longest("sandboxId", 64), longest("contextId", 64))
	add(e, describe("run_command", "Run a command", commandAbout, changes, false, true), e.runCommand,
		timeout, shortest("command", 1), longest("command", 128<<10), longest("sandboxId", 64))
	e.addProcessTools()
	e.addCreateSandbox()
	add(e, describe("close_sandbox", "Close a sandbox", "Deletes a sandbox with its files, and ends all that runs in it.", changes, false, false), e.closeSandbox)
	add(e, describe("write_file", "Write a file", "Writes a file in a sandbox. An existing one is replaced.", changes, true, false), e.writeFile,
		shortest("path", 1), longest("path", 4095), oneOf("encoding", "utf8", "base64"))
	add(e, describe("edit_file", "Edit a file", "Replaces a text in a file of a sandbox by another one. The text must occur exactly once, unless replaceAll is set.", changes, false, false), e.editFile,
		shortest("path", 1), longest("path", 4095), shortest("oldText", 1))
	add(e, describe("read_file", "Read a file", "Reads a file in a sandbox: at most some 40,000 characters, from an offset. PNG, JPEG, GIF and WebP files are returned as images.", reads, true, false), e.readFile,
		shortest("path", 1), longest("path", 4095), atLeastZero("offset"))
	add(e, describe("list_files", "List files", "Lists a folder in a sandbox.", reads, true, false), e.listFiles, longest("path", 4095))
}

// bound adds a bound to the schema of an argument.
type bound struct {
	name  string
	apply func(*jsonschema.Schema)
}

func longest(name string, n int) bound {
	return bound{name, func(s *jsonschema.Schema) { s.MaxLength = &n }}
}

func shortest(name string, n int) bound {
	return bound{name, func(s *jsonschema.Schema) { s.MinLength = &n }}
}

func atLeastZero(name string) bound {
	return bound{name, func(s *jsonschema.Schema) { s.Minimum = jsonschema.Ptr(0.0) }}
}

func oneOf(name string, values ...string) bound {
	return bound{name, func(s *jsonschema.Schema) {
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	}}
}

// add adds a tool with the schemas of its types.
func add[In, Out any](e *endpoint, t *mcp.Tool, h mcp.ToolHandlerFor[In, *Out], bounds ...bound) {
	in, out := schemaOf[In](), schemaOf[Out]()
	for _, b := range bounds {
		b.apply(in.Properties[b.name])
	}
	t.InputSchema, t.OutputSchema = in, out
	mcp.AddTool(e.mcp, t, func(ctx context.Context, r *mcp.CallToolRequest, a In) (*mcp.CallToolResult, *Out, error) {
		ctx, end, err := e.service.Begin(ctx)
		if err != nil {
			return nil, nil, err
		}
		defer end()
		ctx, record := audit.Begin(ctx, t.Name)
		res, out, err := h(ctx, r, a)
		record(statusOf(err))
		return res, out, e.explain(err)
	})
}

// schemaOf returns the schema of one of our own types, which all have one.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err)
	}
	refuseNull(s)
	return s
}

// refuseNull gives each value one type. The package allows null for lists and pointers, too, which some
// clients cannot translate for their models.
func refuseNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		refuseNull(p)
	}
	if s.Items != nil {
		refuseNull(s.Items)
	}
}

// statusOf returns the HTTP status that a call would have had, for the audit log.
func statusOf(err error) int {
	failed, ok := errors.AsType[*service.Error](err)
	switch {
	case err == nil:
		return http.StatusOK
	case ok:
		return failed.Status()
	}
	return http.StatusUnprocessableEntity
}

// maxText is how many characters of output a result has. Clients cut, or move to a file, what
// exceeds 25,000 tokens or 50,000 characters.
const maxText = 40_000

// cut returns the first characters of a text, and whether there are more.
func cut(text string, characters int) (string, bool) {
	if len(text) <= characters {
		return text, false
	}
	at := 0
	for range characters {
		if at >= len(text) {
			return text, false
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at], at < len(text)
}

// oneLine returns the last line of a text that is not empty, without control characters, in at most
// 200 characters.
func oneLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, " \r\n\t"), "\n")
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, lines[len(lines)-1])
	line, _ = cut(strings.TrimSpace(line), 200)
	return line
}

// paragraphs joins the texts that are not empty.
func paragraphs(texts ...string) string {
	var list []string
	for _, t := range texts {
		if t = strings.TrimRight(t, "\n"); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n")
}

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
	case t.Code == sandboxtools.NotFound && t.Place == "containerId":
		return fmt.Errorf("%w. Create a sandbox with sandbox_init (%s)", err, t.Code)
	}
	return fmt.Errorf("%w (%s)", err, t.Code)
}
