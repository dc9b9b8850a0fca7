package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
)

// tool is an entry of the table of tools: an operation that consists of the server's operations, and what clients
// show of it. Its summary is the title, and its documentation the description.
type tool struct {
	*operation.Operation
	does           effect
	repeated, open bool // see describe

	// adapt changes the description for a server. It may be nil.
	adapt func(*endpoint, *mcp.Tool, *huma.Schema)

	// explain adds to an error of the tool. It may be nil.
	explain func(error) error

	output *huma.Schema
}

// effect is the effect of a tool on its sandbox.
type effect int

const (
	changes effect = iota // it may destroy files and processes
	adds                  // it only adds
	reads                 // it changes nothing
)

// describe returns a tool without schemas. Repeated means that calling it twice is equivalent to
// calling it once; open, that it may reach external hosts.
func describe(name, title, description string, does effect, repeated, open bool) *mcp.Tool {
	return &mcp.Tool{Name: name, Title: title, Description: description, Annotations: &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: does == reads, DestructiveHint: new(does == changes), IdempotentHint: repeated, OpenWorldHint: &open,
	}}
}

// types holds the types of all tools.
var types = operation.NewSet()

// newTool completes an entry of the table. Fields are the arguments, if the input type has more.
func newTool[In, Out any](t tool, o operation.Operation, do func(context.Context, *operation.Call, *In) (Out, error)) *tool {
	t.Operation = operation.New(types, o, do)
	t.output = types.View(reflect.TypeFor[Out]().Elem())
	return &t
}

// tools is the table. It is complete before the first endpoint.
var tools = sync.OnceValue(func() []*tool {
	return slices.Concat(runTools(), processTools(), sandboxTools(), fileTools(), snippetTools())
})

// add adds a tool of the table.
func (e *endpoint) add(t *tool) {
	in := t.Input.View()
	described := describe(t.Name, t.Summary, t.Doc, t.does, t.repeated, t.open)
	if t.adapt != nil {
		t.adapt(e, described, in)
	}
	described.InputSchema, described.OutputSchema = in, t.output
	e.addTool(described, t.perform)
}

// addTool adds a tool with the function that performs a call.
func (e *endpoint) addTool(t *mcp.Tool, perform func(context.Context, *operation.Call, json.RawMessage) (any, error)) {
	e.mcp.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, record := audit.Begin(ctx, t.Name)
		c := e.call()
		var stop func()
		c.OnOutput, stop = newProgress(ctx, r)
		defer stop()
		args := r.Params.Arguments
		if string(args) == "null" { // as some clients call tools without arguments
			args = nil
		}
		var out any
		ctx, end, err := e.service.Begin(ctx)
		if err == nil {
			defer end()
			out, err = perform(ctx, c, args)
		}
		record(statusOf(err))
		if err != nil {
			res := &mcp.CallToolResult{}
			res.SetError(err)
			return res, nil
		}
		return newResult(out), nil
	})
}

// perform performs a call.
func (t *tool) perform(ctx context.Context, c *operation.Call, args json.RawMessage) (out any, err error) {
	in, err := t.Decode(args, nil)
	if err == nil {
		out, err = t.Do(ctx, c, in)
		err = explain(ctx, c, in, err)
	}
	if err != nil && t.explain != nil {
		err = t.explain(err)
	}
	return out, err
}

// call returns a call of the tenant.
func (e *endpoint) call() *operation.Call {
	return &operation.Call{Service: e.service, Tenant: e.tenant}
}

// statusOf returns the HTTP status that a call would have had, for the audit log.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if failed, ok := errors.AsType[*service.Error](err); ok {
		return failed.Status()
	}
	return http.StatusUnprocessableEntity
}

const (
	// progressPause is the least time between two notifications.
	progressPause = 250 * time.Millisecond

	// heartbeat is the most time between two: clients end calls that seem to hang.
	heartbeat = 5 * time.Second
)

// maxNote bounds the bytes of output in which a note looks for the last line.
const maxNote = 1000

// newProgress begins notifications about a run: soon after it prints something, and regularly. A client that has not
// asked for them gets none. The caller reports output by note, which replaces output that has not been sent yet, and calls stop
// before it returns the result.
func newProgress(ctx context.Context, r *mcp.CallToolRequest) (note func([]byte), stop func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func([]byte) {}, func() {}
	}
	var last atomic.Pointer[string]
	note = func(output []byte) {
		if text := oneLine(string(output[max(0, len(output)-maxNote):])); text != "" {
			last.Store(&text)
		}
	}
	began := time.Now()
	sent := began
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() {
		ticks := time.Tick(progressPause)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks:
			}
			text, spent := last.Swap(nil), time.Since(began)
			switch {
			case text != nil:
			case time.Since(sent) < heartbeat:
				continue
			default:
				text = new(fmt.Sprintf("running for %d s", int(spent.Seconds())))
			}
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // the client may have gone
				ProgressToken: token, Progress: spent.Seconds(), Message: *text,
			})
			sent = time.Now()
		}
	})
	return note, func() { cancel(); sending.Wait() }
}
