package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/internal/strictjson"
	"gaol/runtime/snippets"
)

const (
	directiveAbout = "Execute a Directive snippet and return its observed behavior"

	snippetAbout = `Runs an example in TypeScript or JavaScript: one file, or several that import each other. It returns the lines that the example logs, its state after it has settled (what it exports, or the state of its framework), and its errors with their positions. Use it to find out whether an example works.`
)

// Limits of these tools.
const (
	maxSource = 8000 // UTF-16 code units of source, as JavaScript counts

	// maxArguments has room for the largest snippet with each byte written as \u0000.
	maxArguments = 6*snippets.MaxBytes + 64<<10
)

// Codes of the failures of these tools, beside those of [snippets.InputError].
const codeRuntimeError = "runtime-error"

// SnippetArgs are the arguments of run_in_sandbox.
type SnippetArgs struct {
	SnippetFiles
	TimeoutMs *int64 `json:"timeoutMs,omitempty" jsonschema:"Time limit in milliseconds, from 100 to 10,000; 5,000 by default."`
}

// SnippetFiles is a snippet: exactly one of the fields is present. They are the arguments of
// playground_link.
type SnippetFiles struct {
	Source *string       `json:"source,omitempty" jsonschema:"The text of src/main.ts, as the only file."`
	Files  []SnippetFile `json:"files,omitempty" jsonschema:"1 to 10 files. One is src/main.ts, which runs; others are imported as ./name.js."`
}

// SnippetFile is a file of a snippet.
type SnippetFile struct {
	Path   string `json:"path" jsonschema:"Such as src/main.ts."`
	Source string `json:"source"`
}

// SnippetResult is the result of run_in_sandbox.
type SnippetResult struct {
	Logs          []string       `json:"logs" jsonschema:"What it logged: lines that begin with [log], [warn] or [error]."`
	Facts         map[string]any `json:"facts" jsonschema:"The state after it has settled."`
	Derived       map[string]any `json:"derived" jsonschema:"What is computed from the state."`
	Errors        []string       `json:"errors" jsonschema:"Empty if it works."`
	DurationMs    float64        `json:"durationMs"`
	TimedOut      bool           `json:"timedOut"`
	PlaygroundURL string         `json:"playgroundUrl,omitempty" jsonschema:"A link that opens it in the playground, if the server has one and the snippet is short."`
}

// addSnippetTools adds the tools for snippets. They check their arguments themselves, so that each
// failure has a code.
func (e *endpoint) addSnippetTools() {
	about := snippetAbout
	if e.server.Snippets.Info().Adapter == snippets.Directive.Name {
		about = directiveAbout
	}
	run := describe("run_in_sandbox", "Run a snippet", about, reads, false, true)
	run.InputSchema, run.OutputSchema = snippetSchema[SnippetArgs](), schemaOf[SnippetResult]()
	e.mcp.AddTool(run, e.snippetTool(e.runSnippet))
	e.addPlaygroundLink()
}

// snippetSchema is the schema of arguments with the limits of snippets.
func snippetSchema[T any]() *jsonschema.Schema {
	s := schemaOf[T]()
	shortest("source", 1).apply(s.Properties["source"])
	longest("source", maxSource).apply(s.Properties["source"])
	files := s.Properties["files"]
	files.MinItems, files.MaxItems = jsonschema.Ptr(1), jsonschema.Ptr(snippets.MaxFiles)
	return s
}

// snippetTool returns the handler of a tool. A failure is a result whose text begins with its code.
func (e *endpoint) snippetTool(do func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, end, err := e.service.Begin(ctx)
		if err != nil {
			return snippetFailure(err), nil
		}
		defer end()
		ctx, record := audit.Begin(ctx, r.Params.Name)
		res, err := do(ctx, r)
		record(statusOf(err))
		if err != nil {
			return snippetFailure(e.explain(err)), nil
		}
		return res, nil
	}
}

func snippetFailure(err error) *mcp.CallToolResult {
	code := codeRuntimeError
	if bad, ok := errors.AsType[*snippets.InputError](err); ok {
		code = bad.Code
	} else if failed, ok := errors.AsType[*service.Error](err); ok && failed.Code == service.Invalid {
		code = snippets.InputInvalid
	}
	res := textResult(code + ": " + err.Error())
	res.IsError = true
	return res
}

func invalidInput(format string, args ...any) error {
	return &snippets.InputError{Code: snippets.InputInvalid, Message: fmt.Sprintf(format, args...)}
}

// decodeSnippet parses arguments into args, and checks the files that are part of them.
func decodeSnippet(r *mcp.CallToolRequest, args any, in *SnippetFiles) error {
	text := r.Params.Arguments
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	if len(text) > maxArguments {
		return &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("the arguments have %d bytes", len(text))}
	}
	if err := strictjson.Decode(text, args); err != nil {
		return invalidInput("the arguments: %v", err)
	}
	switch {
	case (in.Source == nil) == (in.Files == nil):
		return invalidInput("want exactly one of source and files")
	case in.Source != nil && *in.Source == "":
		return invalidInput("source is empty")
	case in.Source != nil && characters(*in.Source) > maxSource:
		return &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("source has %d characters, the limit is %d", characters(*in.Source), maxSource)}
	}
	return nil
}

// characters counts UTF-16 code units, as JavaScript does.
func characters(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

func (f SnippetFiles) list() (list []snippets.File) {
	if f.Files == nil {
		return nil
	}
	list = []snippets.File{}
	for _, one := range f.Files {
		list = append(list, snippets.File(one))
	}
	return list
}

func (e *endpoint) runSnippet(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	p := newProgress(ctx, r)
	defer p.stop()
	var a SnippetArgs
	if err := decodeSnippet(r, &a, &a.SnippetFiles); err != nil {
		return nil, err
	}
	out, err := e.server.Snippets.Run(ctx, e.tenant, snippetservice.Request{Source: a.Source, Files: a.list(), TimeoutMs: a.TimeoutMs}, p.note)
	if err != nil {
		return nil, err
	}
	return e.snippetResult(a.SnippetFiles, out)
}

// snippetResult describes an output.
func (e *endpoint) snippetResult(in SnippetFiles, out *snippets.Output) (*mcp.CallToolResult, error) {
	fitted := fitSnippet(out)
	structured := struct {
		*snippets.Output
		PlaygroundURL string `json:"playgroundUrl,omitempty"`
	}{Output: fitted}
	structured.PlaygroundURL, _ = e.link(in) // absent without a playground or a public URL, or for a large snippet
	text, err := json.Marshal(structured)
	if err != nil {
		return nil, err
	}
	res := textResult(snippetText(fitted, structured.PlaygroundURL))
	res.StructuredContent = json.RawMessage(text)
	res.IsError = len(out.Errors) > 0 || out.TimedOut
	return res, nil
}

// snippetText describes an output to a model.
func snippetText(out *snippets.Output, url string) string {
	parts := append([]string{}, out.Logs...)
	if len(out.Errors) > 0 {
		parts = append(parts, codeRuntimeError+": "+strings.Join(out.Errors, "\n"))
	}
	for _, state := range []struct{ name, text string }{{"facts", string(out.Facts)}, {"derived", string(out.Derived)}} {
		if state.text != "{}" {
			parts = append(parts, state.name+": "+state.text)
		}
	}
	if url != "" {
		parts = append(parts, "playground: "+url)
	}
	if len(parts) == 0 {
		return "It runs without errors, and logs and exports nothing."
	}
	return paragraphs(parts...)
}

// fitSnippet bounds the text of an output: a quarter of maxText for each of its parts.
func fitSnippet(out *snippets.Output) *snippets.Output {
	fitted := *out
	fitted.Logs, fitted.Errors = fitLines(out.Logs), fitLines(out.Errors)
	fitted.Facts, fitted.Derived = fitState(out.Facts), fitState(out.Derived)
	return &fitted
}

// fitLines returns the first lines of some, and says how many are left out.
func fitLines(lines []string) []string {
	fitted := []string{}
	for i, room := 0, maxText/4; i < len(lines); i++ {
		line, more := cut(lines[i], room)
		fitted = append(fitted, line)
		if room -= utf8.RuneCountInString(line); more || room <= 0 && i+1 < len(lines) {
			return append(fitted, fmt.Sprintf("[cut: there are %d lines]", len(lines)))
		}
	}
	return fitted
}

// fitState returns an object, or another one that says how long it is.
func fitState(text json.RawMessage) json.RawMessage {
	if utf8.RuneCount(text) <= maxText/4 {
		return text
	}
	return fmt.Appendf(nil, `{"[cut]":"the object has %d bytes of JSON"}`, len(text))
}
