package member

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gaol/cmd/gaol/server/fleet/identity"
	"gaol/cmd/gaol/server/quota"
)

// Record is the description of a node that it stores in the engine.
type Record struct {
	ID      string `json:"id"`
	Start   string `json:"start"`   // names its start
	Machine string `json:"machine"` // the same after a new id
	Address string `json:"address"` // host:port of its listener for nodes
	Port    string `json:"port"`    // of its HTTP API; empty: it serves none by TCP
	Version string `json:"version"`

	// MinProtocol and MaxProtocol are the versions of the protocol between nodes that it understands.
	MinProtocol int `json:"minProtocol"`
	MaxProtocol int `json:"maxProtocol"`

	Processors int   `json:"processors"`
	Memory     int64 `json:"memoryBytes"` // of its runs together
	Engine     bool  `json:"engine"`      // it runs the fleet's engine
	Generation int64 `json:"generation"`  // of the engine that it uses
	Draining   bool  `json:"draining"`

	Sequence uint64 `json:"sequence"` // of its renewals
}

// Load is a node's hint for placement.
type Load struct {
	Busy      float64 `json:"busy"` // 0: idle; 1: all that its limits allow
	Sandboxes int     `json:"sandboxes"`
}

// State is the state of a node, as others see it.
type State string

const (
	Live     State = "live"
	Draining State = "draining" // it accepts nothing new
	Suspect  State = "suspect"  // it has not been heard of for some seconds
	Dead     State = "dead"     // for ever
	Unknown  State = "unknown"  // it has left, or never was a node
)

// Status describes a node.
type Status struct {
	Record
	State State   `json:"state"`
	Busy  float64 `json:"busy"`
	Why   string  `json:"why,omitempty"` // it is dead

	Sandboxes int `json:"sandboxes"`

	seen time.Time
}

const (
	renewEvery = 3 * time.Second // a record
	hintEvery  = time.Second

	// suspectAfter is how long a node may be silent, and deadAfter when others declare it dead that cannot reach it.
	suspectAfter = 3500 * time.Millisecond
	deadAfter    = 9 * time.Second

	// silence is the time without any change after which the engine was away, and not the nodes.
	silence = 5 * time.Second
)

// Table knows the nodes. Its methods may be called concurrently.
type Table struct {
	own string
	now func() time.Time

	mu      sync.Mutex
	nodes   map[string]*entry
	dead    map[string]string // why
	changed time.Time         // by any record
	fenced  func(why string)  // the own node is dead
}

// entry is the state of a member.
type entry struct {
	Record
	load   Load
	seen   time.Time
	placed int          // change of the requests in progress from this node to it, since the last hint
	uses   atomic.Int32 // of While that have not ended

	alive context.Context // until the node is dead, has left, or cannot be reached
	end   context.CancelFunc
}

// NewTable returns a table of a node. It calls fenced in a goroutine when the node is dead.
func NewTable(own string, fenced func(why string)) *Table {
	return &Table{own: own, now: time.Now, nodes: map[string]*entry{}, dead: map[string]string{}, fenced: fenced}
}

// Prefixes of keys of the engine.
const (
	nodeKey = "node."
	deadKey = "dead."
)

// ErrDead is the cause of what ends because a node is dead, has left, or cannot be reached.
var ErrDead = errors.New("the node is lost")

// ErrNoContact is the error of a probe that has got no answer from the machine, not even that its port is closed.
var ErrNoContact = errors.New("its machine does not answer")

// Limits of what another node can send, in bytes.
const (
	maxRecord = 4 << 10
	maxHint   = 64 << 10
	maxWhy    = 1 << 10
)

// Apply applies a change of the engine: a record of a node, or that it is dead. Without a value it was deleted. It ignores records
// that are not valid.
func (t *Table) Apply(key string, value []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Sub(t.changed) > silence {
		for _, n := range t.nodes {
			n.seen = now
		}
	}
	t.changed = now
	if id, ok := strings.CutPrefix(key, deadKey); ok {
		t.bury(id, value)
		return
	}
	id, ok := strings.CutPrefix(key, nodeKey)
	var r Record
	switch {
	case !ok || !identity.IsID(id) || t.dead[id] != "":
	case value == nil:
		t.forget(id)
	case len(value) <= maxRecord && json.Unmarshal(value, &r) == nil && r.ID == id:
		n := t.nodes[id]
		if n == nil {
			n = &entry{seen: now}
			n.alive, n.end = context.WithCancel(context.Background())
			t.nodes[id] = n
		}
		if n.Sequence != r.Sequence { // else a new watch has sent an old record again
			n.seen = now
		}
		n.Record = r
	}
}

// bury applies the record of a dead node, which the engine forgets after its certificate has expired.
//
// Preconditions: t.mu is held.
func (t *Table) bury(id string, value []byte) {
	if value == nil {
		delete(t.dead, id)
		return
	}
	var g Grave
	if err := json.Unmarshal(value, &g); err != nil {
		g.Why = err.Error()
	}
	if !identity.IsID(id) {
		return
	}
	why := cmp.Or(g.Why[:min(len(g.Why), maxWhy)], "unknown")
	if id == t.own && t.dead[id] == "" {
		go t.fenced(why)
	}
	t.dead[id] = why
	t.forget(id)
}

// forget forgets a node.
//
// Preconditions: t.mu is held.
func (t *Table) forget(id string) {
	if n := t.nodes[id]; n != nil {
		n.end()
		delete(t.nodes, id)
	}
}

// Hint applies the hint of a node. It ignores hints that are not valid.
func (t *Table) Hint(id string, text []byte) {
	var l Load
	if len(text) > maxHint || json.Unmarshal(text, &l) != nil || l.Busy < 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[id]; n != nil {
		n.load, n.seen, n.placed = l, t.now(), 0
	}
}

// IsDead reports whether a node is dead.
func (t *Table) IsDead(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead[id] != ""
}

// Get describes a node.
func (t *Table) Get(id string) Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why := t.dead[id]; why != "" {
		return Status{Record: Record{ID: id}, State: Dead, Why: why}
	}
	if n := t.nodes[id]; n != nil {
		return t.status(n)
	}
	return Status{Record: Record{ID: id}, State: Unknown}
}

// status describes a node.
//
// Preconditions: t.mu is held.
func (t *Table) status(n *entry) Status {
	s := Status{Record: n.Record, State: Live, Busy: n.load.Busy, Sandboxes: n.load.Sandboxes, seen: n.seen}
	switch {
	case n.ID != t.own && t.now().Sub(n.seen) > suspectAfter:
		s.State = Suspect
	case n.Draining:
		s.State = Draining
	}
	return s
}

// All describes all nodes by id, dead ones too.
func (t *Table) All() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Status
	for _, n := range t.nodes {
		all = append(all, t.status(n))
	}
	for id, why := range t.dead {
		all = append(all, Status{Record: Record{ID: id}, State: Dead, Why: why})
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// While returns a context that also ends when a node is dead, has left, or cannot be reached. The caller calls cancel once.
func (t *Table) While(ctx context.Context, id string) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[id]
	if n == nil {
		end(ErrDead)
		return ctx, func() {}
	}
	n.uses.Add(1)
	stop := context.AfterFunc(n.alive, func() { end(ErrDead) })
	return ctx, func() { n.uses.Add(-1); stop(); end(nil) }
}

// Alive returns a context that ends when a node is dead, has left, or cannot be reached.
func (t *Table) Alive(id string) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[id]; n != nil {
		return n.alive
	}
	return context.Background()
}

// disconnect ends the contexts of While of probed nodes without contact. It reports whether less than half of all are such nodes, or
// suspect and not probed yet, or there are only two: the own network works.
func (t *Table) disconnect(probed []Status, failed []error) (works bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	without := 0
	for id, n := range t.nodes {
		i := slices.IndexFunc(probed, func(s Status) bool { return s.ID == id })
		if i >= 0 && errors.Is(failed[i], ErrNoContact) {
			n.end()
			n.alive, n.end = context.WithCancel(context.Background())
			without++
		} else if i < 0 && t.status(n).State == Suspect {
			without++
		}
	}
	return 2*without < len(t.nodes) || len(t.nodes) == 2
}

// missed returns the nodes that may be dead, after long silence. If the engine is away, it is not steady, and they are those in use.
func (t *Table) missed() (list []Status, steady bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	steady = now.Sub(t.changed) <= silence
	for id, n := range t.nodes {
		if id != t.own && now.Sub(n.seen) > deadAfter && (steady || n.uses.Load() > 0) {
			list = append(list, t.status(n))
		}
	}
	return list, steady
}

// freeShare is the part of a node that is free for work that it receives itself; with less, others get some of it.
const freeShare = 0.25

// Pick returns the node for new work, whose end [Table.Ended] reports: the own one, if it is not busy, or else the less busy of two random others. It is empty if no
// node accepts work.
func (t *Table) Pick(ownBusy float64, draining bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !draining && ownBusy <= 1-freeShare {
		return t.own
	}
	var others []*entry
	for id, n := range t.nodes {
		if id != t.own && t.status(n).State == Live && n.Speaks() {
			others = append(others, n)
		}
	}
	best, busy := "", math.Inf(1)
	if !draining {
		best, busy = t.own, ownBusy
	}
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, n := range others[:min(2, len(others))] {
		if b := n.load.Busy + float64(n.placed)/float64(quota.SlotsPerProcessor*max(1, n.Processors)); b < busy {
			best, busy = n.ID, b
		}
	}
	if n := t.nodes[best]; n != nil {
		n.placed++
	}
	return best
}

// Ended ends a request for which Pick has returned another node.
func (t *Table) Ended(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[id]; n != nil && id != t.own {
		n.placed--
	}
}

// Others returns the ids of the other nodes with a common protocol.
func (t *Table) Others() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.nodes)), func(id string) bool { return id == t.own || !t.nodes[id].Speaks() })
}

// Versions of the protocol between nodes that this node understands. Paths for joins, renewals, drains and probes are in all of them.
const (
	OldestProtocol = 1
	Protocol       = 1
)

// Speaks reports whether this node and the other one understand a common version.
func (r *Record) Speaks() bool { return r.MinProtocol <= Protocol && OldestProtocol <= r.MaxProtocol }
