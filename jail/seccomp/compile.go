package seccomp

import (
	"cmp"
	"fmt"
	"maps"
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
	p := newProgram()
	outcomes := map[uint32]label{}
	restrictions := byName(t.restrictions)
	add := func(rows []Row, otherwise func(Row) label) error {
		for name, r := range calls(rows) {
			n, err := p.refusals(slices.Concat(restrictions[name], r.Refuse), t.notify, otherwise(r))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if nr, exists := m.number(name); exists { // unknown calls get ENOSYS anyway
				if _, twice := outcomes[nr]; twice {
					return fmt.Errorf("%s: call %d is listed twice", name, nr)
				}
				outcomes[nr] = n
			}
			delete(restrictions, name)
		}
		return nil
	}
	if err := add(t.allowed, func(Row) label { return p.action(unix.SECCOMP_RET_ALLOW) }); err != nil {
		return nil, err
	}
	if err := add(t.denied, func(r Row) label { return p.errno(cmp.Or(r.Errno, deniedErrno)) }); err != nil {
		return nil, err
	}
	for name := range restrictions { // misspelt, and without effect
		return nil, fmt.Errorf("%s: a restriction of a call that is in no table", name)
	}
	kill := p.action(unix.SECCOMP_RET_KILL_PROCESS)
	which := p.search(callNumber, spansOfCalls(outcomes, m, p.errno(unix.ENOSYS), kill))
	p.load(callArch, p.test(unix.BPF_JEQ, m.audit, which, kill))
	return p.finish()
}

// byName joins the refusals of each call.
func byName(rows []Row) map[string][]Refusal {
	all := map[string][]Refusal{}
	for name, r := range calls(rows) {
		all[name] = append(all[name], r.Refuse...)
	}
	return all
}

func spansOfCalls(outcomes map[uint32]label, m machine, unknown, kill label) []span {
	list := spans(outcomes, unknown)
	if m.x32 {
		// -1 is not an x32 call: tracers set it to skip a call.
		list = append(list, span{x32Bit, kill}, span{math.MaxUint32, unknown})
	}
	return list
}

// refusals tests each refusal in order.
func (p *program) refusals(list []Refusal, notify bool, otherwise label) (label, error) {
	n := otherwise
	for i, r := range slices.Backward(list) {
		if err := r.check(); err != nil {
			return 0, fmt.Errorf("refusal %d: %w", i, err)
		}
		refused := p.errno(r.Errno)
		if notify && r.Label != "" {
			refused = p.action(unix.SECCOMP_RET_USER_NOTIF)
		}
		for _, m := range slices.Backward(r.Match) {
			refused = p.match(m, refused, n)
		}
		n = refused
	}
	return n, nil
}

// match tests the high half of an argument first, if the mask includes any of its bits,
// and then the low halves that belong to it.
func (p *program) match(m Match, yes, no label) label {
	if m.None {
		yes, no = no, yes
	}
	lows := map[uint32]map[uint32]label{}
	for _, v := range m.Values {
		high := uint32(v >> 32)
		if lows[high] == nil {
			lows[high] = map[uint32]label{}
		}
		lows[high][uint32(v)] = yes
	}
	low, high := argument(m)
	highs := map[uint32]label{}
	for _, h := range slices.Sorted(maps.Keys(lows)) { // equal tables have equal programs
		highs[h] = p.choose(low, lows[h], no)
	}
	return p.choose(high, highs, no)
}

func (p *program) choose(w word, cases map[uint32]label, otherwise label) label {
	if w.mask == 0 {
		return cases[0] // the only case: no value has bits outside of the mask, see check
	}
	return p.search(w, spans(cases, otherwise))
}
