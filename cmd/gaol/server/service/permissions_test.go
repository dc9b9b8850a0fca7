package service

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// errCreated is returned instead of a sandbox.
var errCreated = errors.New("created")

// newService returns a service that records the options with which it would create a sandbox.
func newService(t *testing.T, change func(*settings.Settings)) (s *Service, created *[]runtime.Options) {
	t.Helper()
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(set)
	}
	created = &[]runtime.Options{}
	s = New(Options{Settings: set, CgroupParent: "/gaol-test-service", Create: func(_ context.Context, o runtime.Options) (*runtime.NodeRuntime, error) {
		*created = append(*created, o)
		return nil, errCreated
	}})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, created
}

// ask asks for a sandbox with permissions. It reports whether they were accepted.
func ask(t *testing.T, s *Service, created *[]runtime.Options, permissions string) bool {
	t.Helper()
	*created = nil
	var in requestjson.SandboxRequest
	if permissions != "" && json.Unmarshal([]byte(permissions), &in.Permissions) != nil {
		return false
	}
	_, err := s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:1"}}, &in)
	if len(*created) > 0 {
		return true
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != Forbidden && e.Code != Invalid {
		t.Errorf("%s: %v", permissions, err)
	}
	return false
}

// private are addresses that only a rule can open.
var private = []string{"10.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[fe80::1]"}

// opensPrivate returns the private address that permissions open, or "".
func opensPrivate(p policy.Permissions) string {
	for _, address := range private {
		for _, port := range []string{"80", "443", "1"} {
			if p.Decide(policy.Network, "connect", "tcp://"+address+":"+port).Allowed {
				return address
			}
		}
	}
	return ""
}

// The default ceiling allows public addresses only, however others are spelled.
func TestCeilingHasNoPrivateAddress(t *testing.T) {
	s, created := newService(t, nil)
	accepted := 0
	for _, host := range []string{
		"10.0.0.1", "10.0.0.0/8", "10.0.0.0/7", "8.0.0.0/5", "192.168.0.0/16", "172.16.5.4", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.0.0.0/0", "0.0.0.0/1",
		"[::]", "[::/0]", "[::]/0", "::/0", "[fd00::1]", "[fe80::1]", "[fc00::/7]", "[::ffff:10.0.0.1]", "[::ffff:a00:1]", "[::ffff:0:0/96]", "[64:ff9b::a00:1]", "[2002:a00:1::]", "224.0.0.1", "255.255.255.255",
		"2130706433", "0x0a000001", "012.0.0.1", "10.1", "10.0.0.1.", "intranet", "*", "*.internal", "example.com", "1.1.1.1", "LOCALHOST",
	} {
		for _, form := range []string{
			`{"network":{"default":"deny","rules":[{"mode":"allow","patterns":["tcp://%:*"]}]}}`,
			`{"network":{"default":"deny","rules":[{"mode":"allow","operations":["fetch"],"patterns":["tcp://%:80"]}]}}`,
			`{"network":{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://a.example:1"]},{"mode":"allow","operations":["connect"],"patterns":["tcp://%:1-1000"]}]}}`,
			`{"network":{"default":"allow","rules":[{"mode":"allow","patterns":["tcp://example.com:80","tcp://%:80"]}]}}`,
		} {
			text := strings.ReplaceAll(form, "%", host)
			if !ask(t, s, created, text) {
				continue
			}
			accepted++
			if address := opensPrivate((*created)[0].Permissions); address != "" {
				t.Errorf("%s opens %s", text, address)
			}
		}
	}
	if accepted == 0 {
		t.Error("nothing is accepted")
	}
	// The check above finds an open address.
	s, created = newService(t, func(o *settings.Settings) {
		o.Permissions = mustParse(t, `{"network":{"default":"allow","rules":[{"mode":"allow","patterns":["tcp://10.0.0.0/8:*"]}]}}`)
	})
	if !ask(t, s, created, `{"network":{"default":"deny","rules":[{"mode":"allow","patterns":["tcp://10.0.0.1:*"]}]}}`) || opensPrivate((*created)[0].Permissions) != "10.0.0.1" {
		t.Error("a ceiling with a private network does not open it")
	}
}

func mustParse(t *testing.T, text string) policy.Permissions {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A request without a network scope may use the sandbox's own localhost, unless the server allows less.
func TestDefaultNetwork(t *testing.T) {
	const tcp = `{"network":{"rules":[{"mode":"allow","operations":["fetch","connect","listen"],"patterns":["tcp://localhost:*"]}]}}`
	none := policy.Scope{Default: policy.Deny}
	for ceiling, want := range map[string]policy.Scope{
		`{}`: policy.Loopback(), `{"network":"allow"}`: policy.Loopback(), `{"network":"deny"}`: none, tcp: mustParse(t, tcp).Network,
		`{"network":{"rules":[{"mode":"allow","patterns":["tcp://a.example:443"]}]}}`: none,
	} {
		s, created := newService(t, func(o *settings.Settings) { o.Permissions = mustParse(t, ceiling) })
		if !ask(t, s, created, `{"fs":"deny"}`) {
			t.Errorf("%s: refused", ceiling)
			continue
		}
		got := (*created)[0].Permissions
		if diff := cmp.Diff(want, got.Over(policy.Default()).Network); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", ceiling, diff)
		}
	}
}

// A request cannot allow operations that the ceiling denies, in any scope.
func TestCeilingOfEachScope(t *testing.T) {
	for _, c := range []struct{ ceiling, asked string }{
		{`{"network":"deny"}`, `{"network":"allow"}`},
		{`{"network":"deny"}`, `{"network":{"default":"deny","rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}}`},
		{`{"childProcess":"deny"}`, `{"childProcess":"allow"}`},
		{`{"process":"deny"}`, `{"process":"allow"}`},
		{`{"process":"deny"}`, `{"process":{"default":"allow","rules":[{"mode":"deny","operations":["signal"]}]}}`},
		{`{"fs":"deny"}`, `{"fs":"allow"}`},
		{`{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["write"],"paths":["/**"]}]}}`, `{"fs":"allow"}`},
		{`{"fs":{"rules":[{"mode":"allow","operations":["read","readdir"],"paths":["/workspace/**"]}]}}`, `{"fs":{"rules":[{"mode":"allow","operations":["read","write"],"paths":["/workspace/**"]}]}}`},
		{`{"env":"deny"}`, `{"env":"allow"}`},
		{`{"env":{"default":"allow","rules":[{"mode":"deny","names":["NODE_OPTIONS"]}]}}`, `{"env":"allow"}`},
	} {
		ceiling, err := policy.Parse([]byte(c.ceiling))
		if err != nil {
			if ceiling, err = policy.Parse([]byte(strings.ReplaceAll(c.ceiling, "names", "patterns"))); err != nil {
				t.Fatal(err)
			}
		}
		s, created := newService(t, func(o *settings.Settings) { o.Permissions = ceiling.Over(o.Permissions) })
		if ask(t, s, created, c.asked) {
			t.Errorf("ceiling %s: %s is accepted", c.ceiling, c.asked)
		}
		if !ask(t, s, created, "") {
			t.Errorf("ceiling %s: the default is refused", c.ceiling)
		}
		s, created = newService(t, nil)
		if !ask(t, s, created, c.asked) {
			t.Errorf("%s is refused without a ceiling", c.asked)
		}
	}
}

// Scopes that a request omits have the server's rules, and no network but localhost.
func TestOmittedScopes(t *testing.T) {
	for _, ceiling := range []string{`{}`, `{"childProcess":"deny"}`, `{"fs":"deny"}`, `{"process":"deny"}`, `{"env":"deny"}`, `{"network":"allow"}`} {
		most := mustParse(t, ceiling)
		s, created := newService(t, func(o *settings.Settings) { o.Permissions = most.Over(o.Permissions) })
		if !ask(t, s, created, "") {
			t.Fatalf("ceiling %s: the default is refused", ceiling)
		}
		got := (*created)[0].Permissions.Over(policy.Default())
		if got.Decide(policy.Network, "connect", "tcp://example.com:443").Allowed {
			t.Errorf("ceiling %s: the network is open", ceiling)
		}
		most.Network = policy.Default().Network
		if diff := cmp.Diff(most.Over(policy.Default()), got); diff != "" {
			t.Errorf("ceiling %s: want (-), got (+):\n%s", ceiling, diff)
		}
	}
}

// Text that is no valid JSON of permissions is refused.
func TestBadPermissions(t *testing.T) {
	s, created := newService(t, nil)
	for _, text := range []string{
		`{"network":"allow","network":"deny"}`, `{"Network":"allow"}`, `{"networks":"allow"}`, `"allow"`, `[]`, `null x`, `{"network":1}`, `{"network":{"default":"allow","rules":[{"mode":"maybe"}]}}`,
		`{"fs":{"rules":[{"mode":"allow","paths":["../etc"]}]}}`, `{"fs":{"rules":[{"mode":"allow","paths":["/a\u0000b"]}]}}`, strings.Repeat(`{"fs":`, 10000), "{\"network\":\"\xff\"}",
	} {
		if ask(t, s, created, text) {
			t.Errorf("%.80s is accepted", text)
		}
	}
}

// Nothing in a request chooses where a sandbox is made, and by what.
func TestOptionsOfRequest(t *testing.T) {
	s, created := newService(t, nil)
	_, err := s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:1"}}, &requestjson.SandboxRequest{Env: map[string]string{"NODE_OPTIONS": "--require /x"}})
	if err == nil || len(*created) != 1 {
		t.Fatal(err)
	}
	o := (*created)[0]
	if o.CgroupParent != "/gaol-test-service/uid-1" || o.Launcher != runtime.LauncherZygote || o.Store != "" || o.UnixSockets || o.AllowDegraded || o.AuditDenials || len(o.Bindings) > 0 || o.Proxy != "" || o.ProxyNames || o.MountUser != nil {
		t.Errorf("%+v", o)
	}
}

// Images and snapshots are names, and snapshots belong to the tenant.
func TestNames(t *testing.T) {
	s, created := newService(t, nil)
	for _, name := range []string{"..", "../x", "/etc", "sha256:aa", "SHA256:aa", "a/b", "a\x00", ".x", strings.Repeat("a", 200), "none"} {
		_, err := s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:1"}}, &requestjson.SandboxRequest{Tree: requestjson.Tree{Image: name}})
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != Invalid || len(*created) > 0 {
			t.Errorf("image %q: %v", name, err)
		}
	}
	for _, name := range []string{"", ":", "tenant-0.x", "a:b"} {
		*created = nil
		_, _ = s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:1"}}, &requestjson.SandboxRequest{Tree: requestjson.Tree{NodeModules: requestjson.NodeModules{HostPath: "snapshot:" + name}}})
		_, _ = s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:1"}}, &requestjson.SandboxRequest{Tree: requestjson.Tree{Snapshot: name}})
		for _, o := range *created {
			if prefix := (&Service{}).prefix(&tenant.Tenant{Name: "uid:1"}); o.Snapshot != "" && !strings.HasPrefix(o.Snapshot, prefix) || o.NodeModules != "" && !strings.HasPrefix(o.NodeModules, snapshotScheme+prefix) {
				t.Errorf("%+v", o)
			}
		}
	}
}
