package egress

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"gaol/policy"
)

// uses is a quota that refuses one use, and counts the others.
type uses struct {
	mu      sync.Mutex
	refused Use
	open    map[Use]int
	most    map[Use]int
}

func (u *uses) take(_ context.Context, use Use) (release func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if use == u.refused {
		return nil, &QuotaError{"of the test"}
	}
	u.open[use]++
	u.most[use] = max(u.most[use], u.open[use])
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.open[use]--
	}, nil
}

// TestQuota: a server asks the quota for each connection, connect and look-up, and reports refusals as denied.
func TestQuota(t *testing.T) {
	const rules = `{"rules":[{"mode":"allow","patterns":["tcp://v4.example.com:7"]}]}`
	for _, refused := range []Use{"", UseConnection, UseConnect, UseLookup} {
		t.Run(string(refused), func(t *testing.T) {
			quota := &uses{open: map[Use]int{}, most: map[Use]int{}}
			w := newWorld(t, rules, Limits{}, 7)
			w.client = NewClient(w.client.rules, Limits{}, quota.take, w.client.observe).Part(policyOf(t, rules), Limits{}, Observer{})
			w.listen(publicV4, 7, echo("hello"))
			address := netip.MustParseAddr(w.address("v4.example.com"))
			quota.mu.Lock()
			quota.refused = refused
			quota.mu.Unlock()
			got, err := w.tryExchange(address.String(), 7, "")
			e := w.waitEvent(func(e Event) bool { return e.Operation == "connect" })
			if refused == "" {
				if got != "hello" || err != nil || e.Outcome != Closed {
					t.Errorf("%q, %v, %+v", got, err, e)
				}
			} else if got != "" || e.Outcome != Denied || e.Limit != "quota.of the test" || e.Rule != -1 {
				t.Errorf("%q, %v, %+v", got, err, e)
			}
			w.server.Close()
			quota.mu.Lock()
			defer quota.mu.Unlock()
			if refused == "" && (quota.most[UseConnection] != 1 || quota.most[UseConnect] != 1 || quota.most[UseLookup] != 1) {
				t.Errorf("at most %v", quota.most)
			}
			for use, n := range quota.open {
				if n != 0 {
					t.Errorf("%d of %s are not released", n, use)
				}
			}
		})
	}
}

// TestQuotaOfLookups: a refused look-up is denied.
func TestQuotaOfLookups(t *testing.T) {
	quota := &uses{refused: UseLookup}
	w := newWorld(t, `{"rules":[{"mode":"allow","patterns":["tcp://v4.example.com:7"]}]}`, Limits{})
	w.client = NewClient(w.client.rules, Limits{}, quota.take, w.client.observe)
	if reply := w.ask("v4.example.com", dns.TypeA); reply.Rcode != dns.RcodeRefused {
		t.Errorf("%v", reply)
	}
	if e := w.waitEvent(func(e Event) bool { return e.Operation == "dns" }); e.Outcome != Denied || e.Limit != "quota.of the test" {
		t.Errorf("%+v", e)
	}
	if n := w.names.Asked("v4.example.com"); n != 0 {
		t.Errorf("the resolver was asked %d times", n)
	}
}

func policyOf(t *testing.T, rules string) *policy.Egress {
	t.Helper()
	p, err := policy.Parse([]byte(`{"network":` + rules + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return policy.NewEgress(p.Network)
}
