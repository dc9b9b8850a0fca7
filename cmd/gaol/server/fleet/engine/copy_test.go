package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// next is the generation of the engine to which tests copy.
const next = "bbbbbbbb"

// startNext starts the engine of another generation, and returns a client that is connected to it.
func startNext(t *testing.T) (testServer, *Client) {
	t.Helper()
	access := Access{Secret: token, Generation: next}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Options{Program: program, Dir: t.TempDir(), Token: access.Token(), Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	end := func() {
		cancel()
		<-s.Done()
	}
	t.Cleanup(end)
	c, err := Connect(s.Dial, access, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	waitFor(t, "a connection", c.Connected)
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return testServer{s, end}, c
}

// Copy copies messages of all queues and the values of all buckets, and nothing that was deleted. Lifetimes continue.
func TestCopy(t *testing.T) {
	t.Parallel()
	from := connect(t, startServer(t))
	_, to := startNext(t)
	ctx := t.Context()
	const life = time.Hour
	for i := range 3 * copiesAtOnce {
		if err := from.Submit(ctx, i%Queues, fmt.Sprint(i), []byte(fmt.Sprint("message ", i))); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := from.Take(ctx, 0)
	if err != nil || taken == nil || taken.Done(ctx) != nil {
		t.Fatal(taken, err)
	}
	for _, bucket := range buckets {
		err := errors.Join(from.Put(ctx, bucket.Bucket, "kept", []byte("first")), from.Put(ctx, bucket.Bucket, "kept", []byte("last")))
		if bucket.LimitMarkerTTL > 0 { // else nothing deletes its keys
			err = errors.Join(err, from.Put(ctx, bucket.Bucket, "gone", nil), from.Delete(ctx, bucket.Bucket, "gone"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for key, life := range map[string]time.Duration{"long": life, "short": time.Second} {
		if err := from.Create(ctx, Nodes, key, []byte("x"), life); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	waitFor(t, "the end of a lifetime", func() bool { _, _, err := from.Get(ctx, Nodes, "short"); return errors.Is(err, ErrNotFound) })
	if err := to.Copy(ctx, from); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * copiesAtOnce {
		data, err := to.Queued(ctx, i%Queues, fmt.Sprint(i))
		if i == 0 {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("the message that was done: %q, %v", data, err)
			}
		} else if want := fmt.Sprint("message ", i); string(data) != want || err != nil {
			t.Errorf("%q, %v, want %q", data, err, want)
		}
	}
	for _, bucket := range buckets {
		if value, _, err := to.Get(ctx, bucket.Bucket, "kept"); string(value) != "last" || err != nil {
			t.Errorf("%s: %q, %v", bucket.Bucket, value, err)
		}
		if value, _, err := to.Get(ctx, bucket.Bucket, "gone"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %q, %v", bucket.Bucket, value, err)
		}
	}
	names, err := to.js.Stream(ctx, "KV_"+Names)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := names.GetLastMsgForSubject(ctx, "$KV."+Names+".gone"); err != nil || m.Header.Get(operationHeader) != "PURGE" {
		t.Errorf("the marker of a deleted name: %v, %v", m, err)
	}
	if _, _, err := to.Get(ctx, Nodes, "short"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key that has expired: %v", err)
	}
	s, err := to.js.Stream(ctx, "KV_"+Nodes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, "$KV."+Nodes+".long")
	if err != nil {
		t.Fatal(err)
	}
	left, err := time.ParseDuration(m.Header.Get(jetstream.MsgTTLHeader))
	if passed := time.Since(begin); err != nil || left >= life || left < life-passed-2*time.Second {
		t.Errorf("%v of %v are left, %v", left, life, err)
	}
}

// A client that uses another generation takes messages of its queues, and cannot delete them by an earlier message with the same
// position in a queue.
func TestUse(t *testing.T) {
	t.Parallel()
	old := startServer(t)
	second, to := startNext(t)
	var now atomic.Pointer[Server]
	now.Store(old.Server)
	connect(t, old).Close() // makes the queues
	c, err := Connect(func(ctx context.Context) (net.Conn, error) { return now.Load().Dial(ctx) }, Access{Secret: token}, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waitFor(t, "a connection", c.Connected)
	for _, engine := range []*Client{c, to} {
		if err := engine.Submit(t.Context(), 1, "name", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	before, err := c.Take(t.Context(), 1)
	if err != nil || before == nil {
		t.Fatal(before, err)
	}
	now.Store(second.Server)
	c.Use(next)
	waitFor(t, "the other engine", func() bool { _, err := c.Queued(t.Context(), 1, "name"); return err == nil })
	if err := before.Done(t.Context()); err == nil {
		t.Error("a message of the former generation was deleted")
	}
	after, err := c.Take(t.Context(), 1)
	if err != nil || after == nil || after.Attempts != 1 {
		t.Fatalf("%+v, %v", after, err)
	}
}
