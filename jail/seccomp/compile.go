package seccomp

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
	nodes := map[uint32]*node{}
	restrictions := byName(t.restrictions)
	add := func(rows []Row, otherwise func(Row) *node) error {
		for name, r := range calls(rows) {
			n, err := g.refusals(slices.Concat(restrictions[name], r.Refuse), t.notify, otherwise(r))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if nr, exists := m.number(name); exists { // unknown calls get ENOSYS anyway
				if nodes[nr] != nil {
					return fmt.Errorf("%s: call %d is listed twice", name, nr)
				}
				nodes[nr] = n
			}
			delete(restrictions, name)
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
	which := g.search(callNumber, spansOfCalls(nodes, m, g.errno(unix.ENOSYS), kill))
	return assemble(g.test(callArch, unix.BPF_JEQ, m.audit, which, kill))
}

// byName joins the refusals of each call.
func byName(rows []Row) map[string][]Refusal {
	all := map[string][]Refusal{}
	for name, r := range calls(rows) {
		all[name] = append(all[name], r.Refuse...)
	}
	return all
}

func spansOfCalls(nodes map[uint32]*node, m machine, unknown, kill *node) []span {
	list := spans(nodes, unknown)
	if m.x32 {
		// -1 is not an x32 call: tracers set it to skip a call.
		list = append(list, span{x32Bit, kill}, span{math.MaxUint32, unknown})
	}
	return list
}
