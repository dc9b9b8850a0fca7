package quota

import (
	"context"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Ledger keeps which part of each tenant's limits the nodes of a fleet may use: in the sum, not more than the limits. A node changes
// only its own grants, and never uses more than they are in the ledger. Package fleet implements it.
//
//	Reserve ── within the grants ──> the ledger is not asked
//	        └─ more ──> Change: + an eighth of the rest
//	                    └─ nothing is left ──> Recall ──> other nodes: Change: - what they do not use
type Ledger interface {
	// Node returns the id of this node in grants, empty if it may use nothing. Live returns how many nodes serve clients.
	Node() string
	Live() int

	// Change lets change change the grants of a tenant to nodes that are not lost, again when another node has changed them meanwhile.
	// After an error the change may have been made.
	Change(ctx context.Context, tenant string, change func(Grants)) error

	// Recall asks the other nodes to return grants, by Recalled.
	Recall(tenant string)
}

// Grants are the amounts that nodes may use, by node and the name of the limit.
type Grants map[string]map[string]float64

const (
	changeTime = time.Second            // for a change of the ledger
	recallTime = 200 * time.Millisecond // for others to return grants; for as long, others are refused without asking again
	keepTime   = 10 * time.Second       // for grants that are not used
	share      = 8                      // a node gets one part of the rest
	tolerance  = 1e-9                   // of sums of fractions
)

// grants are this node's part of a tenant's limits. Fields without a comment are guarded by Server.mu.
type grants struct {
	turn, change sync.Mutex // of one reservation that needs more, and of one change of the ledger
	again        time.Time  // when more can be asked for; guarded by turn

	node              string  // to which they were granted
	kept              bool    // the ledger may have some
	may, others, peak amounts // granted to this node, and to others; the most in use since unused ones were returned
}

// Share lets the nodes of a fleet share the limits that settings name for a tenant. It is called before the server is used, and Keep then.
func (s *Server) Share(l Ledger) { s.ledger, s.live = l, 1 }

// divide replaces each divided limit by this node's part. In named, it keeps the limits that the ledger shares.
func (s *Server) divide(l *Limits, named *amounts) {
	for i, n := range named {
		kind := reflect.TypeFor[Limits]().Field(i).Tag.Get("fleet")
		if f := reflect.ValueOf(l).Elem().Field(i); kind == "divided" && n > 0 {
			f.Set(reflect.ValueOf(min(n, max(1, n/float64(s.live)))).Convert(f.Type()))
		}
		if kind != "held" {
			named[i] = 0
		}
	}
}

// checkGrants returns an error if the node must get more grants for u.
//
// Preconditions: the server's lock is held.
func (r *Reservation) checkGrants(u amounts) error {
	a, g := r.account, r.account.granted
	if g == nil {
		return nil
	}
	valid := g.node != "" && g.node == r.server.ledger.Node()
	for i, limit := range a.shared {
		need := a.use[i] + u[i] - tolerance
		if limit > 0 && u[i] > 0 && (!valid || need > g.may[i] || need > limit-g.others[i] && !r.Moved.Load()) {
			return &Exceeded{Limit: names[i], RetryAfter: retryAfter}
		}
	}
	return nil
}

// obtain is grow with more grants.
func (r *Reservation) obtain(u amounts) error {
	g := r.account.granted
	g.turn.Lock()
	defer g.turn.Unlock()
	for wait := recallTime / 16; ; wait *= 2 {
		short, err := r.try(u)
		if !short || time.Now().Before(g.again) {
			return err
		}
		fits, failed := r.account.settle(u, r.Moved.Load())
		if failed != nil || wait >= recallTime {
			g.again = time.Now().Add(recallTime)
			return err
		}
		if !fits {
			r.server.ledger.Recall(r.account.name)
			time.Sleep(wait)
		}
	}
}

// settle changes the grants of this node. For u, it adds the missing amounts and an eighth of the rest. Without u, it returns amounts that were
// not used lately. It reports whether u fits into the limits; with must, u is added even if it does not.
func (a *Account) settle(u amounts, must bool) (fits bool, err error) {
	s := a.server
	s.mu.Lock()
	a = a.current()
	g := a.granted
	idle := u == amounts{} && !g.kept && (a.use == amounts{} || a.shared == amounts{})
	if !idle {
		a.turns++ // so that it is not forgotten
	}
	s.mu.Unlock()
	if idle {
		return true, nil
	}
	g.change.Lock()
	defer g.change.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), changeTime)
	defer cancel()
	var own amounts
	err = s.ledger.Change(ctx, a.name, func(all Grants) {
		s.mu.Lock()
		defer s.mu.Unlock()
		own, fits = a.plan(all, u, must)
		g.kept = true
		for i, n := range own {
			g.may[i] = min(g.may[i], n) // the rest is not used from now on
		}
		if all[g.node] = own.byName(); own == (amounts{}) || g.node == "" {
			delete(all, g.node)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	a.turns--
	if err == nil && g.node == s.ledger.Node() {
		g.may, g.kept = own, own != amounts{}
	}
	return fits, err
}

// plan returns the next grants of this node, which are at least the amounts in use.
//
// Preconditions: the server's lock is held.
func (a *Account) plan(all Grants, u amounts, must bool) (own amounts, fits bool) {
	g, node, more := a.granted, a.server.ledger.Node(), amounts{}
	if g.node != node {
		g.node, g.may = node, amounts{}
	}
	fits = true
	for i, limit := range a.shared {
		g.others[i] = 0
		for id, by := range all {
			if id != node {
				g.others[i] += max(0, by[names[i]])
			}
		}
		if limit == 0 {
			continue
		}
		need, room := a.use[i]+u[i], limit-g.others[i]
		if own[i] = min(g.may[i], room); u == (amounts{}) {
			own[i] = min(own[i], g.peak[i])
		}
		own[i] = max(own[i], a.use[i])
		if more[i] = own[i]; need > own[i] {
			more[i] = max(need, own[i]+math.Floor((room-own[i])/share))
			fits = fits && (must || need <= room+tolerance)
		}
	}
	if g.peak = a.use; fits {
		own = more
	}
	return own, fits
}

// Recalled returns grants of a tenant that are not in use. The node that needs them asks again.
func (s *Server) Recalled(tenant string) {
	a := s.Account(tenant)
	s.mu.Lock()
	a.granted.peak = a.use
	s.mu.Unlock()
	_, _ = a.settle(amounts{}, false) // without the ledger, grants stay
}

// Keep returns grants that are not used, or that exceed new limits, until ctx ends.
func (s *Server) Keep(ctx context.Context) {
	for ticks := time.Tick(keepTime); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		s.mu.Lock()
		s.setLive(s.ledger.Live())
		all := slices.Collect(maps.Values(s.accounts))
		s.mu.Unlock()
		for _, a := range all {
			if _, err := a.settle(amounts{}, false); err != nil {
				break
			}
		}
	}
}
