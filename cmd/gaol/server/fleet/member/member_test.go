package member

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
)

// program returns nats-server: the one of the environment variable GAOL_TEST_NATS, or its own build.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("GAOL_TEST_NATS"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "nats-server")
	build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s", "-o", path,
		"github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return path
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after a minute", what)
		}
	}
}

// startEngine starts an engine with its buckets, and returns a function that makes clients. All end with the test.
func startEngine(t *testing.T) (client func() *engine.Client) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := engine.Start(ctx, engine.Options{Program: program(t), Dir: t.TempDir(), Token: "token", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-s.Done()
	})
	client = func() *engine.Client {
		c, err := engine.Connect(s.Dial, engine.Access{Secret: "token"}, "test", log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		waitFor(t, "connection", c.Connected)
		return c
	}
	if err := client().Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

// testMember is a running member with a clock that the test advances.
type testMember struct {
	*Member
	ahead  atomic.Int64
	probed atomic.Int64 // how often it has tried to reach others
	alive  atomic.Bool  // whether it can reach others
	heard  atomic.Bool  // whether it hears of another while it cannot reach that for once
	fenced chan string
	stop   func()
}

func startMember(t *testing.T, id string, c *engine.Client) *testMember {
	t.Helper()
	m := &testMember{fenced: make(chan string, 10)}
	m.alive.Store(true)
	m.Member = New(Options{
		Record: Record{ID: id, Address: id}, Engine: c, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Probe: func(_ context.Context, r Record) error {
			m.probed.Add(1)
			if m.alive.Load() {
				return nil
			}
			if m.heard.CompareAndSwap(true, false) {
				m.Hint(r.ID, []byte("{}"))
				m.alive.Store(true)
			}
			return errors.New("unreachable")
		},
		Load: func() Load { return Load{Busy: 0.25} }, Update: func(r *Record) { r.Engine = true }, Fenced: func(why string) { m.fenced <- why }, Changed: func() {},
	})
	m.now = func() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())) }
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { m.Run(ctx) })
	m.stop = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(m.stop)
	return m
}

// pass lets time pass for a member, which renews its record meanwhile.
func (m *testMember) pass(t *testing.T, d time.Duration) {
	t.Helper()
	const step = silence - 2*time.Second
	for ; d > 0; d -= step {
		before := m.Get(m.own).Sequence
		m.ahead.Add(int64(step))
		m.Drain(false)
		waitFor(t, "renewal", func() bool { return m.Get(m.own).Sequence != before })
	}
}

func TestMembers(t *testing.T) {
	client := startEngine(t)
	a, b := startMember(t, nodeA, client()), startMember(t, nodeB, client())
	for _, m := range []*testMember{a, b} {
		waitFor(t, "other node", func() bool { return m.Get(nodeA).State == Live && m.Get(nodeB).State == Live && m.IsCurrent() })
	}
	waitFor(t, "hint", func() bool { return a.Get(nodeB).Busy == 0.25 })
	if r := a.Get(nodeB); r.Address != nodeB || r.MaxProtocol != Protocol {
		t.Errorf("record %+v", r)
	}
	b.Drain(true)
	waitFor(t, "draining node", func() bool { return a.Get(nodeB).State == Draining })

	// A silent node that can be reached is not dead.
	b.stop()
	a.pass(t, deadAfter+time.Second)
	waitFor(t, "second probe", func() bool { return a.probed.Load() >= 2 })
	if s := a.Get(nodeB); s.State != Suspect {
		t.Errorf("a node that can be reached: %+v", s)
	}
	// A hint during a failing probe keeps a node alive.
	a.heard.Store(true)
	a.alive.Store(false)
	waitFor(t, "hint during a probe", a.alive.Load)
	a.pass(t, deadAfter+time.Second)
	before := a.probed.Load()
	waitFor(t, "later probe", func() bool { return a.probed.Load() > before })
	if s := a.Get(nodeB); s.State != Suspect {
		t.Errorf("a node that was heard of: %+v", s)
	}
	a.alive.Store(false)
	waitFor(t, "tombstone", func() bool { return a.IsDead(nodeB) })
	if why := a.Get(nodeB).Why; !strings.Contains(why, "node "+nodeA+" could not reach it") {
		t.Errorf("reason %q", why)
	}
	if err := a.Bury(t.Context(), nodeB, Grave{Why: "again"}); !errors.Is(err, engine.ErrExists) {
		t.Errorf("a second tombstone: %v", err)
	}
	if g, err := a.Grave(t.Context(), nodeB); err != nil || g == nil || g.Removed || g.Why == "again" {
		t.Errorf("grave %+v, %v", g, err)
	}
	if g, err := a.Grave(t.Context(), nodeA); err != nil || g != nil {
		t.Errorf("grave of a live node: %+v, %v", g, err)
	}

	// A dead node that comes back learns it, and does not write its record again.
	c := client()
	again := startMember(t, nodeB, c)
	select {
	case why := <-again.fenced:
		if why != a.Get(nodeB).Why {
			t.Errorf("fenced: %q", why)
		}
	case <-time.After(time.Minute):
		t.Fatal("the dead node was not fenced")
	}
	if err := again.write(t.Context()); !errors.Is(err, ErrDead) {
		t.Errorf("its record: %v", err)
	}
	if text, _, err := c.Get(t.Context(), engine.Nodes, nodeKey+nodeB); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("its record: %s, %v", text, err)
	}

	a.stop()
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "end of the membership", func() bool { return again.Get(nodeA).State == Unknown })
}
