package seccomp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	libseccomp "github.com/seccomp/libseccomp-golang"
	"golang.org/x/sys/unix"
)

// tables are what a filter is made of.
type tables struct {
	allowed, denied []Row
	over            []Row // laid over both: they refuse first
	notify          bool  // labelled refusals ask the listener
}

// compile asks, in this order: which architecture, which call, which arguments.
//
// Kernels from 5.11 on try out, when the filter is loaded, which calls it allows
// whatever their arguments, and don't run it for those. They give up on a call at
// the first look at an argument, so that only guarded calls may get to one.
func compile(m machine, t tables) ([]unix.SockFilter, error) {
	g := graph{}
	calls := map[uint32]*node{}
	over := byName(t.over)
	take := func(rows []Row, otherwise func(Row) *node) error {
		for _, r := range rows {
			n, err := g.refusals(slices.Concat(over[r.Name], r.Refuse), t.notify, otherwise(r))
			if err == nil {
				err = decide(calls, m, r.Name, n)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			delete(over, r.Name)
		}
		return nil
	}
	if err := take(t.allowed, func(Row) *node { return g.answer(unix.SECCOMP_RET_ALLOW) }); err != nil {
		return nil, err
	}
	if err := take(t.denied, func(r Row) *node { return g.errno(cmp.Or(r.Errno, unix.EPERM)) }); err != nil {
		return nil, err
	}
	for name := range over { // is misspelt, and would take nothing away
		return nil, fmt.Errorf("%s: a restriction of a call that no table has", name)
	}
	kill := g.answer(unix.SECCOMP_RET_KILL_PROCESS)
	which := g.search(callNumber, spansOfCalls(calls, m, g.errno(unix.ENOSYS), kill))
	return assemble(g.ask(callArch, unix.BPF_JEQ, m.audit, which, kill))
}

// byName joins what several rows say about one call.
func byName(rows []Row) map[string][]Refusal {
	all := map[string][]Refusal{}
	for _, r := range rows {
		all[r.Name] = append(all[r.Name], r.Refuse...)
	}
	return all
}

// decide notes what is to happen to a call, if this architecture has it. Unknown
// calls get ENOSYS as it is.
func decide(calls map[uint32]*node, m machine, name string, n *node) error {
	nr, err := m.number(name)
	if errors.Is(err, libseccomp.ErrSyscallDoesNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, twice := calls[nr]; twice {
		return fmt.Errorf("call %d is listed twice", nr)
	}
	if nr >= x32Bit {
		return fmt.Errorf("call %d is one of x32", nr)
	}
	calls[nr] = n
	return nil
}

func spansOfCalls(calls map[uint32]*node, m machine, unknown, kill *node) []span {
	list := spans(calls, unknown)
	if m.x32 {
		// -1 is no call of x32, but what tracers set to have a call skipped.
		list = append(list, span{x32Bit, kill}, span{math.MaxUint32, unknown})
	}
	return list
}
