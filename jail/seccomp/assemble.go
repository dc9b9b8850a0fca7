package seccomp

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// assembler writes a program from its end to its start: jumps go forward only, so
// that where they lead is known by then.
type assembler struct {
	reversed []unix.SockFilter
	at       map[*node]int // where in reversed a node begins: behind its first instruction
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
		return nil, fmt.Errorf("%d instructions, the kernel takes %d", n, unix.BPF_MAXINSNS)
	}
	slices.Reverse(a.reversed)
	return a.reversed, nil
}

// postorder lists nodes behind those that they lead to. The no comes last, and so
// stands right behind its question in the program.
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

// loads finds the questions whose word isn't at hand already, from all of those
// that lead to them.
func loads(order []*node) map[*node]bool {
	needed, atHand := map[*node]bool{}, map[*node]word{}
	for _, n := range slices.Backward(order) {
		if n.jump == 0 {
			continue
		}
		needed[n] = atHand[n] != n.word
		for _, next := range []*node{n.yes, n.no} {
			if w, seen := atHand[next]; seen && w != n.word {
				atHand[next] = word{} // which no question is about
			} else {
				atHand[next] = n.word
			}
		}
	}
	return needed
}

func (a *assembler) write(n *node) error {
	if n.jump == 0 {
		a.push(unix.BPF_RET|unix.BPF_K, n.k)
	} else {
		a.bring(n.yes)
		a.bring(n.no)
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
		return unix.SockFilter{}, fmt.Errorf("jumps by %d and %d instructions don't fit", yes, no)
	}
	return unix.SockFilter{Code: unix.BPF_JMP | n.jump | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: n.k}, nil
}

// bring makes a node one that a comparison can jump to: if it is too far away, by
// a jump of its own, which may be as long as you like, or for an answer a copy.
func (a *assembler) bring(n *node) {
	const far = math.MaxUint8 - 1 // less one for what the other branch may need
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

// distance is how many instructions lie between the next one and a node.
func (a *assembler) distance(n *node) int { return len(a.reversed) - a.at[n] }

func (a *assembler) push(code uint16, k uint32) {
	a.reversed = append(a.reversed, unix.SockFilter{Code: code, K: k})
}
