package session

import (
	"context"
	"encoding/json"
	"time"

	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/runtime"
)

// commands returns the commands of a client as [runtime.Options] has them. It keeps nil.
func (c *calls) commands(declared []protocol.Command) (map[string]runtime.Command, error) {
	if declared == nil {
		return nil, nil
	}
	all := make(map[string]runtime.Command, len(declared))
	for i, d := range declared {
		if _, exists := all[d.Name]; exists {
			return nil, service.Invalidf("commands[%d]: %s: it is declared twice", i, d.Name)
		}
		all[d.Name] = runtime.Command{Stdin: d.Stdin, Run: func(ctx context.Context, call runtime.CommandCall) (runtime.CommandResult, error) {
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

// callLimits returns the bounds of the calls of a run as [runtime.Options] has them.
func callLimits(l protocol.CallLimits) runtime.CallLimits {
	return runtime.CallLimits{
		Calls: l.Calls, Concurrent: l.Concurrent, Arguments: l.Arguments, Result: l.Result,
		Timeout: time.Duration(l.TimeoutMs) * time.Millisecond,
	}
}
