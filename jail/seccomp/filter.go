package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// Filter is the filter for a set of restrictions. Callers share it and must not modify it.
type Filter struct {
	// Program is an array of struct sock_filter in the machine's byte order.
	Program []byte
	// Notify reports whether the program sends calls to a listener. If so, load it with
	// SECCOMP_FILTER_FLAG_NEW_LISTENER: without a listener such calls get ENOSYS.
	Notify bool

	refusals map[uint32][]Refusal // of the restrictions, by call number
}

// Compile returns the filter of Allowed and Denied with restrictions, for this machine's
// architecture. The restrictions' refusals take precedence over the tables. Several
// restrictions may have the same call, and apply in order; each call must be in a table.
// Their rows must not be modified later.
// With notify, labelled refusals go to the filter's listener instead of returning their
// errno.
//
// Filters are cached.
func Compile(restrictions []Row, notify bool) (*Filter, error) {
	return compiled.get(tables{Allowed, Denied, restrictions, notify})
}

var compiled = cache{filters: map[string]*Filter{}}

// maxFilters of some 3 kB each exceed the number of policies in a program.
const maxFilters = 32

// cache contains filters by the text of their restrictions.
type cache struct {
	mu      sync.Mutex
	filters map[string]*Filter
}

// get compiles one filter at a time, so that concurrent calls for the same filter share
// it.
func (c *cache) get(t tables) (*Filter, error) {
	key := fmt.Sprintf("%t %#v", t.notify, t.restrictions)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.filters[key]; f != nil {
		return f, nil
	}
	f, err := newFilter(t)
	if err != nil {
		return nil, err
	}
	if len(c.filters) == maxFilters {
		clear(c.filters) // which are in use is unknown
	}
	c.filters[key] = f
	return f, nil
}

func newFilter(t tables) (*Filter, error) {
	m, err := nativeMachine()
	if err != nil {
		return nil, err
	}
	p, err := compile(m, t)
	if err != nil {
		return nil, fmt.Errorf("seccomp: compile: %w", err)
	}
	f := &Filter{refusals: map[uint32][]Refusal{}}
	f.Program, _ = binary.Append(nil, binary.NativeEndian, p) // fails for other types only
	for name, list := range byName(t.restrictions) {
		if nr, exists := m.number(name); exists {
			f.refusals[nr] = list
			f.Notify = f.Notify || t.notify && slices.ContainsFunc(list, func(r Refusal) bool { return r.Label != "" })
		}
	}
	return f, nil
}

// Refusal returns the labelled refusal that applies to a call of this architecture. It
// returns false if none does; an unlabelled refusal or the tables may still refuse the
// call.
func (f *Filter) Refusal(nr int, args [6]uint64) (Refusal, bool) {
	for _, r := range f.refusals[uint32(nr)] {
		if r.matches(args) {
			return r, r.Label != ""
		}
	}
	return Refusal{}, false
}
