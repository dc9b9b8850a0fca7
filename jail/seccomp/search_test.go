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
			for i := range random.Uint32N(5) { // often consecutive numbers
				cases[k+i] = g.action(random.Uint32N(3))
				edges = append(edges, k+i-1, k+i, k+i+1)
			}
		}
		otherwise := g.action(random.Uint32N(4))
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
