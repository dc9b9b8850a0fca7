package quota

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"gaol/runtime"
)

// wantQuota reports whether err is nil; otherwise it must name a quota.
func wantQuota(t *testing.T, err error, name string) bool {
	t.Helper()
	if e, ok := errors.AsType[*runtime.NetworkQuotaError](err); err != nil && (!ok || e.Quota != name) {
		t.Errorf("%v, want %s", err, name)
	}
	return err == nil
}

// TestEgress: connections above a quota are refused, and connects and look-ups wait, for a bounded time. Another tenant has
// its own share.
func TestEgress(t *testing.T) {
	for _, c := range []struct {
		use   runtime.NetworkUse
		limit string
		set   func(l *Limits, n int)
	}{
		{runtime.NetworkConnection, "egressConnections", func(l *Limits, n int) { l.EgressConnections = n }},
		{runtime.NetworkConnect, "pendingConnects", func(l *Limits, n int) { l.PendingConnects = n }},
		{runtime.NetworkLookup, "pendingLookups", func(l *Limits, n int) { l.PendingLookups = n }},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, tenant := large, large
			c.set(&server, 3)
			c.set(&tenant, 2)
			s := NewServer(server, tenant, nil)
			var refused []Exceeded
			s.Observe(Observer{Refused: func(e *Exceeded) { refused = append(refused, *e) }})
			a, b := s.Account("a"), s.Account("b")
			var releases []func()
			for _, use := range []struct {
				account *Account
				allowed bool
			}{{a, true}, {a, true}, {a, false}, {b, true}, {b, false}} {
				release, err := use.account.Egress(t.Context(), c.use)
				if wantQuota(t, err, c.limit) != use.allowed {
					t.Errorf("%s of %s: %v", c.use, use.account.name, err)
				}
				if err == nil {
					releases = append(releases, release)
				}
			}
			if len(refused) != 2 || refused[0].Server || !refused[1].Server || refused[0].Limit != c.limit {
				t.Errorf("refused %+v", refused)
			}
			if c.use != runtime.NetworkConnection {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := a.Egress(ctx, c.use); !errors.Is(err, context.Canceled) {
					t.Errorf("canceled: %v", err)
				}
				c.set(&tenant, 3)
				c.set(&server, 4)
				s.Set(server, tenant, Limits{}, nil)
				release, err := a.Egress(t.Context(), c.use)
				if err != nil {
					t.Error(err)
				}
				releases = append(releases, release)
			}
			for _, release := range releases {
				release()
			}
			wantUnused(t, s)
		})
	}
}

// TestHold: memory that a reservation holds is released with it, and nothing is reserved afterwards.
func TestHold(t *testing.T) {
	s := NewServer(large, large, nil)
	r, err := s.Account("a").Reserve(Limits{Concurrent: 1, Bodies: 5})
	if err := errors.Join(err, r.Hold(10), r.Hold(-3)); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage()["a"]; u["bodyBytes"] != 12 {
		t.Errorf("%+v", u)
	}
	r.Release()
	r.Release()
	if err := errors.Join(r.Hold(7), r.Hold(-7)); err != nil {
		t.Error(err)
	}
	wantUnused(t, s)
}
