package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"gaol/runtime"
	"gaol/test/harness"
)

// checked returns a new runtime, and a function that closes it and checks that nothing is
// left.
func checked(t *testing.T, network string) (rt *runtime.NodeRuntime, closeAll func()) {
	t.Helper()
	before, idle := harness.TakeInventory(), goleak.IgnoreCurrent()
	rt = harness.CreateExact(t, options(t, network))
	return rt, func() {
		t.Helper()
		if err := errors.Join(rt.Close(), runtime.CloseIdle()); err != nil {
			t.Error(err)
		}
		before.CheckLeaks(t)
		if err := goleak.Find(idle); err != nil {
			t.Error(err)
		}
	}
}

// silent is a server that answers nothing.
const silent = `
import net from 'node:net';
net.createServer(s => s.on('error', () => {}).resume()).listen(3001);`

// Closing a runtime ends connections, requests and all that waits, and leaves nothing.
func TestCloseEndsConnections(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			rt, closeAll := checked(t, network)
			start(t, rt, 3000, blocked)
			start(t, rt, 3001, silent)
			for range 2 { // the kernel's queue
				dial(t, rt, 3000)
			}
			waiting := waitingCalls(rt, dial(t, rt, 3001))
			var calls sync.WaitGroup
			began := make(chan struct{}, len(waiting))
			for name, f := range waiting {
				calls.Go(func() {
					began <- struct{}{}
					if err := f(); !errors.Is(err, runtime.ErrClosed) && !errors.Is(err, net.ErrClosed) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			for range waiting {
				<-began
			}
			closeAll()
			calls.Wait()
			checkClosed(t, rt)
		})
	}
}

// waitingCalls returns calls that wait until the runtime is closed.
func waitingCalls(rt *runtime.NodeRuntime, open net.Conn) map[string]func() error {
	ctx, client := context.Background(), &http.Client{Transport: rt.NewTransport()}
	return map[string]func() error{
		"Dial":            func() error { _, err := rt.Dial(ctx, "tcp", 3000); return err },
		"WaitForListener": func() error { return rt.WaitForListener(ctx, 9) },
		"Read":            func() error { _, err := open.Read(make([]byte, 1)); return err },
		"a request": func() error {
			resp, err := client.Get("http://localhost:3001/")
			if err == nil {
				return resp.Body.Close()
			}
			return errors.Join(err, net.ErrClosed) // http.Transport returns other errors
		},
	}
}

// checkClosed checks that the runtime is closed for all calls.
func checkClosed(t *testing.T, rt *runtime.NodeRuntime) {
	t.Helper()
	_, dialed := rt.Dial(t.Context(), "tcp", 3000)
	_, listed := rt.Listeners(t.Context())
	for name, err := range map[string]error{"Dial": dialed, "Listeners": listed, "WaitForListener": rt.WaitForListener(t.Context(), 3000)} {
		if !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// 200 connections at the same time each get their own bytes back, and leave nothing when they are
// closed.
func TestManyDials(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			rt, closeAll := checked(t, network)
			start(t, rt, 3000, echoServer)
			dial(t, rt, 3000).Close()
			before := harness.OpenDescriptors()
			var open, done sync.WaitGroup
			open.Add(200)
			for i := range 200 {
				done.Go(func() {
					c, err := rt.Dial(t.Context(), "tcp", 3000)
					open.Done()
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					open.Wait() // all are open together
					text := bytes.Repeat(fmt.Append(nil, i), 1000)
					go func() { _, _ = c.Write(text) }()
					got := make([]byte, len(text))
					if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, text) {
						t.Errorf("connection %d: %d bytes, %v", i, len(got), err)
					}
				})
			}
			done.Wait()
			harness.WaitFor(t, "closed descriptors", func() bool { return harness.OpenDescriptors() <= before+4 })
			closeAll()
		})
	}
}

// A canceled context ends every call before it does anything.
func TestCanceledContext(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(io.ErrNoProgress)
		_, dialed := rt.Dial(ctx, "tcp", 3000)
		_, listed := rt.Listeners(ctx)
		for name, err := range map[string]error{"Dial": dialed, "Listeners": listed, "WaitForListener": rt.WaitForListener(ctx, 3000)} {
			if !errors.Is(err, io.ErrNoProgress) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A transport keeps no idle connections.
func TestNoIdleConnections(t *testing.T) {
	eachNetwork(t, func(t *testing.T, rt *runtime.NodeRuntime) {
		start(t, rt, 3000, `
import http from 'node:http';
http.createServer({ keepAliveTimeout: 0 }, (req, res) => res.end('ok')).listen(3000);`)
		client := newClient(t, rt)
		before := harness.OpenDescriptors()
		var requests sync.WaitGroup
		for range 40 {
			requests.Go(func() {
				if got := get(client, "http://localhost:3000/"); got != "200 ok" {
					t.Error(got)
				}
			})
		}
		requests.Wait()
		harness.WaitFor(t, "closed connections", func() bool { return harness.OpenDescriptors() <= before })
	})
}

func BenchmarkDial(b *testing.B) {
	for name, network := range networks {
		b.Run(name, func(b *testing.B) {
			rt := harness.CreateExact(b, options(b, network))
			start(b, rt, 3000, echoServer)
			for b.Loop() {
				c, err := rt.Dial(b.Context(), "tcp", 3000)
				if err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
}

func BenchmarkRequest(b *testing.B) {
	for name, network := range networks {
		b.Run(name, func(b *testing.B) {
			rt := harness.CreateExact(b, options(b, network))
			start(b, rt, 3000, `import http from 'node:http'; http.createServer((_, res) => res.end('ok')).listen(3000);`)
			client := newClient(b, rt)
			for b.Loop() {
				if got := get(client, "http://localhost:3000/"); got != "200 ok" {
					b.Fatal(got)
				}
			}
		})
	}
}

func BenchmarkListeners(b *testing.B) {
	for name, network := range networks {
		b.Run(name, func(b *testing.B) {
			rt := harness.CreateExact(b, options(b, network))
			start(b, rt, 3000, echoServer)
			for b.Loop() {
				if _, err := rt.Listeners(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
