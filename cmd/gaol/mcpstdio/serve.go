package mcpstdio

import (
	"context"
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
	return &connection{Connection: c, abandon: t.abandon, idle: make(chan struct{}, 1)}, nil
}

// connection counts calls without a response.
type connection struct {
	mcp.Connection
	abandon func()
	idle    chan struct{} // has an element when the last call has got its response

	mu      sync.Mutex
	pending int
}

// Read implements [mcp.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.add(1)
	}
	if err != nil && ctx.Err() == nil {
		c.finish()
	}
	return m, err
}

// Write implements [mcp.Connection].
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.add(-1)
	}
	return err
}

func (c *connection) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending += n
	if c.pending == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

func (c *connection) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending <= 0
}

// finish waits for the calls in progress, and ends those that take too long.
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
}
