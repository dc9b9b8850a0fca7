package seccomp

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p := newProgram()
		cases, values := map[uint32]label{}, map[uint32]uint32{}
		edges := []uint32{0, math.MaxUint32}
		for range random.IntN(60) {
			k := random.Uint32() >> random.UintN(32)
			for i := range random.Uint32N(5) { // often consecutive numbers
				values[k+i] = random.Uint32N(3)
				cases[k+i] = p.action(values[k+i])
				edges = append(edges, k+i-1, k+i, k+i+1)
			}
		}
		otherwise := random.Uint32N(4)
		p.search(callNumber, spans(cases, p.action(otherwise)))
		program, err := p.finish()
		if err != nil {
			t.Fatal(err)
		}
		for _, nr := range edges {
			want := otherwise
			if v, exists := values[nr]; exists {
				want = v
			}
			if got, _ := run(t, program, guestCall{nr: nr}); got != want {
				t.Fatalf("%#x: %d, want %d", nr, got, want)
			}
		}
	}
}
