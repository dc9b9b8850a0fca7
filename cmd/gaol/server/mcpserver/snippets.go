package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/internal/schema"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

const (
	directiveAbout = "Execute a Directive snippet and return its observed behavior"

	snippetAbout = `Runs an example in TypeScript or JavaScript: one file, or several that import each other. It returns the lines that the example logs, its state after it has settled (its exports, or the state of its framework), and its errors with their positions. Use it to find out whether an example works.`
)

// maxSource bounds source, in UTF-16 code units, as JavaScript counts.
const maxSource = 8000

// codeRuntimeError is the code of failures of these tools without a code of [snippets.InputError].
const codeRuntimeError = "runtime-error"

// snippetTools are the tools for snippets. The text of a failure begins with its code.
func snippetTools() []*tool {
	return []*tool{
		newTool(tool{does: reads, open: true, explain: withCode, adapt: adaptSnippet}, operation.Operation{
			Name: "run_in_sandbox", Summary: "Run a snippet", Doc: snippetAbout,
		}, runSnippet),
		newTool(tool{does: reads, explain: withCode, adapt: adaptSource}, operation.Operation{
			Name: linkTool, Summary: "Link to the playground", Doc: linkAbout,
		}, linkSnippet),
	}
}

// SnippetFiles is a snippet: exactly one of the fields is present.
type SnippetFiles struct {
	Source *string         `json:"source,omitempty" minLength:"1" doc:"The text of src/main.ts, as the only file."`
	Files  []snippets.File `json:"files,omitempty" minItems:"1" maxItems:"10" doc:"1 to 10 files. One is src/main.ts, which runs; others are imported as ./name.js."`
}

type snippetIn struct {
	SnippetFiles
	TimeoutMs *int64 `json:"timeoutMs,omitempty" doc:"Time limit in milliseconds, from 100 to 10,000; 5,000 by default."`
}

// adaptSource shows the bound of source, which [SnippetFiles.input] enforces, because JSON Schema counts other
// characters.
func adaptSource(_ *endpoint, _ *mcp.Tool, in *huma.Schema) {
	in.Properties["source"].MaxLength = new(maxSource)
}

// adaptSnippet describes the default adapter of the server.
func adaptSnippet(e *endpoint, t *mcp.Tool, in *huma.Schema) {
	adaptSource(e, t, in)
	if e.service.Settings().Snippets.Adapters[0].Name == snippets.Directive.Name {
		t.Description = directiveAbout
	}
}

// withCode begins an error with its code.
func withCode(err error) error {
	code := codeRuntimeError
	failed, ok := errors.AsType[*service.Error](err)
	if bad, isInput := errors.AsType[*snippets.InputError](err); isInput {
		code = bad.Code
	} else if _, invalid := errors.AsType[*schema.InvalidError](err); invalid || ok && failed.Code == service.Invalid {
		code = snippets.InputInvalid
	}
	return fmt.Errorf("%s: %w", code, err)
}

// input checks the snippet.
func (f SnippetFiles) input() (in snippets.Input, err error) {
	switch {
	case (f.Source == nil) == (f.Files == nil):
		return in, service.ErrSnippetSource
	case f.Source == nil:
		in.Files = f.Files
	case characters(*f.Source) > maxSource:
		return in, &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("source has %d characters, the limit is %d", characters(*f.Source), maxSource)}
	default:
		in.Source = *f.Source
	}
	return in, in.Validate()
}

// characters counts UTF-16 code units, as JavaScript does.
func characters(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// snippetOut is the result of run_in_sandbox.
type snippetOut struct {
	Logs          []string        `json:"logs" text:"%s"`
	Errors        []string        `json:"errors" text:"runtime-error: %s"`
	Facts         json.RawMessage `json:"facts" text:"facts: %s"`
	Derived       json.RawMessage `json:"derived" text:"derived: %s"`
	DurationMs    float64         `json:"durationMs"`
	TimedOut      bool            `json:"timedOut"`
	PlaygroundURL string          `json:"playgroundUrl,omitempty" text:"playground: %s" doc:"A link that opens it in the playground, if the server has one and the snippet is short."`
	extra
}

func runSnippet(ctx context.Context, c *operation.Call, in *snippetIn) (*snippetOut, error) {
	checked, err := in.input()
	if err != nil {
		return nil, err
	}
	watched := *c
	watched.To = func(event service.Event) error {
		if l, ok := event.Data.(resultjson.SnippetLog); ok {
			c.OnOutput([]byte(l.Line))
		}
		return nil
	}
	run := &requestjson.SnippetRunIn{Source: in.Source, Files: in.Files, TimeoutMs: in.TimeoutMs}
	res, err := operation.Perform[*resultjson.SnippetResult](ctx, &watched, "runSnippet", run)
	if err != nil {
		return nil, err
	}
	url, _ := link(c.Service.Settings(), checked) // absent without a playground or a public URL, or for a large snippet
	return &snippetOut{
		fitLines(res.Logs), fitLines(res.Errors), fitState(res.Facts), fitState(res.Derived), res.DurationMs, res.TimedOut, url,
		extra{failed: len(res.Errors) > 0 || res.TimedOut},
	}, nil
}

// fitLines returns the first lines of some, and notes the number of the rest. They have a quarter of maxText, as each part of a
// snippet's output.
func fitLines(lines []string) []string {
	text, more := cut(strings.Join(lines, "\n"), maxText/4)
	if !more {
		return append([]string{}, lines...)
	}
	return append(strings.Split(text, "\n"), fmt.Sprintf("[cut: there are %d lines]", len(lines)))
}

// fitState returns an object, or an object with its length instead.
func fitState(text json.RawMessage) json.RawMessage {
	if utf8.RuneCount(text) <= maxText/4 {
		return text
	}
	return fmt.Appendf(nil, `{"[cut]":"the object has %d bytes of JSON"}`, len(text))
}

const (
	linkTool  = "playground_link" // tenants whose first request finds the playground off lack it
	linkAbout = `Returns a link that opens a snippet in the server's playground. The link itself contains the source: nothing is stored, and opening it runs nothing.`

	maxLinked = 8000 // bytes of UTF-8 in a link
)

// linkOut is the result of playground_link.
type linkOut struct {
	PlaygroundURL string `json:"playgroundUrl" text:"%s"`
}

func linkSnippet(_ context.Context, c *operation.Call, in *SnippetFiles) (*linkOut, error) {
	checked, err := in.input()
	if err != nil {
		return nil, err
	}
	url, err := link(c.Service.Settings(), checked)
	return &linkOut{url}, err
}

// link returns a link to a snippet.
func link(set *settings.Settings, in snippets.Input) (string, error) {
	switch {
	case set.Playground.Off:
		return "", errors.New("the server serves no playground")
	case set.PublicURL == "":
		return "", errors.New("the server lacks a public URL: its operator sets one with --public-url")
	}
	size := len(in.Source)
	for _, f := range in.Files {
		size += len(f.Source)
	}
	if size > maxLinked {
		return "", &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("the snippet has %d bytes, the limit for a link is %d", size, maxLinked)}
	}
	fragment, err := snippets.EncodeLink(in)
	return set.PublicURL + "/#" + fragment, err
}
