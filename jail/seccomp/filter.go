package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	libseccomp "github.com/seccomp/libseccomp-golang"
)

// Filter is what one set of restrictions makes of the tables. It is shared by all
// who ask for that set, and not to be changed.
type Filter struct {
	// Program is an array of struct sock_filter in the machine's byte order.
	Program []byte
	// Notify says that the program asks a listener. It is to be loaded with
	// SECCOMP_FILTER_FLAG_NEW_LISTENER: without a listener such calls get ENOSYS.
	Notify bool

	refusals map[uint32][]Refusal // of the restrictions, by the call's number
}

// Compile gives the filter of Allowed and Denied with restrictions laid over
// them, for this machine's architecture: what the rows refuse is refused first, and
// the tables answer the rest. Several rows may have one name, and then refuse in
// their order; each call must be in a table. With notify, labelled refusals go to
// the filter's listener in place of giving their errno.
//
// A filter is made the first time and kept for the next who wants an equal one.
func Compile(rows []Row, notify bool) (*Filter, error) {
	return compiled.get(tables{Allowed, Denied, rows, notify})
}

var compiled = cache{filters: map[string]*Filter{}}

// mostKept filters of some 2 kB each are more than a program has policies.
const mostKept = 32

// cache keeps filters by all that their restrictions say.
type cache struct {
	mu      sync.Mutex
	filters map[string]*Filter
}

// get makes one filter at a time, so that those who want the same wait for it.
func (c *cache) get(t tables) (*Filter, error) {
	key := fmt.Sprintf("%t %#v", t.notify, t.over)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.filters[key]; f != nil {
		return f, nil
	}
	f, err := newFilter(t)
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	for old := range c.filters { // any: which are in use isn't known
		if len(c.filters) < mostKept {
			break
		}
		delete(c.filters, old)
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
		return nil, fmt.Errorf("compile: %w", err)
	}
	f := &Filter{}
	if f.Program, err = binary.Append(nil, binary.NativeEndian, p); err != nil {
		return nil, err
	}
	f.refusals, err = byNumber(m, t.over)
	for _, list := range f.refusals {
		f.Notify = f.Notify || t.notify && slices.ContainsFunc(list, func(r Refusal) bool { return r.Label != "" })
	}
	return f, err
}

// byNumber keeps copies, as what the rows point to is their owner's.
func byNumber(m machine, rows []Row) (map[uint32][]Refusal, error) {
	all := map[uint32][]Refusal{}
	for name, list := range byName(rows) {
		nr, err := m.number(name)
		if errors.Is(err, libseccomp.ErrSyscallDoesNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range list {
			list[i].Match = slices.Clone(list[i].Match)
			for j, match := range list[i].Match {
				list[i].Match[j].Values = slices.Clone(match.Values)
			}
		}
		all[nr] = list
	}
	return all, nil
}

// Refusal tells which labelled refusal answers a call of this architecture. False:
// none does; an unlabelled one may, or the tables.
func (f *Filter) Refusal(nr int, args [6]uint64) (Refusal, bool) {
	for _, r := range f.refusals[uint32(nr)] {
		if r.matches(args) {
			return r, r.Label != ""
		}
	}
	return Refusal{}, false
}
