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
	if err := add(t.denied, func(r Row) *node { return g.errno(cmp.Or(r.Errno, deniedErrno)) }); err != nil {
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

// assembler writes a program from its end to its start: jumps only go forward, so their
// targets are known.
type assembler struct {
	reversed []unix.SockFilter
	at       map[*node]int // index in reversed after a node's first instruction
	loads    map[*node]bool
}

func assemble(root *node) ([]unix.SockFilter, error) {
	order := postorder(root)
	a := assembler{at: map[*node]int{}, loads: loads(order)}
	for _, n := range order {
		if err := a.write(n); err != nil {
			return nil, err
		}
	}
	if n := len(a.reversed); n > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("%d instructions, the kernel accepts %d", n, unix.BPF_MAXINSNS)
	}
	slices.Reverse(a.reversed)
	return a.reversed, nil
}

// postorder lists nodes after their successors. The no branch is visited last, so it directly
// follows its test in the program.
func postorder(root *node) []*node {
	var order []*node
	seen := map[*node]bool{}
	var visit func(*node)
	visit = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		visit(n.yes)
		visit(n.no)
		order = append(order, n)
	}
	visit(root)
	return order
}

// loads returns the tests that must load their word, because not all tests that lead to
// them have loaded the same word.
func loads(order []*node) map[*node]bool {
	needed, loaded := map[*node]bool{}, map[*node]word{}
	for _, n := range slices.Backward(order) {
		if n.jump == 0 {
			continue
		}
		needed[n] = loaded[n] != n.word
		for _, next := range []*node{n.yes, n.no} {
			if w, seen := loaded[next]; seen && w != n.word {
				loaded[next] = word{} // equals no test's word
			} else {
				loaded[next] = n.word
			}
		}
	}
	return needed
}

func (a *assembler) write(n *node) error {
	if n.jump == 0 {
		a.push(unix.BPF_RET|unix.BPF_K, n.k)
	} else {
		a.reach(n.yes)
		a.reach(n.no)
		in, err := a.comparison(n)
		if err != nil {
			return err
		}
		a.reversed = append(a.reversed, in)
	}
	if a.loads[n] {
		if n.word.mask != allBits {
			a.push(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, n.word.mask)
		}
		a.push(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, n.word.offset)
	}
	a.at[n] = len(a.reversed)
	return nil
}

func (a *assembler) comparison(n *node) (unix.SockFilter, error) {
	yes, no := a.distance(n.yes), a.distance(n.no)
	if yes > math.MaxUint8 || no > math.MaxUint8 {
		return unix.SockFilter{}, fmt.Errorf("jumps by %d and %d instructions are too long", yes, no)
	}
	return unix.SockFilter{Code: unix.BPF_JMP | n.jump | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: n.k}, nil
}

// reach makes sure that a comparison can jump to a node. If the node is too far away, it
// adds an unconditional jump, whose distance is unlimited, or a copy of a return.
func (a *assembler) reach(n *node) {
	const far = math.MaxUint8 - 1 // minus one for an instruction that the other branch may add
	distance := a.distance(n)
	if distance <= far {
		return
	}
	if n.jump == 0 {
		a.push(unix.BPF_RET|unix.BPF_K, n.k)
	} else {
		a.push(unix.BPF_JMP|unix.BPF_JA, uint32(distance))
	}
	a.at[n] = len(a.reversed)
}

// distance returns the number of instructions between the next one and a node.
func (a *assembler) distance(n *node) int { return len(a.reversed) - a.at[n] }

func (a *assembler) push(code uint16, k uint32) {
	a.reversed = append(a.reversed, unix.SockFilter{Code: code, K: k})
}
