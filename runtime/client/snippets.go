package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

// SnippetOptions are the options of [Client.RunSnippet]. The zero value uses the adapter and the packages of
// the server.
type SnippetOptions struct {
	// Adapter reads the state of a framework. Without Code, it is the server's with that name.
	Adapter snippets.Adapter

	// Permissions is a preset that the server offers, such as "strict" or "public". Empty:
	// "default".
	Permissions string

	// NodeModules is the folder with the packages that the snippet may import. Like the code of
	// an adapter and NoLint, only a server of one program allows it.
	NodeModules string

	// NoLint turns off the adapter's lint rules.
	NoLint bool
}

// snippetRequest are the parameters of runSnippet.
type snippetRequest struct {
	Source      *string         `json:"source,omitempty"`
	Files       []snippets.File `json:"files,omitempty"`
	TimeoutMs   int64           `json:"timeoutMs,omitempty"`
	Adapter     string          `json:"adapter,omitempty"`
	AdapterCode string          `json:"adapterCode,omitempty"`
	Permissions string          `json:"permissions,omitempty"`
	NodeModules string          `json:"nodeModules,omitempty"`
	NoLint      bool            `json:"noLint,omitempty"`
}

func newSnippetRequest(in snippets.Input, o SnippetOptions) snippetRequest {
	p := snippetRequest{
		Files: in.Files, TimeoutMs: milliseconds(in.Timeout), Adapter: o.Adapter.Name, AdapterCode: o.Adapter.Code,
		Permissions: o.Permissions, NodeModules: o.NodeModules, NoLint: o.NoLint,
	}
	if in.Source != "" {
		p.Source = &in.Source
	}
	return p
}

// snippetResult is the result of runSnippet.
type snippetResult struct {
	*snippets.Output
	Problems []snippets.Problem `json:"problems"`
	Denials  []runtime.Denial   `json:"denials"`
	Usage    resultjson.Usage   `json:"usage"`
}

// RunSnippet runs a snippet in a sandbox of its own. A failing snippet, and one that breaks a rule of
// [snippets.Input], is an Output with Errors. If ctx ends the run, the error wraps ctx's error, beside the
// Output so far, which is nil if the snippet had not begun.
func (c *Client) RunSnippet(ctx context.Context, in snippets.Input, o SnippetOptions) (*snippets.Output, error) {
	var out *snippets.Output
	handle := func(f session.Frame) {
		if line, ok := snippetLine(f); ok && in.OnLog != nil {
			in.OnLog(line)
		}
	}
	err := c.exchange(ctx, "run snippet", message{session.Request{Method: "runSnippet", Events: in.OnLog != nil}, newSnippetRequest(in, o)}, runtime.RunOptions{}, handle, func(text json.RawMessage) error {
		var r snippetResult
		if err := json.Unmarshal(text, &r); err != nil || r.Output == nil {
			return fmt.Errorf("an invalid result of the server: %w", errors.Join(err))
		}
		out = r.Output
		out.Problems, out.Denials, out.Usage = r.Problems, r.Denials, r.Usage.Usage()
		return nil
	})
	return out, err
}

// snippetLine returns the line of an event.
func snippetLine(f session.Frame) (line string, ok bool) {
	var e struct {
		Event string
		Data  struct{ Line string }
	}
	if f.Kind != session.KindEvent || json.Unmarshal(f.Body, &e) != nil {
		return "", false
	}
	return e.Data.Line, e.Event == "log"
}
