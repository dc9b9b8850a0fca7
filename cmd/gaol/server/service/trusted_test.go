package service

import (
	"testing"
	"time"

	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// A trusted client's runs have the default time limit unless it asks for another, and its sandboxes are
// in no tenant's cgroup.
func TestTrusted(t *testing.T) {
	s := New(Options{Settings: settings.Trusted(), CgroupParent: "/gaol-test"})
	sb := &Sandbox{service: s}
	for asked, want := range map[int64]time.Duration{0: runtime.DefaultTimeout, 1: time.Millisecond, settings.Trusted().RunTimeoutMs: 365 * 24 * time.Hour} {
		if got, err := sb.timeout(requestjson.Timeout{Ms: asked}); got != want || err != nil {
			t.Errorf("timeout %d: %v, %v", asked, got, err)
		}
	}
	o, err := s.optionsWithoutMounts(&tenant.Tenant{Name: "uid:0"}, requestjson.Tree{Image: "0123456789ab", Snapshot: "built", HostPorts: []int{80}}, policy.Permissions{}, "")
	if err != nil || o.CgroupParent != "/gaol-test" || o.Image != "0123456789ab" || o.Snapshot != "built" || len(o.HostPorts) != 1 || !o.Permissions.IsZero() {
		t.Errorf("%+v, %v", o, err)
	}
	account := s.Account(&tenant.Tenant{Name: "uid:0"})
	l := runtime.DefaultLimits()
	for range 1000 { // more than any machine has room or turns for
		if _, err := account.Admit(t.Context(), l.Memory<<10, l.CPUs); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
