package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/internal/hostcall"
)

// function is a host function.
type function = hostcall.Func

// bound are the functions and commands of a sandbox or a snippet, which the server can call until release.
type bound struct {
	c   *Client
	ids []uint32 // guarded by c.mu
}

// bind makes functions callable. The caller releases them, unless there is an error.
func (c *Client) bind(given map[string]any) (values map[string]json.RawMessage, host session.Host, b *bound, err error) {
	all, err := hostcall.NewBindings(given, classify, hostcall.AnyIntegers) // the server decides
	var text string
	if err == nil {
		text, err = all.Values()
	}
	if err != nil {
		return nil, host, nil, &runtime.OptionError{Option: "Bindings", Err: err}
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &values); err != nil {
			return nil, host, nil, err
		}
	}
	b = &bound{c: c}
	for _, f := range all.Functions {
		host.Functions = append(host.Functions, session.Function{ID: b.add(f.Call), Path: f.Path, Async: f.Async, Schema: f.Schema})
	}
	return values, host, b, nil
}

// add returns the number of a function.
func (b *bound) add(f function) uint32 {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.nextFunc++
	b.c.functions[b.c.nextFunc] = f
	b.ids = append(b.ids, b.c.nextFunc)
	return b.c.nextFunc
}

// addCommands makes commands callable. It keeps nil.
func (b *bound) addCommands(given map[string]runtime.HostCommand) (list []session.Command) {
	if given != nil {
		list = []session.Command{}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		list = append(list, session.Command{ID: b.add(commandFunction(name, given[name])), Name: name, Stdin: given[name].Stdin})
	}
	return list
}

func (b *bound) release() {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	for _, id := range b.ids {
		delete(b.c.functions, id)
	}
	b.ids = nil
}

// encodeHost encodes functions for requests; nil if there are none.
func encodeHost(h session.Host) json.RawMessage {
	if len(h.Functions) == 0 && h.Commands == nil && h.Calls == (session.CallLimits{}) {
		return nil
	}
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // it has strings, numbers, and schemas that were JSON
	}
	return text
}

// classify separates functions from other values.
var classify = hostcall.NewClassifier(func(f runtime.Function) hostcall.Function {
	h := hostcall.Function{Call: f.Call, Async: f.Async}
	if f.Strict { // the server checks the arguments
		h.Schema = f.Schema
	}
	return h
})

// call starts a call that the server has sent.
func (c *Client) call(f session.Frame) error {
	number, args := f.Call()
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[f.ID] != nil || len(c.running) >= session.MaxCalls+session.MaxRequests {
		cancel()
		return fmt.Errorf("%w: call %d is in use, or there are too many", session.ErrFrame, f.ID)
	}
	c.running[f.ID] = cancel
	do := c.functions[number]
	go func() { // not waited for: a function may ignore its context
		defer cancel()
		frame := answer(ctx, f.ID, do, args)
		c.mu.Lock()
		delete(c.running, f.ID)
		c.mu.Unlock()
		_ = c.send(c.ctx, frame) // fails if the connection has ended
	}()
	return nil
}

// answer calls a function and returns the frame with its result.
func answer(ctx context.Context, id uint32, do function, args json.RawMessage) []byte {
	if do == nil {
		do = func(context.Context, json.RawMessage) (any, error) {
			return nil, errors.New("the sandbox of the function is closed")
		}
	}
	text, err := hostcall.Invoke(ctx, do, args, hostcall.AnyIntegers, session.MaxFrame)
	if err != nil {
		return session.Append(nil, session.KindFailure, id, hostcall.ErrorText(err))
	}
	return session.Append(make([]byte, 0, 8+len(text)), session.KindAnswer, id, text)
}

// AddCommands adds commands to a sandbox that this client has created with CreateOptions.Commands,
// which may be empty. It replaces existing commands of the same name.
func (sb *Sandbox) AddCommands(ctx context.Context, given map[string]runtime.HostCommand) error {
	host := encodeHost(session.Host{Commands: append([]session.Command{}, sb.bound.addCommands(given)...)})
	_, err := call[struct{}](ctx, sb.c, message{Request: session.Request{Method: "addCommands", Host: host}, doing: "add commands", in: sb.in()})
	return err
}

// commandFunction returns a command as a function of the protocol.
func commandFunction(name string, command runtime.HostCommand) function {
	if command.Run == nil {
		return nil
	}
	return func(ctx context.Context, args json.RawMessage) (any, error) {
		var calls [1]session.CommandCall
		if err := json.Unmarshal(args, &calls); err != nil {
			return nil, fmt.Errorf("the server's call: %w", err)
		}
		res, err := command.Run(ctx, runtime.CommandCall{Name: name, Args: calls[0].Args, Stdin: []byte(calls[0].Stdin)})
		if err != nil {
			return nil, err
		}
		return session.CommandResult{Stdout: string(res.Stdout), Stderr: string(res.Stderr), ExitCode: res.ExitCode}, nil
	}
}
