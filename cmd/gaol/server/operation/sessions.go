package operation

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/sandboxtools"
)

// sessions are the operations that only sessions have.
func sessions() []*Operation {
	return []*Operation{
		Define(registry, Operation{Name: "tool", Summary: "Call a tool of package sandboxtools, whose sandboxes end with the session"}, callTool),
		define(Operation{Name: "normalize", Summary: "Turn a snippet into an ES module"}, func(ctx context.Context, c *Call, in *requestjson.NormalizeIn) (*resultjson.Normalized, error) {
			audit.Of(ctx).SetCode(in.Code)
			return c.Service.Normalize(ctx, c.Tenant, in.Code)
		}),
		defineIn(Operation{Name: "addCommands", Summary: "Add programs that the client implements to a sandbox of the session"}, func(_ context.Context, c *Call, sb *service.Sandbox, in *requestjson.InSandbox) (none, error) {
			if !c.Session.Owns(in.Sandbox) {
				return none{}, service.Refuse(service.Invalid, "commands: only the session that created the sandbox can add some, because they end with it")
			}
			return none{}, sb.AddCommands(c.Commands)
		}),
		defineIn(Operation{Name: "dial", Summary: "Connect to a guest's server until both directions have ended"}, dial),
	}
}

func callTool(ctx context.Context, c *Call, in *requestjson.ToolIn) (json.RawMessage, error) {
	result, err := c.Session.Toolbox().Call(ctx, in.Tool, in.Arguments)
	if sandboxtools.CodeOf(err) != sandboxtools.UnknownTool {
		audit.Of(ctx).SetAction("session " + in.Tool)
	}
	return result, err
}

// lastWrite is how long a guest may take to read the data that the client sent before it canceled.
const lastWrite = time.Second

// dial connects to a guest's server. The end of the request closes the connection.
func dial(ctx context.Context, c *Call, sb *service.Sandbox, in *requestjson.InPort) (none, error) {
	if c.To == nil || c.Stdin == nil {
		return none{}, service.Refuse(service.Invalid, "dial: want stdin and events")
	}
	conn, err := sb.DialPort(ctx, in.Port)
	if err != nil {
		return none{}, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = conn.SetReadDeadline(time.Now())
		_ = conn.SetWriteDeadline(time.Now().Add(lastWrite)) // of what has arrived before
		c.Stdin.(closer).Close(context.Cause(ctx))
	})()
	if err := c.To(service.Event{Name: service.EventStarted, Data: none{}}); err != nil {
		return none{}, err
	}
	if err := relay(c, conn); err != nil {
		return none{}, sb.ConnectionError(ctx, err)
	}
	return none{}, nil
}

// relay copies in both directions until both have ended, or one fails.
func relay(c *Call, conn net.Conn) error {
	stdin := c.Stdin.(closer)
	var out, in error
	var pumps sync.WaitGroup
	pumps.Go(func() {
		if _, out = io.Copy(c.Download, conn); out == nil {
			out = c.To(service.Event{Name: service.EventEnd, Data: none{}})
		}
		if out != nil {
			stdin.Close(out)
		}
	})
	pumps.Go(func() {
		if _, in = io.Copy(conn, c.Stdin); in == nil {
			in = conn.(interface{ CloseWrite() error }).CloseWrite()
		}
		if in != nil {
			stdin.Close(in) // what still arrives is dropped
		}
	})
	pumps.Wait()
	return errors.Join(in, out)
}

// closer is the standard input of a session, which can be closed with an error.
type closer interface{ Close(error) }
