package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

// snippet returns a snippet encoded for requests, a request without input, and a function that releases its
// host functions.
func (c *Client) snippet(method, code string, o runtime.EvaluateOptions) (n requestjson.Snippet, m message, release func(), err error) {
	switch {
	case o.Heap != 0:
		return n, m, nil, unsupported("Heap")
	case o.Module:
		return n, m, nil, unsupported("Module")
	case o.Grace != 0:
		return n, m, nil, unsupported("Grace")
	}
	values, host, release, err := c.bind(o.Globals)
	if err != nil {
		return n, m, nil, err
	}
	host.Calls.Calls = o.MaxCalls
	n = requestjson.Snippet{
		Permissions: permissionsOf(o.Permissions), Env: o.Env, Cwd: o.Cwd,
		Cell: requestjson.Cell{
			Code: code, Globals: values, MaxOutput: o.MaxOutput, MaxLogs: o.MaxLogs, MaxLogLength: o.MaxLogLength, Form: o.Form,
			Timeout: timeout(o.Timeout),
		},
	}
	m.Method, m.Events = method, o.OnLog != nil
	m.Host = encodeHost(host)
	return n, m, release, nil
}

// Evaluate evaluates a snippet, as [runtime.NodeRuntime.Evaluate] does. Heap, Module and Grace
// are not supported. A negative Timeout means the longest that the server allows.
func (sb *Sandbox) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	n, m, release, err := sb.c.snippet("evaluateIn", code, o)
	if err != nil {
		return nil, wrap("evaluate", err)
	}
	defer release()
	m.in = requestjson.SnippetIn{InSandbox: sb.in(), Snippet: n}
	return sb.c.evaluate(ctx, m, o.OnLog)
}

// Evaluate evaluates a snippet in a new sandbox, as [Sandbox.Evaluate] does.
func (c *Client) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	n, m, release, err := c.snippet("evaluate", code, o)
	if err != nil {
		return nil, wrap("evaluate", err)
	}
	defer release()
	m.in = requestjson.EvaluateRequest{Snippet: n}
	return c.evaluate(ctx, m, o.OnLog)
}

// evaluate evaluates a snippet or a cell.
func (c *Client) evaluate(ctx context.Context, m message, onLog func(runtime.Log)) (*runtime.Evaluation, error) {
	return c.followEvaluate(ctx, m, func(f session.Frame) {
		if e, err := decodeEvent(f); err == nil && onLog != nil {
			if l, ok := e.(runtime.LogEvent); ok {
				onLog(l.Log)
			}
		}
	})
}

// followEvaluate evaluates a snippet, and passes its events to handle.
func (c *Client) followEvaluate(ctx context.Context, m message, handle func(session.Frame)) (*runtime.Evaluation, error) {
	var e *runtime.Evaluation
	err := c.exchange(ctx, "evaluate", m, runtime.RunOptions{}, handle, func(text json.RawMessage) error {
		var evaluation *resultjson.Evaluation
		if err := json.Unmarshal(text, &evaluation); err != nil || evaluation == nil {
			return fmt.Errorf("an invalid result of the server: %w", errors.Join(err))
		}
		e = evaluation.Evaluation()
		return nil
	})
	return e, err
}

// decodeEvent returns the event of a frame. It fails if this version does not know the event.
func decodeEvent(f session.Frame) (runtime.Event, error) {
	if f.Kind != session.KindEvent {
		return nil, fmt.Errorf("kind %d is not an event", f.Kind)
	}
	var e session.Event
	if err := json.Unmarshal(f.Body, &e); err != nil {
		return nil, err
	}
	return resultjson.Event(e.Event, e.Data)
}

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

// RunSnippet runs a snippet in a new sandbox. A snippet that fails or breaks a rule of
// [snippets.Input] is an Output with Errors. If ctx ends the run, the error wraps ctx's error, beside the
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
