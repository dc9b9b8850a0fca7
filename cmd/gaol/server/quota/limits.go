package quota

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Limits bound one tenant, or all tenants together. A zero field takes its default. Limits with the tag fleet bound a tenant in the whole
// fleet if the settings name them for it: a [Ledger] grants held ones, and nodes share divided ones equally.
type Limits struct {
	Sandboxes int     `json:"sandboxes,omitzero" fleet:"held"`         // open
	Runs      int     `json:"runs,omitzero" fleet:"held"`              // active or waiting, with processes and contexts
	Memory    int64   `json:"memoryBytes,omitzero" fleet:"held"`       // the memory limits of active runs together
	CPUs      float64 `json:"cpus,omitzero" fleet:"held"`              // the processor limits of active runs together
	Disk      int64   `json:"diskBytes,omitzero" fleet:"held"`         // the disk limits of sandboxes together
	Files     int64   `json:"files,omitzero" fleet:"held"`             // the limits of files of sandboxes together
	Requests  float64 `json:"requestsPerSec,omitzero" fleet:"divided"` // on average; twice as many in a burst
	Upload    int64   `json:"uploadBytes,omitzero"`                    // of one request

	Concurrent    int   `json:"concurrentRequests,omitzero"`         // requests without a complete response
	Bodies        int64 `json:"bodyBytes,omitzero"`                  // memory that these requests hold: see [ValueBytes]
	Snapshots     int   `json:"snapshots,omitzero"`                  // kept
	SnapshotBytes int64 `json:"snapshotBytes,omitzero"`              // of the files of all snapshots
	Images        int   `json:"images,omitzero"`                     // that tenants have built; 0 for a tenant: none
	ImageBytes    int64 `json:"imageBytes,omitzero"`                 // of all files of these images; files of the base count in each; 0 for a tenant: none
	Sessions      int   `json:"sessions,omitzero"`                   // open WebSockets of /v1/session
	BatchBytes    int64 `json:"batchBytes,omitzero" fleet:"divided"` // of requests and results of batch runs in an hour
	Connections   int   `json:"connections,omitzero" fleet:"held"`   // open ones to ports of guests, with requests that wait for one

	EgressConnections int `json:"egressConnections,omitzero" fleet:"held"` // open ones of guests to external hosts
	PendingConnects   int `json:"pendingConnects,omitzero"`                // to external hosts, without an answer yet; more wait
	PendingLookups    int `json:"pendingLookups,omitzero"`                 // of names for guests, without an answer yet; more wait
}

// ValueBytes is the cost of a JSON value towards [Limits] Bodies, beside its text: about the memory of a value
// in a tree of any values. The bodies of requests count, messages of sessions while they arrive, and the input of
// sessions that no guest has read.
const ValueBytes = 256

// DefaultLimits returns the limits of all tenants together on a machine with some bytes of
// memory for a process with some descriptors, and the limits of one tenant. A connect takes a descriptor, and
// a look-up two.
func DefaultLimits(memory int64, files int) (server, tenant Limits) {
	processors := goruntime.NumCPU()
	server = Limits{
		Sandboxes: 1000, Runs: 500,
		Memory: memory / 4 * 3, CPUs: float64(64 * processors), Disk: 64 << 30, Files: 66_000_000,
		Requests: 5000, Upload: 1 << 30, Concurrent: 4096, Bodies: 256 << 20,
		Snapshots: 1000, SnapshotBytes: 64 << 30, Images: 1000, ImageBytes: 64 << 30, Sessions: 1024, Connections: 2048, BatchBytes: 4 << 30,
		EgressConnections: 16384, PendingConnects: min(max(files/8, 16), 1024), PendingLookups: min(max(files/32, 16), 256),
	}
	tenant = Limits{
		Sandboxes: 100, Runs: 100,
		Memory: server.Memory / 2, CPUs: server.CPUs / 2, Disk: server.Disk / 2, Files: server.Files / 2,
		Requests: 500, Upload: 256 << 20, Concurrent: 1024, Bodies: 128 << 20,
		Snapshots: 100, SnapshotBytes: server.SnapshotBytes / 2, Sessions: 64, Connections: 512, BatchBytes: 1 << 30,
		EgressConnections: 4096, PendingConnects: server.PendingConnects / 2, PendingLookups: server.PendingLookups / 2,
	}
	return server, tenant
}

// fields is how many fields Limits has.
const fields = 20

// names are the names of the fields in JSON.
var names = func() (list [fields]string) {
	for i := range reflect.TypeFor[Limits]().NumField() {
		list[i], _, _ = strings.Cut(reflect.TypeFor[Limits]().Field(i).Tag.Get("json"), ",")
	}
	return list
}()

// Indices of fields.
var (
	bodies = slices.Index(names[:], "bodyBytes")
	runs   = slices.Index(names[:], "runs")
	memory = slices.Index(names[:], "memoryBytes")
)

// Or returns the limits with the fields of other where l has zero.
func (l Limits) Or(other Limits) Limits {
	for i := range names {
		if f := reflect.ValueOf(&l).Elem().Field(i); f.IsZero() {
			f.Set(reflect.ValueOf(other).Field(i))
		}
	}
	return l
}

// Check returns an error if a field is negative or no number.
func (l Limits) Check() error {
	for i, n := range l.amounts() {
		if !(n >= 0) || math.IsInf(n, 1) {
			return fmt.Errorf("%s: %v is not a limit", names[i], n)
		}
	}
	return nil
}

// Exceeded reports an exhausted quota.
type Exceeded struct {
	Limit string // the JSON name of the field, "openFiles", or "queue" for a run whose turn did not come

	// Server is true if all tenants together have exhausted it.
	Server bool

	// RetryAfter is when it may be free again; zero if the request can never be served.
	RetryAfter time.Duration
}

// Error names the limit.
func (e *Exceeded) Error() string {
	whose := "your"
	if e.Server {
		whose = "the server's"
	}
	if e.RetryAfter == 0 {
		return fmt.Sprintf("the request needs more than %s quota %s", whose, e.Limit)
	}
	return fmt.Sprintf("%s quota %s is exhausted", whose, e.Limit)
}

// Kind is the purpose of a slot.
type Kind int

// The kinds. The connections and look-ups of guests are limited by [Limits], too.
const (
	Starts   Kind = iota // of runs
	Creates              // of sandboxes: mostly work of the server itself, which no tenant's cgroup bounds
	Connects             // to external hosts
	Lookups              // of names for guests
	Texts                // of JSON that are large, while they arrive: they are work of the server itself, too
	Listings             // that hold much in memory
	Copies               // of the files of sandboxes to snapshots
	Builds               // of images: hashing and copying is work of the server itself
	kinds
)

// waits are how long a slot of each kind is waited for, the name of the limit then, and how long it is occupied at
// most; zero: until it is freed. A run that takes longer competes for processors by its tenant's cgroup. Resolvers in
// guests give up after five seconds.
var waits = [kinds]struct {
	limit      string
	wait, most time.Duration
}{
	Starts:   {"queue", 10 * time.Second, 250 * time.Millisecond},
	Creates:  {"queue", 10 * time.Second, 0},
	Connects: {"pendingConnects", 10 * time.Second, 0},
	Lookups:  {"pendingLookups", 3 * time.Second, 0},
	Texts:    {"queue", 10 * time.Second, 250 * time.Millisecond},
	Listings: {"queue", time.Minute, 0},
	Copies:   {"queue", 10 * time.Minute, 0},
	Builds:   {"queue", 10 * time.Second, 0},
}

// slots are the slots of each kind.
type slots [kinds]*semaphore.Weighted

// serverSlots returns the slots that all tenants share. There are more than a tenant has, so that one tenant cannot
// delay the runs of another.
func serverSlots(l Limits) (s slots) {
	processors := goruntime.NumCPU()
	for k, n := range [kinds]int{
		Starts: startSlots * processors, Creates: processors, Connects: l.PendingConnects, Lookups: l.PendingLookups,
		Texts: max(2, processors/2), Listings: math.MaxInt, Copies: math.MaxInt, Builds: 2,
	} {
		s[k] = semaphore.NewWeighted(int64(n))
	}
	return s
}

// tenantSlots returns the slots of one tenant. Work starts in the order in which it waits, so that other tenants do not
// wait for long. Few slots for listings and copies bound the memory and the disk bandwidth that a tenant uses.
func tenantSlots(l Limits) (s slots) {
	processors := goruntime.NumCPU()
	for k, n := range [kinds]int{
		Starts: startsOfTenant * processors, Creates: max(1, processors/2), Connects: l.PendingConnects, Lookups: l.PendingLookups,
		Texts: max(1, processors/4), Listings: 2, Copies: 2, Builds: 1,
	} {
		s[k] = semaphore.NewWeighted(int64(n))
	}
	return s
}

// Server holds the accounts of all tenants.
type Server struct {
	mu       sync.Mutex
	limits   Limits // of all together
	tenant   Limits // of one, unless special has others
	named    Limits // the fields of tenant that are not defaults
	special  map[string]Limits
	total    amounts // what all use
	requests *rate.Limiter
	accounts map[string]*Account
	sweepAt  int // accounts at which unused ones are forgotten
	slots    slots
	noTurns  bool
	observer Observer
	ledger   Ledger // nil without a fleet
	live     int    // nodes

	garbage   int64 // bytes released since memory was returned to the system
	returning bool  // a return, or the pause after it
}

// NewServer returns a server without tenants. Special overrides the limits of some tenants. Zero fields of
// tenant and special take the value of server; Images and ImageBytes stay zero.
func NewServer(server, tenant Limits, special map[string]Limits) *Server {
	s := &Server{accounts: map[string]*Account{}, sweepAt: minSweep, observer: Observer{func(*Exceeded) {}, func(time.Duration) {}}}
	s.Set(server, tenant, Limits{}, special)
	return s
}

// Observer has functions that a server calls, for metrics.
type Observer struct {
	Refused func(*Exceeded)     // a quota was exceeded
	Queued  func(time.Duration) // a run has waited for its turn, or until it gave up
}

// Observe sets the observer. It must be called before the server is used.
func (s *Server) Observe(o Observer) { s.observer = o }

// DisableTurns lets everything that the limits allow start without a turn. It is for a server with one
// tenant, and called before it is used.
func (s *Server) DisableTurns() { s.noTurns = true }

// Set replaces the limits. Reservations that exceed the new ones stay, and what waits keeps its place. Named has the fields of tenant
// that are not defaults.
func (s *Server) Set(server, tenant, named Limits, special map[string]Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits, s.tenant, s.named, s.special = server, tenant.Or(server), named, maps.Clone(special)
	s.tenant.Images, s.tenant.ImageBytes = tenant.Images, tenant.ImageBytes // 0 denies
	s.slots = serverSlots(server)
	s.requests = limiter(server.Requests)
	s.setLive(s.live)
	for _, a := range s.accounts {
		a.slots = tenantSlots(a.limits)
	}
}

// setLive sets the number of nodes that share the limits, and the limits of all accounts.
//
// Preconditions: s.mu is held.
func (s *Server) setLive(n int) {
	s.live = n
	for _, a := range s.accounts {
		before := a.limits.Requests
		if a.limits, a.shared = s.limitsOf(a.name); a.limits.Requests != before {
			a.requests = limiter(a.limits.Requests)
		}
	}
}

// limitsOf returns the limits of a tenant on this machine, and those that its fleet shares.
//
// Preconditions: s.mu is held.
func (s *Server) limitsOf(name string) (l Limits, shared amounts) {
	user, _, _ := strings.Cut(name, "@") // the rest is the user's machine
	own := s.special[user]
	if l = own.Or(s.tenant); s.ledger != nil {
		shared = own.Or(s.named).amounts()
		s.divide(&l, &shared)
	}
	return l, shared
}

func limiter(perSec float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSec), max(1, int(2*perSec)))
}

// SlotsPerProcessor is how many runs make a processor busy. Many of them wait for something.
const SlotsPerProcessor = 8

// Busy returns how busy the machine is with runs, by their number and the memory that they may use: 0 is not at all, and with 1 others
// should get new ones.
func (s *Server) Busy() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.total[runs]/float64(SlotsPerProcessor*goruntime.GOMAXPROCS(0)), s.total[memory]/float64(s.limits.Memory))
}

// Usage returns what each tenant uses now, by the names of limits in JSON.
func (s *Server) Usage() map[string]map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]map[string]float64{}
	for tenant, a := range s.accounts {
		all[tenant] = a.use.byName()
	}
	return all
}
