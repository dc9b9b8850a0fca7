package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gaol/internal/session"
	"gaol/runtime"
)

// AddCommands adds commands to a sandbox that this client has created with CreateOptions.Commands,
// which may be empty. One that exists is replaced.
func (sb *Sandbox) AddCommands(ctx context.Context, given map[string]runtime.Command) error {
	m := message{session.Request{Method: "addCommands"}, sb.in()}
	m.Host = encodeHost(session.Host{Commands: append([]session.Command{}, sb.commands.bind(sb.c, given)...)})
	return wrap("add commands", sb.c.ask(ctx, m, nil))
}

// addedCommands are the commands of a sandbox.
type addedCommands struct {
	mu  sync.Mutex
	ids []uint32
}

// bind makes commands callable by the server. It keeps nil.
func (a *addedCommands) bind(c *Client, given map[string]runtime.Command) (list []session.Command) {
	if given == nil {
		return nil
	}
	list = []session.Command{}
	a.mu.Lock()
	defer a.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		c.nextFunc++
		c.functions[c.nextFunc] = commandFunction(name, given[name])
		a.ids = append(a.ids, c.nextFunc)
		list = append(list, session.Command{ID: c.nextFunc, Name: name, Stdin: given[name].Stdin})
	}
	return list
}

func (a *addedCommands) release(c *Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.release(a.ids)
	a.ids = nil
}

// commandFunction returns a command as a function of the protocol.
func commandFunction(name string, command runtime.Command) function {
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
