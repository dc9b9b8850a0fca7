package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// snippetParams are the parameters of evaluate, context and cell.
type snippetParams struct {
	Sandbox    string `json:"sandbox,omitempty"`
	Context    uint32 `json:"context,omitempty"`
	Events     bool   `json:"events,omitempty"`
	Logs       bool   `json:"logs,omitempty"`
	MaxTimeout bool   `json:"maxTimeout,omitempty"`

	Code          string             `json:"code"`
	Permissions   policy.Permissions `json:"permissions,omitzero"`
	Env           map[string]string  `json:"env,omitempty"`
	Cwd           string             `json:"cwd,omitempty"`
	TimeoutMs     int64              `json:"timeoutMs,omitempty"`
	MaxOutput     int64              `json:"maxOutput,omitempty"`
	MaxCalls      int                `json:"maxCalls,omitempty"`
	MaxLogs       int                `json:"maxLogs,omitempty"`
	MaxLogLength  int                `json:"maxLogLength,omitempty"`
	Form          runtime.ResultForm `json:"form,omitempty"`
	LastValue     bool               `json:"lastValue,omitempty"`
	IdleTimeoutMs int64              `json:"idleTimeoutMs,omitempty"`
	MaxIdle       bool               `json:"maxIdleTimeout,omitempty"`
	bindings
}

// snippet returns the parameters of a snippet, and a function that releases its host functions.
func (c *Client) snippet(sandbox, code string, o runtime.EvaluateOptions) (p snippetParams, release func(), err error) {
	switch {
	case o.Heap != 0:
		return p, nil, unsupported("Heap")
	case o.Module:
		return p, nil, unsupported("Module")
	case o.Grace != 0:
		return p, nil, unsupported("Grace")
	}
	p = snippetParams{
		Sandbox: sandbox, Code: code, Permissions: o.Permissions, Env: o.Env, Cwd: o.Cwd, Logs: o.OnLog != nil,
		MaxOutput: o.MaxOutput, MaxCalls: o.MaxCalls, MaxLogs: o.MaxLogs, MaxLogLength: o.MaxLogLength, Form: o.Form,
	}
	p.TimeoutMs, p.MaxTimeout = timeout(o.Timeout)
	p.bindings, release, err = c.bind(o.Globals)
	return p, release, err
}

// Evaluate evaluates a snippet, as [runtime.NodeRuntime.Evaluate] does. Heap, Module and Grace
// are not supported. A negative Timeout means the longest that the server allows.
func (sb *Sandbox) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	p, release, err := sb.c.snippet(sb.id, code, o)
	if err != nil {
		return nil, wrap("evaluate", err)
	}
	defer release()
	return sb.c.evaluate(ctx, "evaluate", p, o.OnLog)
}

// Evaluate evaluates a snippet in a sandbox of its own. The options are those of
// [Sandbox.Evaluate], without OnLog, MaxCalls, and functions in Globals.
func (c *Client) Evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*runtime.Evaluation, error) {
	p, release, err := c.snippet("", code, o)
	if err != nil {
		return nil, wrap("evaluate", err)
	}
	defer release()
	if p.Logs || p.MaxTimeout || p.MaxCalls != 0 || len(p.Functions) > 0 {
		return nil, wrap("evaluate", unsupported("OnLog, MaxCalls, a negative Timeout, or a function"))
	}
	return c.evaluate(ctx, "evaluateOnce", p, nil)
}

// evaluate evaluates a snippet or a cell.
func (c *Client) evaluate(ctx context.Context, method string, p snippetParams, onLog func(runtime.Log)) (*runtime.Evaluation, error) {
	return c.followEvaluate(ctx, method, p, func(f session.Frame) {
		if e, err := decodeEvent(f); err == nil && onLog != nil {
			if l, ok := e.(runtime.LogEvent); ok {
				onLog(l.Log)
			}
		}
	})
}

// followEvaluate evaluates a snippet, and passes its events to handle.
func (c *Client) followEvaluate(ctx context.Context, method string, p snippetParams, handle func(session.Frame)) (*runtime.Evaluation, error) {
	var e *runtime.Evaluation
	err := c.exchange(ctx, method, p, runtime.RunOptions{}, handle, func(text json.RawMessage) error {
		var evaluation *resultjson.Evaluation
		if err := json.Unmarshal(text, &evaluation); err != nil || evaluation == nil {
			return fmt.Errorf("an invalid result of the server: %w", errors.Join(err))
		}
		e = evaluation.Evaluation()
		return nil
	})
	return e, err
}

// decodeEvent returns the event of a frame. The error says that this version does not have it.
func decodeEvent(f session.Frame) (runtime.Event, error) {
	if f.Kind != session.KindEvent {
		return nil, fmt.Errorf("kind %d is no event", f.Kind)
	}
	var e resultjson.SessionEvent
	if err := json.Unmarshal(f.Body, &e); err != nil {
		return nil, err
	}
	return e.Event()
}
