package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	libseccomp "github.com/seccomp/libseccomp-golang"
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
// restrictions may have the same name, and apply in order; each call must be in a table.
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
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	for old := range c.filters { // arbitrary ones: which are in use is unknown
		if len(c.filters) < maxFilters {
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
	f.refusals, err = byNumber(m, t.restrictions)
	for _, list := range f.refusals {
		f.Notify = f.Notify || t.notify && slices.ContainsFunc(list, func(r Refusal) bool { return r.Label != "" })
	}
	return f, err
}

// byNumber copies the refusals, as callers own the rows.
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
