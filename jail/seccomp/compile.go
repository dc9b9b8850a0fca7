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

// tables are the input of compile.
type tables struct {
	allowed, denied []Row
	restrictions    []Row // take precedence over both
	notify          bool  // labelled refusals go to the listener
}

// compile tests, in this order, the architecture, the call and the arguments.
//
// When a filter is loaded, kernels from 5.11 on determine which calls it allows whatever
// their arguments, and do not run it for those. They stop at the first load of an argument,
// so the program must load one only for calls with refusals.
func compile(m machine, t tables) ([]unix.SockFilter, error) {
	g := graph{}
	calls := map[uint32]*node{}
	restrictions := byName(t.restrictions)
	add := func(rows []Row, otherwise func(Row) *node) error {
		for _, r := range rows {
			n, err := g.refusals(slices.Concat(restrictions[r.Name], r.Refuse), t.notify, otherwise(r))
			if err == nil {
				err = addCall(calls, m, r.Name, n)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			delete(restrictions, r.Name)
		}
		return nil
	}
	if err := add(t.allowed, func(Row) *node { return g.action(unix.SECCOMP_RET_ALLOW) }); err != nil {
		return nil, err
	}
	if err := add(t.denied, func(r Row) *node { return g.errno(cmp.Or(r.Errno, unix.EPERM)) }); err != nil {
		return nil, err
	}
	for name := range restrictions { // misspelt, and without effect
		return nil, fmt.Errorf("%s: a restriction of a call that is in no table", name)
	}
	kill := g.action(unix.SECCOMP_RET_KILL_PROCESS)
	which := g.search(callNumber, spansOfCalls(calls, m, g.errno(unix.ENOSYS), kill))
	return assemble(g.test(callArch, unix.BPF_JEQ, m.audit, which, kill))
}

// byName joins the refusals of rows with the same name.
func byName(rows []Row) map[string][]Refusal {
	all := map[string][]Refusal{}
	for _, r := range rows {
		all[r.Name] = append(all[r.Name], r.Refuse...)
	}
	return all
}

// addCall adds the node for a call, if this architecture has the call. Unknown calls get
// ENOSYS anyway.
func addCall(calls map[uint32]*node, m machine, name string, n *node) error {
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
		return fmt.Errorf("call %d is an x32 call", nr)
	}
	calls[nr] = n
	return nil
}

func spansOfCalls(calls map[uint32]*node, m machine, unknown, kill *node) []span {
	list := spans(calls, unknown)
	if m.x32 {
		// -1 is not an x32 call: tracers set it to skip a call.
		list = append(list, span{x32Bit, kill}, span{math.MaxUint32, unknown})
	}
	return list
}
