package session

import (
	"context"
	"testing"
	"time"

	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// dial connects a client to a server as root.
func dial(t testing.TB, s *servertest.Server) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{Socket: s.Socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// create creates a sandbox of a new client of a new server.
func create(t testing.TB, o client.CreateOptions) *client.Sandbox {
	t.Helper()
	return createIn(t, dial(t, servertest.Start(t, servertest.Options{})), o)
}

func createIn(t testing.TB, c *client.Client, o client.CreateOptions) *client.Sandbox {
	t.Helper()
	sb, err := c.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// soon returns a context that ends only for a test that hangs.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
