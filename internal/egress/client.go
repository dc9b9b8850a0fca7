package egress

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"gaol/policy"
)

// Limits bound the use of one client, as package runtime documents them. A zero field sets no limit.
type Limits struct {
	Connections, ConnectionsPerSec, LookupsPerSec int
	BytesIn, BytesOut                             int64
}

// Connects and questions of a client and its parts that have no answer yet. More wait: they take descriptors of
// this process.
const (
	maxDials   = 128
	maxPending = 32
)

// Usage counts a client's use of the network so far.
type Usage struct {
	Connections int64 // that the rules allow
	Lookups     int64
	Denied      int64 // connections and look-ups that were refused
	BytesIn     int64 // from servers to the guest
	BytesOut    int64
}

// An Observer gets the events of a client. Its fields may be nil.
type Observer struct {
	// Event gets an event for each connection that ends or is refused, and for each refused
	// look-up. It must not block.
	Event func(Event)

	// Wait is called before a connection is served, and may block until there is room for
	// its event. The client's limits bound how many connections wait.
	Wait func()
}

// A Client is a part of the guest with separate rules, such as one run. Its methods are
// safe for concurrent use.
type Client struct {
	parent  *Client // may be nil
	rules   *policy.Egress
	limits  Limits
	observe Observer
	quota   Quota // of a client without parent; may be nil

	connects, lookups *rate.Limiter
	dials, pending    turns

	mu    sync.Mutex
	open  map[*connection]struct{}
	ended bool
	usage Usage // without the bytes of open connections
}

// NewClient returns a client. The quota bounds the clients of several servers, instead of the bounds of this process. It
// may be nil.
func NewClient(rules *policy.Egress, l Limits, q Quota, o Observer) *Client {
	return &Client{
		rules: rules, limits: l, observe: o, quota: q,
		connects: limiter(l.ConnectionsPerSec), lookups: limiter(l.LookupsPerSec),
		dials:   newTurns(maxDials, q.turns(UseConnect, ownDials)),
		pending: newTurns(maxPending, q.turns(UseLookup, ownPending)),
		open:    map[*connection]struct{}{},
	}
}

// Part returns a client for a part of c. Its usage counts for both, and the limits of both
// hold. Both observers get its events.
func (c *Client) Part(rules *policy.Egress, l Limits, o Observer) *Client {
	p := NewClient(rules, l, nil, o)
	p.parent, p.dials, p.pending = c, c.dials, c.pending
	return p
}

// limiter allows n events a second, and bursts of n.
func limiter(n int) *rate.Limiter {
	if n <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(n), n)
}

// Usage returns the client's usage so far.
func (c *Client) Usage() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total()
}

// total returns the usage with that of open connections.
//
// Preconditions: c.mu is held.
func (c *Client) total() Usage {
	u := c.usage
	for conn := range c.open {
		in, out := conn.bytes()
		u.BytesIn, u.BytesOut = u.BytesIn+in, u.BytesOut+out
	}
	return u
}

// End reports the open connections as closed, and nothing afterwards. The guest must have ended.
// Its connections continue for lingerTimeout, so that the last data it sent arrives.
func (c *Client) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	for conn := range c.open {
		if conn.allowed {
			c.tell(conn.event(Closed))
		}
		conn.linger()
	}
	c.ended = true
}

// tell reports an event. The caller holds the lock.
func (c *Client) tell(e Event) {
	if !c.ended && c.observe.Event != nil {
		c.observe.Event(e)
	}
}

// connect counts a new connection. It returns the name of the limit that the connection
// would exceed, or "".
func (c *Client) connect(conn *connection) (limit string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch l := c.limits; {
	case l.Connections > 0 && len(c.open) >= l.Connections:
		return "connections"
	case l.BytesIn > 0 && c.total().BytesIn >= l.BytesIn:
		return "bytesIn"
	case l.BytesOut > 0 && c.total().BytesOut >= l.BytesOut:
		return "bytesOut"
	case !c.connects.Allow():
		return "connectionsPerSec"
	}
	if c.parent != nil {
		if limit := c.parent.connect(conn); limit != "" {
			return limit
		}
	} else if c.quota != nil {
		release, err := c.quota(conn.ctx, UseConnection)
		if err != nil {
			return cmp.Or(quotaOf(err), "connections")
		}
		conn.release = release
	}
	c.open[conn] = struct{}{}
	if c.ended {
		conn.linger()
	}
	if conn.allowed {
		c.usage.Connections++
	}
	return ""
}

// A single connection needs large buffers for speed over long distances; many share about the
// same memory, of which the relay has only some.
const (
	minBuffer    = 64 << 10
	maxBuffer    = 4 << 20
	totalBuffers = 64 << 20
)

// buffer returns the size of the buffers of the next connection to a server.
func (c *Client) buffer() int {
	for c.parent != nil {
		c = c.parent
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(max(totalBuffers/max(len(c.open), 1), minBuffer), maxBuffer)
}

// each calls f for c and the clients that contain it, with the lock of each.
func (c *Client) each(f func(*Client)) {
	for ; c != nil; c = c.parent {
		c.mu.Lock()
		f(c)
		c.mu.Unlock()
	}
}

// disconnect ends a connection, and reports it.
func (c *Client) disconnect(conn *connection, e Event) {
	if conn.release != nil {
		conn.release()
	}
	c.each(func(c *Client) {
		delete(c.open, conn)
		c.usage.BytesIn, c.usage.BytesOut = c.usage.BytesIn+e.BytesIn, c.usage.BytesOut+e.BytesOut
		c.report(e)
	})
}

// lookUp counts a look-up. It returns the name of the limit that it exceeds, or "".
func (c *Client) lookUp() (limit string) {
	c.each(func(c *Client) {
		if limit != "" {
			return
		}
		c.usage.Lookups++
		if !c.lookups.Allow() {
			limit = "lookupsPerSec"
		}
	})
	return limit
}

// deny counts and reports something that was refused before it began.
func (c *Client) deny(e Event) { c.each(func(c *Client) { c.report(e) }) }

// report counts and reports an event. The caller holds the lock.
func (c *Client) report(e Event) {
	if e.Outcome == Denied {
		c.usage.Denied++
	}
	c.tell(e)
}

// Outcome is the result of a connection or a look-up.
type Outcome string

// The outcomes.
const (
	Closed      Outcome = "closed"      // both sides ended it
	Denied      Outcome = "denied"      // by a rule, or a limit
	Refused     Outcome = "refused"     // by the server
	Unreachable Outcome = "unreachable" // no route to the server, or its name does not resolve
	TimedOut    Outcome = "timeout"     // the server did not accept it in time
	Failed      Outcome = "failed"      // anything else, such as a reset
)

// An Event describes a connection that has ended, or something that was refused.
type Event struct {
	Operation policy.Operation // connect or dns
	Host      string           // the name that was looked up; "" for an address that was not
	Address   netip.AddrPort   // the server's, or the guest's destination if it was not dialed; zero for dns
	Port      uint16           // zero for dns
	Rule      int              // of the network scope; -1 for its default
	Limit     string           // the limit that refused it; "" for a rule
	Why       string           // another reason, such as another server name; or ""
	Resolved  bool             // denied because Host resolves to Address

	BytesIn, BytesOut int64
	Duration          time.Duration
	Outcome           Outcome
}

// turns bound how many operations happen at the same time: of one client, of the clients that contain
// it, and of this process. Each element waits for a turn. No element bounds nothing.
type turns []func(context.Context) (release func(), err error)

// Each dial takes a descriptor of this process, and each question two. Together they leave most descriptors
// to the rest, and the limits of one client leave turns to others.
var (
	ownDials   = newTurns(max(16, min(1024, openFiles()/8)))
	ownPending = newTurns(max(16, min(256, openFiles()/32)))
)

// ownWork bounds how many connections and questions of sandboxes use processors of this process. Without
// it a thousand that are ready to run delay all else that this process does by their sum. One of each
// server takes part, so that servers take turns.
var ownWork = newTurns(max(1, goruntime.GOMAXPROCS(0)/2))

func openFiles() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return 1024
	}
	return int(min(files.Cur, 1<<20))
}

// newTurns returns turns for n at the same time, which take the others, too.
func newTurns(n int, others ...turns) turns {
	slots := semaphore.NewWeighted(int64(n))
	own := turns{func(ctx context.Context) (func(), error) {
		if slots.Acquire(ctx, 1) != nil {
			return nil, context.Cause(ctx)
		}
		return func() { slots.Release(1) }, nil
	}}
	return slices.Concat(append([]turns{own}, others...)...)
}

// acquire waits for all turns. The caller releases them. The turns of the parts are first, so that a
// client that waits for its own occupies none of the others'.
func (t turns) acquire(ctx context.Context) (release func(), err error) {
	var held []func()
	release = func() {
		for _, r := range slices.Backward(held) {
			r()
		}
	}
	for _, take := range t {
		r, err := take(ctx)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, r)
	}
	return release, nil
}

// Use is a kind of use that a [Quota] bounds.
type Use string

// The uses.
const (
	UseConnection Use = "connection" // open
	UseConnect    Use = "connect"    // to a server, without an answer yet
	UseLookup     Use = "lookup"     // a question to the host's resolver, without an answer yet
)

// A Quota bounds the use by the clients of several servers together. It returns a [*QuotaError] if a quota is
// used up, for a connection without waiting.
type Quota func(context.Context, Use) (release func(), err error)

// QuotaError reports an exhausted quota.
type QuotaError struct{ Quota string }

// Error returns the name of the limit in an [Event].
func (e *QuotaError) Error() string { return "quota." + e.Quota }

// quotaOf returns the name of the quota that has caused an error, or "".
func quotaOf(err error) string {
	if e, ok := errors.AsType[*QuotaError](err); ok {
		return e.Error()
	}
	return ""
}

// turns returns the quota's turns, or else this process's.
func (q Quota) turns(u Use, own turns) turns {
	if q == nil {
		return own
	}
	return turns{func(ctx context.Context) (func(), error) { return q(ctx, u) }}
}
