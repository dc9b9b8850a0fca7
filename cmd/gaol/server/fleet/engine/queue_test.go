package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// submit adds a message to queue 1, and checks the error.
func submit(t *testing.T, c *Client, name, data string, want error) {
	t.Helper()
	if err := c.Submit(t.Context(), 1, name, []byte(data)); !errors.Is(err, want) {
		t.Fatalf("Submit %s: %v, want %v", name, err, want)
	}
}

// take waits for a message of queue 1, and checks it.
func take(t *testing.T, c *Client, data string, attempts int) (m *Message) {
	t.Helper()
	waitFor(t, "message "+data, func() bool {
		var err error
		m, err = c.Take(t.Context(), 1)
		return m != nil && err == nil
	})
	if string(m.Data) != data || m.Attempts != attempts {
		t.Fatalf("message %q, attempt %d, want %q, attempt %d", m.Data, m.Attempts, data, attempts)
	}
	return m
}

// takeNone checks that no message of a queue arrives for some time.
func takeNone(t *testing.T, c *Client, queue int, wait time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if m, err := c.Take(ctx, queue); m != nil || err != nil {
		t.Fatalf("Take of queue %d: %v, %v, want nothing", queue, m, err)
	}
}

func done(t *testing.T, m *Message) {
	t.Helper()
	if err := m.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantQueued checks whether queue 1 keeps a message.
func wantQueued(t *testing.T, c *Client, name, data string) {
	t.Helper()
	got, err := c.Queued(t.Context(), 1, name)
	if string(got) != data || errors.Is(err, ErrNotFound) != (data == "") {
		t.Fatalf("Queued %s: %q, %v, want %q", name, got, err, data)
	}
}

func TestQueue(t *testing.T) {
	c := connect(t, startServer(t))
	wantQueued(t, c, "a", "")
	submit(t, c, "a", "1", nil)
	submit(t, c, "a", "1", ErrExists)
	submit(t, c, "b", "2", nil)
	wantQueued(t, c, "a", "1")
	takeNone(t, c, 0, 100*time.Millisecond)
	a, b := take(t, c, "1", 1), take(t, c, "2", 1)
	submit(t, c, "a", "another", ErrExists) // also while a worker has it
	if err := errors.Join(a.Renew(), b.Renew(), b.Return(0)); err != nil {
		t.Fatal(err)
	}
	b = take(t, c, "2", 2)
	done(t, a)
	wantQueued(t, c, "a", "")
	submit(t, c, "a", "3", nil)
	done(t, take(t, c, "3", 1))
	if err := b.Return(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	wantQueued(t, c, "b", "2")
	done(t, take(t, c, "2", 3))
	takeNone(t, c, 1, 100*time.Millisecond)
}

// Each message goes to one of several clients, whose Take ends early when its context does.
func TestTake(t *testing.T) {
	s := startServer(t)
	const messages = 100
	var got atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var takers sync.WaitGroup
	first := connect(t, s)
	for range 4 {
		c := connect(t, s)
		takers.Go(func() {
			for ctx.Err() == nil {
				m, err := c.Take(ctx, 1)
				if err != nil {
					t.Error(err)
					return
				}
				if m == nil {
					continue
				}
				if err := m.Done(t.Context()); err != nil || m.Attempts != 1 {
					t.Errorf("attempt %d: %v", m.Attempts, err)
				}
				if got.Add(1) == messages {
					cancel()
				}
			}
		})
	}
	for i := range messages {
		submit(t, first, fmt.Sprint(i), "", nil)
	}
	takers.Wait()
	takeNone(t, first, 1, 50*time.Millisecond)
	if got.Load() != messages {
		t.Errorf("%d messages, want %d", got.Load(), messages)
	}
}

// shortLease makes the lease of messages of queue 1 shorter than the product's.
func shortLease(t *testing.T, c *Client) time.Duration {
	t.Helper()
	consumer, err := c.js.Consumer(t.Context(), c.queueName(1), workers)
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	if config.AckWait != lease || config.MaxDeliver > 0 || config.MaxAckPending > 0 {
		t.Errorf("the consumer %+v", config)
	}
	config.AckWait = time.Second
	if _, err := c.js.UpdateConsumer(t.Context(), c.queueName(1), config); err != nil {
		t.Fatal(err)
	}
	return config.AckWait
}

// A message that is not renewed is delivered again. Then either worker can delete it.
func TestLease(t *testing.T) {
	s := startServer(t)
	slow, other := connect(t, s), connect(t, s)
	lease := shortLease(t, slow)
	submit(t, slow, "a", "1", nil)
	m := take(t, slow, "1", 1)
	for begin := time.Now(); time.Since(begin) < 2*lease; {
		if err := m.Renew(); err != nil {
			t.Fatal(err)
		}
		takeNone(t, other, 1, lease/5)
	}
	again := take(t, other, "1", 2)
	done(t, m)
	wantQueued(t, other, "a", "")
	done(t, again)

	submit(t, slow, "b", "2", nil)
	take(t, slow, "2", 1)
	slow.Close() // of a worker that is lost
	done(t, take(t, other, "2", 2))
	takeNone(t, other, 1, 2*lease)
}

// A full queue or bucket refuses more, and has room again after a deletion.
func TestFull(t *testing.T) {
	c := connect(t, startServer(t))
	stream, err := c.js.Stream(t.Context(), c.queueName(1))
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = 10_000
	if _, err := c.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	data := string(make([]byte, 6000))
	submit(t, c, "a", data, nil)
	submit(t, c, "b", data, ErrFull)
	wantQueued(t, c, "b", "")
	submit(t, c, "a", data, ErrExists)
	done(t, take(t, c, data, 1))
	submit(t, c, "b", data, nil)

	results := buckets[len(buckets)-1]
	results.History, results.MaxBytes = 1, config.MaxBytes
	if _, err := c.js.UpdateKeyValue(t.Context(), results); err != nil {
		t.Fatal(err)
	}
	for _, create := range []struct {
		name string
		want error
	}{{"a", nil}, {"a", ErrExists}, {"b", ErrFull}} {
		if err := c.Create(t.Context(), Results, create.name, []byte(data), 0); !errors.Is(err, create.want) {
			t.Errorf("Create %s: %v, want %v", create.name, err, create.want)
		}
	}
}

// In a queue that is half full, an owner can have a few messages only. Others can add theirs.
func TestShare(t *testing.T) {
	s := startServer(t)
	c, other := connect(t, s), connect(t, s)
	stream, err := c.js.Stream(t.Context(), c.queueName(1))
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = 100_000
	if _, err := c.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	data := string(make([]byte, 4000))
	for i := range fewQueued - 1 {
		submit(t, c, fmt.Sprint("few.", i), data, nil)
	}
	submit(t, c, "few.large", string(make([]byte, 30_000)), nil)
	for i, c := range []*Client{c, other} {
		submit(t, c, "few.more", data, ErrShare)
		submit(t, c, fmt.Sprint("fe.", i), "", nil)
		submit(t, c, fmt.Sprint("fewer.", i), "", nil)
	}
	done(t, take(t, c, data, 1))
	waitFor(t, "room for the owner", func() bool {
		err := c.Submit(t.Context(), 1, "few.more", []byte(data))
		if err != nil && !errors.Is(err, ErrShare) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// A refused delivery does not count as an attempt, whichever worker gets the message then.
func TestRefuse(t *testing.T) {
	s := startServer(t)
	clients := []*Client{connect(t, s), connect(t, s)}
	submit(t, clients[0], "a", "1", nil)
	for i := range 6 {
		m := take(t, clients[i%2], "1", 1)
		if err := m.Refuse(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, err := clients[0].Waiting(t.Context()); n != 1 || err != nil {
		t.Errorf("%d messages wait, %v", n, err)
	}
	if err := take(t, clients[0], "1", 1).Return(0); err != nil {
		t.Fatal(err)
	}
	done(t, take(t, clients[1], "1", 2))
	submit(t, clients[0], "a", "2", nil)
	if err := take(t, clients[0], "2", 1).Return(0); err != nil {
		t.Fatal(err)
	}
	done(t, take(t, clients[0], "2", 2))
}

// Of several clients that create a result one succeeds, and a hint follows.
func TestResults(t *testing.T) {
	s := startServer(t)
	follower := connect(t, s)
	hints := make(chan string, 100)
	if err := follower.Subscribe(t.Context(), "*.name", func(subject string, hint []byte) { hints <- subject + string(hint) }); err != nil {
		t.Fatal(err)
	}
	if err := follower.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	var created, exist atomic.Int32
	var creators sync.WaitGroup
	for i := range 5 {
		c := connect(t, s)
		creators.Go(func() {
			switch err := c.Create(t.Context(), Results, "name", fmt.Append(nil, i), 0); {
			case err == nil:
				created.Add(1)
			case errors.Is(err, ErrExists):
				exist.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	creators.Wait()
	if created.Load() != 1 || exist.Load() != 4 {
		t.Errorf("created %d times, %d exist", created.Load(), exist.Load())
	}
	if err := follower.Create(t.Context(), Results, "other", nil, 0); err != nil {
		t.Error(err)
	}
	if err := follower.Publish("last.name", nil); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"done.name", "last.name"} {
		if got := receive(t, "hint", hints); got != want {
			t.Errorf("hint %q, want %q", got, want)
		}
	}
	kv, err := follower.js.KeyValue(t.Context(), Results)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := kv.Status(t.Context()); err != nil || status.TTL() != ResultLife || status.Bytes() == 0 {
		t.Errorf("%v %v", status, err)
	}
}

func TestAsk(t *testing.T) {
	s := startServer(t)
	asker, first, second := connect(t, s), connect(t, s), connect(t, s)
	wantAnswer := func(want ...string) {
		t.Helper()
		answer, err := asker.Ask(t.Context(), "ask.a")
		for _, want := range want {
			if string(answer) == want && errors.Is(err, ErrNotFound) == (want == "") {
				return
			}
		}
		t.Errorf("Ask: %q, %v, want one of %q", answer, err, want)
	}
	flush := func(c *Client) {
		t.Helper()
		if err := c.conn.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	wantAnswer("")
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]*Client{"first": first, "second": second} {
		if err := c.Answer(ctx, "ask.a", func() []byte { return []byte(name) }); err != nil {
			t.Fatal(err)
		}
		flush(c)
	}
	wantAnswer("first", "second")
	first.Close()
	waitFor(t, "answers of the second", func() bool {
		answer, err := asker.Ask(t.Context(), "ask.a")
		return err == nil && string(answer) == "second"
	})
	wantAnswer("second")
	cancel()
	waitFor(t, "end of the answers", func() bool {
		flush(second)
		_, err := asker.Ask(t.Context(), "ask.a")
		return errors.Is(err, ErrNotFound)
	})
}

// After a SIGKILL of the engine, queues keep the messages that no worker has deleted, and the results are left.
func TestQueueKilled(t *testing.T) {
	s := startServer(t)
	c := connect(t, s)
	shortLease(t, c)
	for _, name := range []string{"a", "b", "c"} {
		submit(t, c, name, name, nil)
	}
	done(t, take(t, c, "a", 1))
	taken := take(t, c, "b", 1)
	if err := c.Create(t.Context(), Results, "a", []byte("result"), 0); err != nil {
		t.Fatal(err)
	}
	s.kill(t)
	if _, err := c.Take(t.Context(), 1); err != nil && !errors.Is(err, ErrUnavailable) {
		t.Errorf("Take without an engine: %v", err)
	}
	waitFor(t, "second start", func() bool { return s.address.Load() != nil })
	waitFor(t, "connection", c.Connected)
	wantQueued(t, c, "a", "")
	submit(t, c, "b", "another", ErrExists)
	submit(t, c, "c", "another", ErrExists)
	if err := c.Create(t.Context(), Results, "a", []byte("another"), 0); !errors.Is(err, ErrExists) {
		t.Errorf("Create: %v", err)
	}
	if got, _, err := c.Get(t.Context(), Results, "a"); string(got) != "result" || err != nil {
		t.Errorf("the result %q, %v", got, err)
	}
	left := map[string]int{}
	for range 2 {
		var m *Message
		waitFor(t, "message", func() bool { m, _ = c.Take(t.Context(), 1); return m != nil })
		left[string(m.Data)] = m.Attempts
		done(t, m)
	}
	if left["b"] == 0 || left["c"] == 0 { // the engine may have forgotten that it has delivered b
		t.Errorf("attempts %v", left)
	}
	if err := taken.Done(t.Context()); err != nil {
		t.Errorf("Done of a deleted message: %v", err)
	}
	takeNone(t, c, 1, 50*time.Millisecond)
	if _, err := c.js.Stream(t.Context(), c.queueName(Queues-1)); err != nil {
		t.Error(err)
	}
	if _, err := c.js.Stream(t.Context(), c.queueName(Queues)); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
}
