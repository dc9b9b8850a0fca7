package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/service"
)

// program returns nats-server.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("GAOL_TEST_NATS"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "nats-server")
	build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s", "-o", path, "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return path
}

// testNode is a node in this process, which serves other nodes without a service. A test can crash and restart it.
type testNode struct {
	*Fleet
	o    Options
	http *http.Server
}

// start starts the node.
func (n *testNode) start(t *testing.T) {
	t.Helper()
	f, err := Start(context.WithoutCancel(t.Context()), n.o)
	if err != nil {
		t.Fatal(err)
	}
	n.Fleet, n.o.Address = f, f.Address
	for f.Member() == nil {
		time.Sleep(time.Millisecond)
	}
	l, secure := f.Listener()
	n.http = &http.Server{
		Handler:      f.NodeHandler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }),
		TLSNextProto: f.Protocols(), ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	server := n.http
	go func() { _ = server.Serve(tls.NewListener(l, secure)) }()
}

// crash ends the node without leaving the fleet, as SIGKILL does.
func (n *testNode) crash() {
	_ = n.http.Close() // it may have crashed
	n.close()
	n.work.Wait()
}

// testFleet is a fleet of nodes in this process.
type testFleet struct {
	t       *testing.T
	program string
	nodes   []*testNode
}

// startFleet starts a fleet, which ends with the test. The first node runs the engine.
func startFleet(t *testing.T, nodes int) *testFleet {
	t.Helper()
	c := &testFleet{t: t, program: program(t)}
	c.add(Options{Found: true})
	first := c.nodes[0]
	for range nodes - 1 {
		c.wait("a token", func() bool {
			_, _, err := first.client.Get(t.Context(), engine.Config, hashOf(first.madeWith.Secret))
			return err == nil
		})
		c.join(first, first.madeWith)
	}
	c.waitLive(c.nodes...)
	return c
}

// add starts a node, which ends with the test.
func (c *testFleet) add(o Options) {
	c.t.Helper()
	o.Dir = cmp.Or(o.Dir, Dir(c.t.TempDir()))
	o.Address, o.Program, o.Version = "127.0.0.1:0", c.program, "test"
	o.Log = slog.New(slog.NewTextHandler(c.t.Output(), nil)).With("on", len(c.nodes))
	n := &testNode{o: o}
	n.start(c.t)
	c.t.Cleanup(n.crash)
	c.nodes = append(c.nodes, n)
}

// join starts a node that joins by another one.
func (c *testFleet) join(by *testNode, token identity.Token) {
	c.t.Helper()
	c.add(Options{Join: by.o.Address, Token: token.String()})
}

// wait waits for a condition.
func (c *testFleet) wait(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("still not: %s", what)
		}
	}
}

// waitLive waits until nodes see each other as live.
func (c *testFleet) waitLive(nodes ...*testNode) {
	c.t.Helper()
	for _, viewer := range nodes {
		for _, n := range nodes {
			c.wait(fmt.Sprintf("node %s sees %s", viewer.ID(), n.ID()), func() bool { return viewer.Member().Get(n.ID()).State == member.Live })
		}
	}
}

// engines returns the nodes that run a server of the engine.
func (c *testFleet) engines() (list []*testNode) {
	for _, n := range c.nodes {
		if n.engine.Load() != nil {
			list = append(list, n)
		}
	}
	return list
}

// retry calls do until the engine is not away.
func (c *testFleet) retry(what string, do func() error) {
	c.t.Helper()
	c.wait(what, func() bool {
		err := do()
		away, _ := service.AsError(err) // also in the response of another node
		if err != nil && !errors.Is(err, engine.ErrExists) && (away == nil || away.Code != service.EngineUnavailable) {
			c.t.Fatalf("%s: %v", what, err)
		}
		return err == nil || errors.Is(err, engine.ErrExists)
	})
}

// records writes records of all kinds.
func (c *testFleet) records(client *engine.Client) {
	ctx := c.t.Context()
	for i := range 40 {
		key := fmt.Sprintf("key-%d", i)
		c.retry("submit", func() error { return client.Submit(ctx, i%engine.Queues, key, []byte(key)) })
		c.retry("result", func() error { return client.Create(ctx, engine.Results, key, []byte(key), 0) })
	}
	c.retry("moved", func() error { return client.Put(ctx, engine.Moved, "sb-x", []byte("aaaaaaaa")) })
	c.retry("files", func() error {
		return client.Put(ctx, engine.Config, filesKey, []byte(`{"config": "e30=", "tokens": null}`))
	})
}

// checkRecords fails the test if a record is missing.
func (c *testFleet) checkRecords(n *testNode) {
	c.t.Helper()
	ctx := c.t.Context()
	get := func(bucket, key, want string) {
		c.t.Helper()
		c.retry(key, func() error {
			text, _, err := n.client.Get(ctx, bucket, key)
			if err == nil && string(text) != want {
				c.t.Fatalf("%s %s: %q", bucket, key, text)
			}
			return err
		})
	}
	for i := range 40 {
		key := fmt.Sprintf("key-%d", i)
		get(engine.Results, key, key)
		c.retry(key, func() error {
			text, err := n.client.Queued(ctx, i%engine.Queues, key)
			if err == nil && string(text) != key {
				c.t.Fatalf("%s: %q", key, text)
			}
			return err
		})
	}
	get(engine.Moved, "sb-x", "aaaaaaaa")
	c.wait("pushed settings", func() bool {
		text, err := os.ReadFile(filepath.Join(n.o.Dir, pushedConfig))
		return err == nil && string(text) == "{}"
	})
}

// promoted promotes the engine, and waits until it is on three nodes.
func (c *testFleet) promoted() {
	c.t.Helper()
	p, err := c.nodes[0].promote(c.t.Context())
	if err != nil || len(p.Engines) != clusterSize {
		c.t.Fatalf("%+v, %v", p, err)
	}
	if got := c.engines(); len(got) != clusterSize || got[0] != c.nodes[0] {
		c.t.Fatalf("%d engines", len(got))
	}
	for _, viewer := range c.nodes {
		c.wait("three nodes have an engine, which all know", func() bool {
			n := 0
			for _, s := range viewer.Member().All() {
				if s.State == member.Live && s.Generation < viewer.generation().Number {
					return false
				}
				if s.Engine {
					n++
				}
			}
			return n == clusterSize
		})
	}
}

// renewed fails the test unless a node gets a new certificate, with the same id.
func (c *testFleet) renewed(n *testNode) {
	c.t.Helper()
	id, before := n.ID(), n.node.Load()
	c.retry("renew the certificate", func() error { return n.renewOnce(c.t.Context()) })
	if n.node.Load() == before || n.ID() != id {
		c.t.Errorf("node %s: it is %s now", id, n.ID())
	}
}

// checkRoutes fails the test unless a server refuses the routes of those who lack the engine's secret, as local users do.
func checkRoutes(t *testing.T, n *testNode) {
	t.Helper()
	c, err := n.engine.Load().DialRoute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	name := n.generation().Name // every client gets it
	if _, err := fmt.Fprintf(c, "CONNECT {\"user\":\"gaol\",\"pass\":%q,\"cluster\":%q,\"name\":\"x\"}\r\nPING\r\n", name, name); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if !strings.Contains(string(text), "Authorization Violation") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestPromote promotes an engine with records, and then removes each of its machines.
func TestPromote(t *testing.T) {
	t.Parallel()
	c := startFleet(t, 5)
	if _, err := c.nodes[1].promote(t.Context()); err == nil || !strings.Contains(err.Error(), "does not run the engine") {
		t.Errorf("a node without an engine: %v", err)
	}
	c.records(c.nodes[3].client)
	dead := identity.NewID()
	if err := c.nodes[0].Member().Bury(t.Context(), dead, member.Grave{Why: "removed", Removed: true}); err != nil {
		t.Fatal(err)
	}
	c.promoted()
	if _, err := c.nodes[0].promote(t.Context()); err == nil || !strings.Contains(err.Error(), "has three engines") {
		t.Errorf("a second time: %v", err)
	}
	for _, n := range c.nodes {
		c.checkRecords(n)
		c.wait("the tombstone", func() bool { return n.Member().IsDead(dead) })
		c.renewed(n)
		has := n.engine.Load() != nil
		_, err := Export(n.o.Dir)
		left, _ := filepath.Glob(n.serverDir("*"))
		if (err == nil) != has || (n.authority.Load() != nil) != has || len(left) != len(slices.DeleteFunc([]bool{has}, func(h bool) bool { return !h })) {
			t.Errorf("engine %v, export %v, folders %q", has, err, left)
		}
		if _, err := os.Stat(n.serverDir("")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the former engine is left: %v", err)
		}
	}
	for _, n := range c.engines() { // each may be lost
		checkRoutes(t, n)
		n.crash()
		n.start(t)
		c.checkRecords(n)
	}
	first := c.nodes[0]
	first.crash() // for ever
	for _, n := range c.nodes[1:] {
		c.renewed(n)
		c.retry("submit", func() error { return n.client.Submit(t.Context(), 1, "after-"+n.ID(), nil) })
	}
	by := c.engines()[1]
	token := identity.NewToken(by.node.Load().CA)
	c.retry("token", func() error { return by.storeToken(t.Context(), token) })
	c.join(by, token)
	first.start(t)
	c.checkRecords(first)
}

// TestReplace replaces a lost server of three. Then another one may be lost. The lost node, if it comes back,
// has no server.
func TestReplace(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(n, by *testNode) error{
		"removed": func(n, by *testNode) error {
			n.crash()
			return errors.Join(os.RemoveAll(n.o.Dir), by.remove(t.Context(), n.ID()))
		},
		"dead": func(n, _ *testNode) error { n.crash(); return nil },
		"left": func(n, _ *testNode) error { return errors.Join(n.Leave(t.Context()), n.http.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startFleet(t, 4)
			c.records(c.nodes[3].client)
			c.promoted()
			members := c.engines()
			by, stays, lost := members[0], members[1], members[2]
			if _, err := by.promote(t.Context()); err == nil || !strings.Contains(err.Error(), "has three engines") {
				t.Errorf("without a loss: %v", err)
			}
			if err := lose(lost, by); err != nil {
				t.Fatal(err)
			}
			c.wait("the loss is known", func() bool { return by.Member().Get(lost.ID()).Address == "" })
			p, err := by.promote(t.Context())
			if err != nil || len(p.Engines) != clusterSize || slices.Contains(p.Engines, lost.o.Address) {
				t.Fatalf("%+v, %v", p, err)
			}
			running := []*testNode{by, stays}
			for _, n := range c.nodes {
				if !slices.Contains(members, n) {
					running = append(running, n)
				}
			}
			for _, n := range running {
				c.wait("the node knows the generation", func() bool { return n.generation().Number == 2 && n.engine.Load() != nil })
				c.checkRecords(n)
				c.renewed(n)
			}
			if name != "removed" {
				lost.start(t)
				c.wait("the lost node has no engine", func() bool {
					_, err := Export(lost.o.Dir)
					return lost.engine.Load() == nil && lost.generation().Number == 2 && err != nil
				})
				c.waitLive(lost, by)
				c.checkRecords(lost)
			}
			stays.crash()
			c.retry("submit", func() error { return by.client.Submit(t.Context(), 1, "after", nil) })
			c.checkRecords(running[2])
			stays.start(t)
			c.checkRecords(stays)
		})
	}
}

// TestImport replaces a lost engine, of one server or three, by its backup. The remaining nodes use the new engine, and so do nodes
// with a server of the lost engine when they come back.
func TestImport(t *testing.T) {
	t.Parallel()
	for name, promoted := range map[string]bool{"one": false, "three": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startFleet(t, 4)
			backup, err := Export(c.nodes[0].o.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if promoted {
				c.promoted()
			}
			lost := c.engines()
			for _, n := range lost {
				n.crash()
			}
			dir := Dir(t.TempDir())
			if err := Import(dir, backup); err != nil {
				t.Fatal(err)
			}
			c.add(Options{Found: true, Dir: dir})
			restored := c.nodes[len(c.nodes)-1]
			for _, n := range slices.DeleteFunc(slices.Clone(c.nodes), func(n *testNode) bool { return n == restored || slices.Contains(lost, n) }) {
				n.crash()
				n.o.Join = restored.o.Address
				n.start(t)
				c.records(n.client)
				c.waitLive(n, restored)
				c.renewed(n)
			}
			for _, n := range lost[1:] {
				n.o.Join = restored.o.Address
				n.start(t)
				c.checkRecords(n)
				c.waitLive(n, restored)
				if _, err := Export(n.o.Dir); err == nil || n.engine.Load() != nil {
					t.Errorf("it still has an engine: %v", err)
				}
			}
			_, err = restored.promote(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.checkRecords(restored)
		})
	}
}
