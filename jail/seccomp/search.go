package seccomp

import (
	"maps"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// A span is numbers with one outcome: from its first up to where the next span of
// the list begins. The first of a list begins at 0.
type span struct {
	from uint32
	then *node
}

func spans(cases map[uint32]*node, otherwise *node) []span {
	list := []span{{0, otherwise}}
	for _, k := range slices.Sorted(maps.Keys(cases)) {
		list = put(list, span{k, cases[k]})
		if k < math.MaxUint32 {
			list = put(list, span{k + 1, otherwise})
		}
	}
	return list
}

// put adds a span, which may make the last one empty or be more of it.
func put(list []span, s span) []span {
	if last := len(list) - 1; list[last].from == s.from {
		list = list[:last]
	}
	if last := len(list) - 1; last >= 0 && list[last].then == s.then {
		return list
	}
	return append(list, s)
}

// A piece is spans with one outcome but for a few odd numbers: to ask for a number
// costs one comparison, where to cut it out takes two.
type piece struct {
	from  uint32
	usual *node
	odd   []span
}

// More odd numbers make the program shorter, and the way through it longer.
const mostOdd = 3

// search finds the outcome for a word: a balanced tree of pieces, then their odd
// numbers one by one.
func (g graph) search(w word, list []span) *node { return g.tree(w, pieces(list)) }

func (g graph) tree(w word, list []piece) *node {
	if len(list) > 1 {
		half := len(list) / 2
		return g.ask(w, unix.BPF_JGE, list[half].from, g.tree(w, list[half:]), g.tree(w, list[:half]))
	}
	n := list[0].usual
	for _, s := range slices.Backward(list[0].odd) {
		n = g.ask(w, unix.BPF_JEQ, s.from, s.then, n)
	}
	return n
}

// pieces cuts the list up so that the fewest comparisons are needed.
func pieces(list []span) []piece {
	const mostSpans = 2*mostOdd + 1
	type cut struct { // of the spans up to some place
		cost, start int
		last        piece
	}
	best := make([]cut, len(list)+1)
	for end := 1; end <= len(list); end++ {
		best[end].cost = math.MaxInt
		for start := max(0, end-mostSpans); start < end; start++ {
			p, ok := onePiece(list, start, end)
			if cost := best[start].cost + 1 + len(p.odd); ok && cost < best[end].cost {
				best[end] = cut{cost, start, p}
			}
		}
	}
	var all []piece
	for end := len(list); end > 0; end = best[end].start {
		all = append(all, best[end].last)
	}
	slices.Reverse(all)
	return all
}

// onePiece makes list[start:end] one piece, with the usual outcome that leaves the
// fewest odd numbers.
func onePiece(list []span, start, end int) (best piece, ok bool) {
	for _, s := range list[start:end] {
		odd, few := oddOnes(list, start, end, s.then)
		if few && (!ok || len(odd) < len(best.odd)) {
			best, ok = piece{list[start].from, s.then, odd}, true
		}
	}
	return best, ok
}

func oddOnes(list []span, start, end int, usual *node) (odd []span, few bool) {
	for i := start; i < end; i++ {
		if list[i].then == usual {
			continue
		}
		next := uint64(1) << 32
		if i+1 < len(list) {
			next = uint64(list[i+1].from)
		}
		if next-uint64(list[i].from) > uint64(mostOdd-len(odd)) {
			return nil, false
		}
		for n := uint64(list[i].from); n < next; n++ {
			odd = append(odd, span{uint32(n), list[i].then})
		}
	}
	return odd, true
}
