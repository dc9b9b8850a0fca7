package client

import (
	"context"
	"encoding/json"
	"errors"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

// snippet encodes a snippet and its host functions for requests. The caller releases them.
func (c *Client) snippet(code string, o runtime.EvaluateOptions) (n requestjson.Snippet, host session.Host, b *bound, err error) {
	switch {
	case o.Heap != 0:
		return n, host, nil, unsupported("Heap")
	case o.Module:
		return n, host, nil, unsupported("Module")
	case o.Grace != 0:
		return n, host, nil, unsupported("Grace")
	}
	values, host, b, err := c.bind(o.Globals)
	if err != nil {
		return n, host, nil, err
	}
	host.Calls.Calls = o.MaxCalls
	n = requestjson.Snippet{
		Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd,
		Cell: requestjson.Cell{
			Code: code, Globals: values, MaxOutput: o.MaxOutput, MaxLogs: o.MaxLogs, MaxLogLength: o.MaxLogLength, Form: o.Form,
			Timeout: timeout(o.Timeout),
		},
	}
	return n, host, b, nil
}

// Evaluate evaluates a snippet, as [runtime.NodeRuntime.Evaluate] does. Heap, Module and Grace
// are not supported. A negative Timeout means the longest that the server allows.
func (sb *Sandbox) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	return sb.c.evaluate(ctx, code, o, func(n requestjson.Snippet) (method string, in any) {
		return "evaluateIn", requestjson.SnippetIn{InSandbox: sb.in(), Snippet: n}
	})
}

// Evaluate evaluates a snippet in a new sandbox, as [Sandbox.Evaluate] does.
func (c *Client) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	return c.evaluate(ctx, code, o, func(n requestjson.Snippet) (string, any) {
		return "evaluate", requestjson.EvaluateRequest{Snippet: n}
	})
}

// evaluate performs the operation of by, which evaluates a snippet.
func (c *Client) evaluate(ctx context.Context, code string, o runtime.EvaluateOptions, by func(requestjson.Snippet) (method string, in any)) (*runtime.Evaluation, error) {
	m := message{doing: "evaluate"}
	n, host, b, err := c.snippet(code, o)
	if err != nil {
		return nil, wrap(m.doing, err)
	}
	defer b.release()
	m.Method, m.in = by(n)
	m.Host = encodeHost(host)
	if o.OnLog != nil || o.OnEvent != nil {
		m.follow(func(e runtime.Event) {
			if l, ok := e.(runtime.LogEvent); ok && o.OnLog != nil {
				o.OnLog(l.Log)
			}
			if o.OnEvent != nil {
				o.OnEvent(e)
			}
		})
	}
	return call[*runtime.Evaluation](ctx, c, m)
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

func newSnippetRequest(in snippets.Input, o SnippetOptions) (r requestjson.SnippetRunIn) {
	r.Files, r.Adapter, r.AdapterCode, r.Permissions = in.Files, o.Adapter.Name, o.Adapter.Code, o.Permissions
	r.NodeModules, r.NoLint = o.NodeModules, o.NoLint
	if in.Source != "" {
		r.Source = &in.Source
	}
	if ms := milliseconds(in.Timeout); ms != 0 {
		r.TimeoutMs = &ms
	}
	return r
}

// RunSnippet runs a snippet in a new sandbox. A snippet that fails or breaks a rule of
// [snippets.Input] is an Output with Errors. If ctx ends the run, the error wraps ctx's error, beside the
// Output so far, which is nil if the snippet had not begun.
func (c *Client) RunSnippet(ctx context.Context, in snippets.Input, o SnippetOptions) (*snippets.Output, error) {
	m := message{Request: session.Request{Method: "runSnippet", Events: in.OnLog != nil}, doing: "run snippet", in: newSnippetRequest(in, o)}
	if in.OnLog != nil {
		m.handle = func(f session.Frame) error {
			var e struct {
				Event string
				Data  resultjson.SnippetLog
			}
			if f.Kind == session.KindEvent && json.Unmarshal(f.Body, &e) == nil && e.Event == "log" {
				in.OnLog(e.Data.Line)
			}
			return nil
		}
	}
	r, err := call[*resultjson.SnippetResult](ctx, c, m)
	switch {
	case r == nil:
		return nil, err
	case r.Output == nil:
		return nil, wrap("run snippet", errors.New("an invalid result of the server: no output"))
	}
	r.Output.Problems, r.Output.Denials, r.Output.Usage = r.Problems, r.Denials, r.Usage
	return r.Output, err
}
