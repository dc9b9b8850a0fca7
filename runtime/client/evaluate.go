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
	err := c.exchange(ctx, "evaluate", m, runtime.RunOptions{}, handle, into(&e))
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
	handle := func(f session.Frame) {
		if line, ok := snippetLine(f); ok && in.OnLog != nil {
			in.OnLog(line)
		}
	}
	m := message{session.Request{Method: "runSnippet", Events: in.OnLog != nil}, newSnippetRequest(in, o)}
	var r *resultjson.SnippetResult
	err := c.exchange(ctx, "run snippet", m, runtime.RunOptions{}, handle, into(&r))
	switch {
	case r == nil:
		return nil, err
	case r.Output == nil:
		return nil, wrap("run snippet", errors.New("an invalid result of the server: no output"))
	}
	r.Output.Problems, r.Output.Denials, r.Output.Usage = r.Problems, r.Denials, r.Usage
	return r.Output, err
}

// snippetLine returns the line of an event.
func snippetLine(f session.Frame) (line string, ok bool) {
	var e struct {
		Event string
		Data  resultjson.SnippetLog
	}
	if f.Kind != session.KindEvent || json.Unmarshal(f.Body, &e) != nil {
		return "", false
	}
	return e.Data.Line, e.Event == "log"
}
