package seccomp

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := graph{}
		cases := map[uint32]*node{}
		edges := []uint32{0, math.MaxUint32}
		for range random.IntN(60) {
			k := random.Uint32() >> random.UintN(32)
			for i := range random.Uint32N(5) { // often runs of neighbours
				cases[k+i] = g.answer(random.Uint32N(3))
				edges = append(edges, k+i-1, k+i, k+i+1)
			}
		}
		otherwise := g.answer(random.Uint32N(4))
		p, err := assemble(g.search(callNumber, spans(cases, otherwise)))
		if err != nil {
			t.Fatal(err)
		}
		for _, nr := range edges {
			want := otherwise
			if n := cases[nr]; n != nil {
				want = n
			}
			if got, _ := run(t, p, guestCall{nr: nr}); got != want.k {
				t.Fatalf("%#x: %d, want %d", nr, got, want.k)
			}
		}
	}
}

// Where one number differs from its neighbours, one comparison is to do.
func TestPieces(t *testing.T) {
	g := graph{}
	a, b, c := g.answer(1), g.answer(2), g.answer(3)
	tests := []struct {
		name        string
		cases       map[uint32]*node
		pieces, odd int
	}{
		{"nothing", nil, 1, 0},
		{"the same", map[uint32]*node{5: a}, 1, 0},
		{"one", map[uint32]*node{5: b}, 1, 1},
		{"the first", map[uint32]*node{0: b}, 1, 1},
		{"the last", map[uint32]*node{math.MaxUint32: b}, 1, 1},
		{"neighbours", map[uint32]*node{5: b, 6: c}, 1, 2},
		{"scattered", map[uint32]*node{5: b, 10: b, 15: b, 20: b}, 2, 4},
		{"a range", map[uint32]*node{5: b, 6: b, 7: b, 8: b}, 3, 0},
	}
	for _, test := range tests {
		list, odd := pieces(spans(test.cases, a)), 0
		for _, p := range list {
			odd += len(p.odd)
		}
		if len(list) != test.pieces || odd != test.odd {
			t.Errorf("%s: %d pieces, %d odd numbers", test.name, len(list), odd)
		}
	}
}
