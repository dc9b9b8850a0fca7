package service

import (
	"context"
	"encoding/json"
	"io"
	"syscall"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
)

// Call is a tenant's request to perform an operation: a method of [Service], [Sandbox], [Process] or [Context] with a call
// and an input of package requestjson. The fields after Tenant may be zero.
type Call struct {
	Service *Service
	Tenant  *tenant.Tenant

	// Stdin replaces the standard input of the request.
	Stdin io.Reader

	// To receives the events of the run. They include its output, which the result then lacks.
	To Sink

	// OnOutput is called with each piece of the output of a run that To does not receive.
	OnOutput func([]byte)

	// BoundsLogs lets To bound the lines of an evaluation, instead of its request.
	BoundsLogs bool

	// Signals are sent to the run.
	Signals <-chan syscall.Signal

	// Bind adds functions of the client to the variables of a sandbox, a context or a snippet.
	// Commands are programs that the client implements. Calls bounds the calls of both.
	Bind     func(globals map[string]json.RawMessage) (map[string]any, error)
	Commands map[string]runtime.HostCommand
	Calls    runtime.CallLimits

	// Upload returns the data that the request carries, which fails after some bytes. Operations with
	// uploads need it.
	Upload func(ctx context.Context, maxBytes int64) (io.Reader, error)

	// Download receives data that is the result, such as the content of a file: see [Sandbox.ReadFile].
	Download io.Writer

	// Session is nil by HTTP.
	Session  Session
	Detached bool // sandboxes do not end with the session
}

// Session is a connection that owns sandboxes, which end with it.
type Session interface {
	Own(sandbox string)
	Owns(sandbox string) bool
	Disown(sandbox string)
	Toolbox() *Toolbox
}

// None is the output of operations without one.
type None struct{}

// bind returns variables as the SDK has them, with the client's functions.
func (c *Call) bind(values map[string]json.RawMessage) (map[string]any, error) {
	if c.Bind != nil {
		return c.Bind(values)
	}
	if len(values) == 0 {
		return nil, nil
	}
	all := make(map[string]any, len(values))
	for name, value := range values {
		all[name] = value
	}
	return all, nil
}
