package session

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"

	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/internal/strictjson"
	"gaol/runtime"
)

const maxSchema = 16 << 10 // bytes of a function's schema

// maxArguments bounds the arguments of all calls that the client has not answered, in bytes.
const maxArguments = 64 << 20

// calls are the calls of host functions that the client has not answered.
type calls struct {
	connection *connection
	slots      *semaphore.Weighted // of calls
	bytes      *semaphore.Weighted // of their arguments

	mu      sync.Mutex
	last    uint32
	waiting map[uint32]chan answer
}

// answer is a client's answer to a call.
type answer struct {
	value json.RawMessage
	err   error
	frame protocol.Frame // which the receiver releases
}

// call calls a function of the client. Its context ends with the run, or at the call's time limit.
func (c *calls) call(ctx context.Context, function uint32, args json.RawMessage) (any, error) {
	a, err := c.exchange(ctx, append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(args)), function), args...))
	if err != nil {
		return nil, err
	}
	a.frame.Release() // the runtime has its own bound for results
	return a.value, a.err
}

// exchange sends the body of a call, and returns the client's answer, whose frame the caller releases.
func (c *calls) exchange(ctx context.Context, body []byte) (answer, error) {
	size := min(int64(len(body)), maxArguments)
	if err := c.slots.Acquire(ctx, 1); err != nil {
		return answer{}, err
	}
	defer c.slots.Release(1)
	if err := c.bytes.Acquire(ctx, size); err != nil {
		return answer{}, err
	}
	defer c.bytes.Release(size)
	id, answered := c.register()
	defer c.forget(id, answered)
	if err := c.connection.send(ctx, protocol.Append(nil, protocol.KindCall, id, body)); err != nil {
		return answer{}, err
	}
	select {
	case a := <-answered:
		return a, nil
	case <-c.connection.ctx.Done():
		return answer{}, &runtime.CallError{Code: CodeGone, Message: "the client of the function has gone"}
	case <-ctx.Done():
		_ = c.connection.send(c.connection.ctx, protocol.Append(nil, protocol.KindAbandon, id)) // fails if the session has ended
		return answer{}, context.Cause(ctx)
	}
}

// CodeGone is the code of the error that programs get for a call whose client has gone.
const CodeGone = "ERR_CLIENT_GONE"

// register returns the id of a new call.
func (c *calls) register() (uint32, <-chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.last++; c.last == 0 || c.waiting[c.last] != nil; c.last++ {
	}
	answered := make(chan answer, 1)
	c.waiting[c.last] = answered
	return c.last, answered
}

func (c *calls) forget(id uint32, answered <-chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
	select {
	case a := <-answered: // which no caller has received
		a.frame.Release()
	default:
	}
}

// handle passes an answer to its call. One for a call that has ended is dropped.
func (c *calls) handle(f protocol.Frame) error {
	a, err := parseAnswer(f)
	if err != nil {
		return err
	}
	a.frame = f
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := c.waiting[f.ID]
	if answered == nil {
		f.Release()
		return nil
	}
	delete(c.waiting, f.ID)
	answered <- a
	return nil
}

func parseAnswer(f protocol.Frame) (answer, error) {
	if f.Refused != nil {
		return answer{err: f.Refused}, nil
	}
	if f.Kind == protocol.KindAnswer {
		if !jsontext.Value(f.Body).IsValid() {
			return answer{}, fmt.Errorf("%w: an answer that is not JSON", protocol.ErrFrame)
		}
		return answer{value: f.Body}, nil
	}
	var failure protocol.Failure
	if err := strictjson.Decode(f.Body, &failure); err != nil {
		return answer{}, fmt.Errorf("%w: a failure: %w", protocol.ErrFrame, err)
	}
	if failure.Code == "" {
		return answer{err: errors.New(failure.Message)}, nil
	}
	return answer{err: &runtime.CallError{Code: failure.Code, Message: failure.Message}}, nil
}

// bind returns variables and functions as [runtime.Options] has them.
func (c *calls) bind(values map[string]json.RawMessage, functions []protocol.Function) (map[string]any, error) {
	bindings := strictjson.Values(values)
	for i, f := range functions {
		var err error
		if len(f.Schema) > maxSchema {
			err = fmt.Errorf("a schema of %d bytes, the limit is %d", len(f.Schema), maxSchema)
		} else {
			err = insert(bindings, f.Path, runtime.Function{
				Async: f.Async, Schema: f.Schema, Strict: len(f.Schema) > 0,
				Call: func(ctx context.Context, args json.RawMessage) (any, error) { return c.call(ctx, f.ID, args) },
			})
		}
		if err != nil {
			return nil, service.Refuse(service.Invalid, "functions[%d]: %s: %w", i, strings.Join(f.Path, "."), err)
		}
	}
	return bindings, nil
}

// insert sets the value at a path inside nested objects.
func insert(in map[string]any, path []string, v any) error {
	last := len(path) - 1
	for _, name := range path[:last] {
		inner, err := object(in[name])
		if err != nil {
			return err
		}
		in[name], in = inner, inner
	}
	if _, exists := in[path[last]]; exists {
		return errors.New("it is declared twice")
	}
	in[path[last]] = v
	return nil
}

// object returns a value as an object to insert into.
func object(v any) (map[string]any, error) {
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	case json.RawMessage:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(v, &members); err == nil && members != nil {
			return strictjson.Values(members), nil
		}
	}
	return nil, errors.New("it is inside a value that is not an object")
}

// commands returns the commands of a client as [runtime.Options] has them. It keeps nil.
func (c *calls) commands(declared []protocol.Command) (map[string]runtime.HostCommand, error) {
	if declared == nil {
		return nil, nil
	}
	all := make(map[string]runtime.HostCommand, len(declared))
	for i, d := range declared {
		if _, exists := all[d.Name]; exists {
			return nil, service.Refuse(service.Invalid, "commands[%d]: %s: it is declared twice", i, d.Name)
		}
		all[d.Name] = runtime.HostCommand{Stdin: d.Stdin, Run: func(ctx context.Context, call runtime.CommandCall) (runtime.CommandResult, error) {
			return c.callCommand(ctx, d.ID, call)
		}}
	}
	return all, nil
}

// callCommand calls a command of the client. Bytes that are not UTF-8 become U+FFFD.
func (c *calls) callCommand(ctx context.Context, id uint32, call runtime.CommandCall) (res runtime.CommandResult, err error) {
	args, err := json.Marshal([]protocol.CommandCall{{Args: append([]string{}, call.Args...), Stdin: string(call.Stdin)}})
	if err != nil {
		return res, err
	}
	value, err := c.call(ctx, id, args)
	if err != nil {
		return res, err
	}
	var answer protocol.CommandResult
	if text, ok := value.(json.RawMessage); !ok || json.Unmarshal(text, &answer) != nil {
		return res, &runtime.CallError{Code: runtime.CodeResult, Message: "the answer is not that of a command"}
	}
	return runtime.CommandResult{Stdout: []byte(answer.Stdout), Stderr: []byte(answer.Stderr), ExitCode: answer.ExitCode}, nil
}
