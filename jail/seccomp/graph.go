package seccomp

import (
	"fmt"
	"math"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A node is a question about the call, or the answer to the kernel.
type node struct {
	jump    uint16 // BPF_JEQ, BPF_JGE or BPF_JSET; 0 for an answer
	word    word   // is compared
	k       uint32 // with this; or the answer
	yes, no *node
}

// word is 32 bits of struct seccomp_data, under a mask.
type word struct{ offset, mask uint32 }

const allBits = math.MaxUint32

var (
	callNumber = word{0, allBits}
	callArch   = word{4, allBits}
)

// argument gives both halves of an argument, little-endian.
func argument(m Match) (low, high word) {
	offset := uint32(16 + 8*m.Arg)
	return word{offset, uint32(m.Mask)}, word{offset + 4, uint32(m.Mask >> 32)}
}

// A graph has its nodes, equal ones only once: calls with the same refusals share
// their code.
type graph map[node]*node

func (g graph) node(n node) *node {
	if g[n] == nil {
		g[n] = &n
	}
	return g[n]
}

func (g graph) answer(action uint32) *node { return g.node(node{k: action}) }

func (g graph) errno(e syscall.Errno) *node {
	return g.answer(unix.SECCOMP_RET_ERRNO | uint32(e))
}

func (g graph) ask(w word, jump uint16, k uint32, yes, no *node) *node {
	if yes == no {
		return yes
	}
	// "Any of these bits" takes no instruction for the mask.
	if jump == unix.BPF_JEQ && k == 0 && w.mask != allBits {
		return g.node(node{unix.BPF_JSET, word{w.offset, allBits}, w.mask, no, yes})
	}
	return g.node(node{jump, w, k, yes, no})
}

// refusals asks for each in turn. None matches most calls.
func (g graph) refusals(list []Refusal, notify bool, otherwise *node) (*node, error) {
	n := otherwise
	for i, r := range slices.Backward(list) {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("refusal %d: %w", i, err)
		}
		refused := g.errno(r.Errno)
		if notify && r.Label != "" {
			refused = g.answer(unix.SECCOMP_RET_USER_NOTIF)
		}
		n = g.refusal(r, refused, n)
	}
	return n, nil
}

func (g graph) refusal(r Refusal, refused, otherwise *node) *node {
	n := refused
	for _, m := range slices.Backward(r.Match) {
		n = g.match(m, n, otherwise)
	}
	return n
}

// match looks at the high half of an argument first, if the mask has any of it,
// and then for the low halves that go with it.
func (g graph) match(m Match, yes, no *node) *node {
	if m.Test == NoneOf {
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
		return cases[0] // which check makes sure of: no value has bits outside of the mask
	}
	return g.search(w, spans(cases, otherwise))
}
