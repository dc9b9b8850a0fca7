package mcpstdio

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// grace is how long calls may continue after standard input has ended.
	grace = 2 * time.Second

	// maxLine bounds one message of the client.
	maxLine = 16 << 20
)

// Serve serves a client until its input or ctx ends. abandon must end the calls that are still in
// progress then.
func Serve(ctx context.Context, s *mcp.Server, in io.Reader, out io.Writer, abandon func()) error {
	abandon = sync.OnceFunc(abandon)
	defer context.AfterFunc(ctx, abandon)()
	t := &transport{IOTransport: mcp.IOTransport{Reader: io.NopCloser(in), Writer: output{out}, MaxLineLength: maxLine}, abandon: abandon}
	err := s.Run(ctx, t)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// output is a writer that stays open: the process owns its standard output.
type output struct{ io.Writer }

// Close does nothing.
func (output) Close() error { return nil }

// transport reports the end of its input when the calls before it have got their responses. The SDK
// would drop these.
type transport struct {
	mcp.IOTransport
	abandon func()
}

// Connect implements [mcp.Transport].
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{Connection: c, abandon: t.abandon, idle: make(chan struct{}, 1), pending: map[jsonrpc.ID]bool{}}, nil
}

// connection knows the calls without a response.
type connection struct {
	mcp.Connection
	abandon func()
	idle    chan struct{} // receives an element when the last call has got its response

	mu      sync.Mutex
	pending map[jsonrpc.ID]bool
}

// Read implements [mcp.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.pending[r.ID] = true
		c.mu.Unlock()
	} else if ok && r.Method == "notifications/cancelled" {
		c.done(canceled(r)) // there may be no response
	}
	if err != nil && ctx.Err() == nil {
		c.finish()
	}
	return m, err
}

// canceled returns the call that a notification cancels.
func canceled(r *jsonrpc.Request) (id jsonrpc.ID) {
	var p mcp.CancelledParams
	if json.Unmarshal(r.Params, &p) == nil { // the SDK reports invalid ones
		id, _ = jsonrpc.MakeID(p.RequestID)
	}
	return id
}

// Write implements [mcp.Connection].
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.done(r.ID)
	}
	return err
}

func (c *connection) done(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	if len(c.pending) == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

func (c *connection) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) == 0
}

// finish waits for the calls in progress, and cancels calls that take too long.
func (c *connection) finish() {
	late := time.NewTimer(grace)
	defer late.Stop()
	for !c.isIdle() {
		select {
		case <-c.idle:
		case <-late.C:
			c.abandon()
			return
		}
	}
	c.abandon() // for what has been canceled, but has not ended yet
}
