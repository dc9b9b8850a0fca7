package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestKeys(t *testing.T) {
	c := connect(t, startServer(t))
	ctx := t.Context()
	get := func(key, want string, wantErr error) {
		t.Helper()
		if got, _, err := c.Get(ctx, Config, key); string(got) != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: %q, %v, want %q, %v", key, got, err, want, wantErr)
		}
	}
	get("key", "", ErrNotFound)
	for i, want := range []error{nil, ErrExists, ErrExists} {
		if err := c.Create(ctx, Config, "key", fmt.Append(nil, i), time.Hour); !errors.Is(err, want) {
			t.Errorf("Create %d: %v, want %v", i, err, want)
		}
	}
	get("key", "0", nil)
	if err := c.Put(ctx, Config, "key", []byte("put")); err != nil {
		t.Error(err)
	}
	get("key", "put", nil)
	for range 2 {
		if err := c.Delete(ctx, Config, "key"); err != nil {
			t.Error(err)
		}
		get("key", "", ErrNotFound)
	}
	if err := c.Create(ctx, Config, "key", []byte("new"), time.Hour); err != nil {
		t.Errorf("Create after Delete: %v", err)
	}
	get("key", "new", nil)
	if _, _, err := c.Get(ctx, Nodes, "key"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the key in another bucket: %v", err)
	}
	if err := c.Prepare(ctx); err != nil {
		t.Errorf("Prepare again: %v", err)
	}
	get("key", "new", nil)
}

// A created key is deleted after its time. Watch reports that.
func TestExpires(t *testing.T) {
	c := connect(t, startServer(t))
	w := watch(t, c)
	if err := c.Create(t.Context(), Nodes, "key", []byte("value"), time.Second); err != nil {
		t.Fatal(err)
	}
	w.want(t, "key=value")
	w.want(t, "key deleted")
	if _, _, err := c.Get(t.Context(), Nodes, "key"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if err := c.Create(t.Context(), Nodes, "key", []byte("again"), time.Hour); err != nil {
		t.Errorf("Create: %v", err)
	}
	w.want(t, "key=again")
}

// watching is a running Watch.
type watching struct {
	events  chan string // changes, and "current"
	ended   chan error
	started *sync.WaitGroup
}

// watch watches the bucket of nodes until the test ends, and waits until it is current.
func watch(t *testing.T, c *Client) watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := watching{make(chan string, 1000), make(chan error, 1), &sync.WaitGroup{}}
	w.started.Go(func() {
		w.ended <- c.Watch(ctx, Nodes, func(c Change) {
			event := c.Key + "=" + string(c.Value)
			if c.Value == nil {
				event = c.Key + " deleted"
			}
			w.events <- event
		}, func() { w.events <- "current" })
	})
	t.Cleanup(func() {
		cancel()
		w.started.Wait()
	})
	return w
}

// want receives events until the wanted one.
func (w watching) want(t *testing.T, want string) {
	t.Helper()
	var got []string
	for deadline := time.After(timeout); ; {
		select {
		case e := <-w.events:
			if got = append(got, e); e == want {
				return
			}
		case err := <-w.ended:
			t.Fatalf("the watch has ended: %v", err)
		case <-deadline:
			t.Fatalf("events %v, want %s", got, want)
		}
	}
}

// exactly receives events that must be the wanted ones.
func (w watching) exactly(t *testing.T, want ...string) {
	t.Helper()
	for _, want := range want {
		if got := receive(t, "event "+want, w.events); got != want {
			t.Fatalf("event %s, want %s", got, want)
		}
	}
}

func TestWatch(t *testing.T) {
	c := connect(t, startServer(t))
	ctx := t.Context()
	put := func(key, value string) {
		t.Helper()
		if err := c.Put(ctx, Nodes, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	empty := watch(t, c)
	empty.exactly(t, "current")
	put("a", "0")
	put("a", "1")
	put("b", "1")
	empty.exactly(t, "a=0", "a=1", "b=1")

	w := watch(t, c)
	w.exactly(t, "a=1", "b=1", "current")
	put("b", "2")
	put("c", "") // an empty value is not a deletion
	if err := c.Delete(ctx, Nodes, "a"); err != nil {
		t.Fatal(err)
	}
	w.exactly(t, "b=2", "c=", "a deleted")
	empty.exactly(t, "b=2", "c=", "a deleted")

	c.Close()
	if err := receive(t, "end", w.ended); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Watch of a closed client: %v", err)
	}
}

// The end of its context ends a watch, also while it has more changes than it can buffer.
func TestWatchEnds(t *testing.T) {
	c := connect(t, startServer(t))
	for i := range 600 {
		if err := c.Put(t.Context(), Nodes, fmt.Sprint("key.", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got int
	err := c.Watch(ctx, Nodes, func(Change) {
		got++
		cancel()
	}, func() {})
	if !errors.Is(err, context.Canceled) || got == 600 {
		t.Errorf("%v after %d keys", err, got)
	}
}

// After a SIGKILL of the engine, it starts again with the same data, and clients continue.
func TestKilled(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	ctx := t.Context()
	if err := c.Put(ctx, Nodes, "before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	hints := make(chan string, 1000)
	if err := c.Subscribe(ctx, "hint.>", func(_ string, hint []byte) { hints <- string(hint) }); err != nil {
		t.Fatal(err)
	}
	w := watch(t, c)
	w.exactly(t, "before=1", "current")
	for i := range 2 {
		start := time.Now()
		s.kill(t)
		waitFor(t, "second start", func() bool { return s.address.Load() != nil })
		waitFor(t, "connection", c.Connected)
		w.want(t, "before=1")
		w.want(t, "current")
		t.Logf("the watch continued after %v", time.Since(start))
		if got, _, err := c.Get(ctx, Nodes, "before"); string(got) != "1" || err != nil {
			t.Errorf("Get: %q, %v", got, err)
		}
		value := fmt.Sprint(i)
		if err := c.Put(ctx, Nodes, "after", []byte(value)); err != nil {
			t.Fatal(err)
		}
		w.want(t, "after="+value)
		if err := c.Delete(ctx, Nodes, "after"); err != nil {
			t.Fatal(err)
		}
		w.want(t, "after deleted")
		if err := c.Publish("hint.x", []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "hint", hints); got != value {
			t.Errorf("hint %q, want %q", got, value)
		}
	}
	if n := len(s.children(t)); n != 1 {
		t.Errorf("%d processes", n)
	}
	ports, err := fs.Glob(os.DirFS(s.Dir), "*.ports")
	if err != nil || len(ports) != 1 {
		t.Errorf("files with addresses: %v, %v", ports, err)
	}
}

func TestPublish(t *testing.T) {
	s := startServer(t)
	from, to := connect(t, s), connect(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string, 100)
	if err := to.Subscribe(ctx, "load.>", func(subject string, hint []byte) { got <- subject + " " + string(hint) }); err != nil {
		t.Fatal(err)
	}
	if err := to.conn.Flush(); err != nil { // the engine knows the subscription
		t.Fatal(err)
	}
	publish := func(subject, hint string) {
		t.Helper()
		if err := from.Publish(subject, []byte(hint)); err != nil {
			t.Fatal(err)
		}
	}
	publish("other.a", "0")
	publish("load.a", "1")
	publish("load.b", "2")
	for _, want := range []string{"load.a 1", "load.b 2"} {
		if hint := receive(t, "hint", got); hint != want {
			t.Errorf("hint %q, want %q", hint, want)
		}
	}
	cancel()
	waitFor(t, "end of the subscription", func() bool { return to.conn.NumSubscriptions() < from.conn.NumSubscriptions()+1 })
}

// Clients with another token, or without one, are refused.
func TestToken(t *testing.T) {
	s := startServer(t)
	refused := map[string]nats.Option{"no user": nats.Name("nobody"), "no user, with the token": nats.Token(token), "another user": nats.UserInfo("another", token)}
	for _, user := range []string{recordUser, systemUser} {
		for _, wrong := range []string{"", "another", token + " "} {
			refused[fmt.Sprintf("%s %q", user, wrong)] = nats.UserInfo(user, wrong)
		}
		conn, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer(s.Dial)), nats.UserInfo(user, token))
		if err != nil {
			t.Fatalf("%s with the right token: %v", user, err)
		}
		conn.Close()
	}
	for name, option := range refused {
		conn, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer(s.Dial)), option)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v, want %v", name, err, nats.ErrAuthorization)
		}
		if err == nil {
			conn.Close()
		}
	}

	var tries int
	tried := make(chan struct{})
	c, err := Connect(func(ctx context.Context) (net.Conn, error) {
		if tries++; tries == 4 { // the first ones were refused, and it tries again
			close(tried)
		}
		return s.Dial(ctx)
	}, Access{Secret: "another"}, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	receive(t, "fourth connection", tried)
	if _, _, err := c.Get(t.Context(), Nodes, "key"); c.Connected() || !errors.Is(err, ErrUnavailable) {
		t.Errorf("a client with another token: connected %v, %v", c.Connected(), err)
	}
}

// A node reaches the engine through a tunnel, until either end closes or the context ends.
func TestServe(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 10)
	tunnels := make(chan net.Conn, 10)
	c, err := Connect(func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		tunnels <- near
		go func() { served <- Tunnel(ctx, far, s.Dial) }()
		return near, nil
	}, Access{Secret: token}, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waitFor(t, "connection", c.Connected)
	if err := cmp.Or(c.Prepare(t.Context()), c.Put(t.Context(), Nodes, "key", make([]byte, 100_000))); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.Get(t.Context(), Nodes, "key"); len(got) != 100_000 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	receive(t, "tunnel", tunnels).Close()
	receive(t, "end of the tunnel", served)
	receive(t, "second tunnel", tunnels)
	waitFor(t, "connection", c.Connected)

	s.kill(t)
	receive(t, "end of the tunnel", served)
	waitFor(t, "connection", c.Connected)
	c.Close()
	cancel()
	for len(tunnels) > 0 {
		<-tunnels
		receive(t, "end of the tunnel", served)
	}
}
