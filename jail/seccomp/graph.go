package seccomp

import (
	"fmt"
	"math"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A node is a test of the call or the filter's return value.
type node struct {
	jump    uint16 // BPF_JEQ, BPF_JGE or BPF_JSET; 0: a return value
	word    word   // the left operand
	k       uint32 // the right operand, or the return value
	yes, no *node
}

// word is 32 bits of struct seccomp_data, under a mask.
type word struct{ offset, mask uint32 }

const allBits = math.MaxUint32

var (
	callNumber = word{0, allBits}
	callArch   = word{4, allBits}
)

// argument returns the halves of an argument, which are little-endian.
func argument(m Match) (low, high word) {
	offset := uint32(16 + 8*m.Arg)
	return word{offset, uint32(m.Mask)}, word{offset + 4, uint32(m.Mask >> 32)}
}

// A graph contains equal nodes only once: calls with the same refusals share code.
type graph map[node]*node

func (g graph) node(n node) *node {
	if g[n] == nil {
		g[n] = &n
	}
	return g[n]
}

func (g graph) action(action uint32) *node { return g.node(node{k: action}) }

func (g graph) errno(e syscall.Errno) *node {
	return g.action(unix.SECCOMP_RET_ERRNO | uint32(e))
}

func (g graph) test(w word, jump uint16, k uint32, yes, no *node) *node {
	if yes == no {
		return yes
	}
	// JSET needs no instruction for the mask.
	if jump == unix.BPF_JEQ && k == 0 && w.mask != allBits {
		return g.node(node{unix.BPF_JSET, word{w.offset, allBits}, w.mask, no, yes})
	}
	return g.node(node{jump, w, k, yes, no})
}

// refusals tests each refusal in order.
func (g graph) refusals(list []Refusal, notify bool, otherwise *node) (*node, error) {
	n := otherwise
	for i, r := range slices.Backward(list) {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("refusal %d: %w", i, err)
		}
		refused := g.errno(r.Errno)
		if notify && r.Label != "" {
			refused = g.action(unix.SECCOMP_RET_USER_NOTIF)
		}
		for _, m := range slices.Backward(r.Match) {
			refused = g.match(m, refused, n)
		}
		n = refused
	}
	return n, nil
}

// match tests the high half of an argument first, if the mask includes any of its bits,
// and then the low halves that belong to it.
func (g graph) match(m Match, yes, no *node) *node {
	if m.None {
		yes, no = no, yes
	}
	lows := map[uint32]map[uint32]*node{}
	for _, v := range m.Values {
		high := uint32(v >> 32)
		if lows[high] == nil {
			lows[high] = map[uint32]*node{}
		}
		lows[high][uint32(v)] = yes
	}
	low, high := argument(m)
	highs := map[uint32]*node{}
	for h, l := range lows {
		highs[h] = g.choose(low, l, no)
	}
	return g.choose(high, highs, no)
}

func (g graph) choose(w word, cases map[uint32]*node, otherwise *node) *node {
	if w.mask == 0 {
		return cases[0] // the only case: no value has bits outside of the mask, see check
	}
	return g.search(w, spans(cases, otherwise))
}
