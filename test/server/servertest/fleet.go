package servertest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/cmd/gaol/server/settings"
	"gaol/test/harness"
)

// FleetVar is the environment variable that makes each server a draining node of a fleet, so that another node of this process has
// all sandboxes: the tests of one server then test forwarded requests.
const FleetVar = "GAOL_TEST_FLEET"

// IsFleet reports whether servers are nodes of a fleet.
func IsFleet() bool { return os.Getenv(FleetVar) != "" }

// SkipInFleet skips a test that cannot pass in a fleet.
func SkipInFleet(t testing.TB, reason string) {
	t.Helper()
	if IsFleet() {
		t.Skip("not in a fleet: " + reason)
	}
}

// JoinFleet changes the options of a server as [FleetVar] wants. The caller calls serve with the server. Other is the node that has its
// sandboxes, nil if there is none.
func JoinFleet(t testing.TB, o *server.Options) (other *server.Server, serve func(*server.Server)) {
	t.Helper()
	if !IsFleet() {
		return nil, func(*server.Server) {}
	}
	shareQuotas(t, o.Settings)
	first := *o
	first.Store = t.TempDir()
	harness.LinkDefaultImage(t, first.Store)
	owner := startNode(t, &first, fleet.Options{Found: true, Program: harness.NATS(t)})
	other = server.New(first)
	serveNodes(t, other)
	SetAudit(t, other, o.Settings.AuditLog)
	node := startNode(t, o, fleet.Options{Join: owner.Address, Token: owner.FirstToken()})
	return other, func(s *server.Server) {
		serveNodes(t, s)
		node.Member().Drain(true)
		harness.WaitFor(t, "the nodes know each other", func() bool {
			return owner.Member().Get(node.ID()).State == member.Draining && node.Member().Get(owner.ID()).State == member.Live &&
				node.Member().Get(owner.ID()).Busy < 1
		})
	}
}

// shareQuotas shares the quotas of tenants that a test has changed.
func shareQuotas(t testing.TB, set *settings.Settings) {
	t.Helper()
	defaults, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	tenant, named := reflect.ValueOf(set.Tenant), reflect.ValueOf(&set.Named).Elem()
	for i := range tenant.NumField() {
		if f := tenant.Field(i); !f.Equal(reflect.ValueOf(defaults.Tenant).Field(i)) {
			named.Field(i).Set(f)
		}
	}
}

// SetAudit opens the audit log of a server, if it has one.
func SetAudit(t testing.TB, s *server.Server, path string) {
	t.Helper()
	if path == "" {
		return
	}
	f, err := audit.Open(path)
	if err == nil {
		err = s.SetAudit(f)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startNode starts a node of a fleet for the options of a server.
func startNode(t testing.TB, o *server.Options, f fleet.Options) (node *fleet.Fleet) {
	t.Helper()
	f.Dir, f.Address, f.Version, f.Log, f.Processors, f.Memory = filepath.Join(t.TempDir(), "fleet"), "127.0.0.1:0", "test", o.Log, 2, 1<<30
	harness.WaitFor(t, "the node starts", func() bool { // another one may not have stored its token yet
		var err error
		if node, err = fleet.Start(context.WithoutCancel(t.Context()), f); err != nil && f.Found {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() {
		if err := node.Leave(context.Background()); err != nil {
			t.Log(err)
		}
	})
	o.Fleet = node
	if o.Engine != nil {
		o.Engine = node
	}
	return node
}

// serveNodes serves the other nodes until the server is closed.
func serveNodes(t testing.TB, s *server.Server) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.ServeNodes() }()
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil { // the second time for servers that their test closes
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
