package seccomp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// manyRefusals returns rows with different refusals, whose program is too long for the
// jumps of comparisons.
func manyRefusals(n int) []Row {
	var rows []Row
	for name, r := range calls(Allowed) {
		if len(rows) == n {
			break
		}
		values := []uint64{uint64(len(rows)) << 4, uint64(len(rows))<<4 | 2, uint64(len(rows))<<4 | 5, uint64(len(rows)) << 36}
		r.Refuse = refuse(unix.EPERM, among(1, 1<<44-1, values...), notAmong(2, 0xff, 1, uint64(len(rows))))
		r.Calls = name
		rows = append(rows, r)
	}
	return rows
}

func TestLongJumps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{20, 30, 40, 100, 200} {
		rows := manyRefusals(n)
		s := newSubject(t, native(t), tables{allowed: rows, denied: Denied})
		t.Logf("%d instructions", len(s.program))
		for range 50_000 {
			c := guestCall{s.audit, random.Uint32N(600), anyArguments(random)}
			if r := s.allowed[c.nr]; r.Refuse != nil {
				values := r.Refuse[0].Match[0].Values
				c.args[1] = values[random.IntN(len(values))] ^ 1<<random.UintN(64)
				c.args[2] = random.Uint64N(256)
			}
			s.compare(t, c)
		}
	}
}

func TestAssembleLimits(t *testing.T) {
	g := graph{}
	chain := func(length int) *node {
		n := g.action(unix.SECCOMP_RET_ALLOW)
		for k := range length {
			n = g.test(callNumber, unix.BPF_JEQ, uint32(k), g.action(unix.SECCOMP_RET_KILL_PROCESS), n)
		}
		return n
	}
	p, err := assemble(chain(4000)) // and copies of the "kill" return
	if err != nil {
		t.Fatal(err)
	}
	for nr := range uint32(5000) {
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if nr < 4000 {
			want = unix.SECCOMP_RET_KILL_PROCESS
		}
		if got, _ := run(t, p, guestCall{nr: nr}); got != want {
			t.Fatalf("%d: %#x", nr, got)
		}
	}
	if _, err := assemble(chain(unix.BPF_MAXINSNS)); err == nil {
		t.Error("assembled more instructions than the kernel accepts")
	}
}

// Both branches are almost too far away.
func TestLongestJumps(t *testing.T) {
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET, K: k} }
	for distance := 250; distance < 260; distance++ {
		for _, yesAt := range []int{1, 2} {
			yes, no := &node{k: 1}, &node{k: 2}
			p := make([]unix.SockFilter, distance)
			p[yesAt-1], p[2-yesAt] = ret(yes.k), ret(no.k)
			root := &node{jump: unix.BPF_JEQ, word: callNumber, k: 5, yes: yes, no: no}
			a := assembler{reversed: p, at: map[*node]int{yes: yesAt, no: 3 - yesAt}, loads: map[*node]bool{root: true}}
			if err := a.write(root); err != nil {
				t.Errorf("%d, %d: %v", distance, yesAt, err)
				continue
			}
			slices.Reverse(a.reversed)
			for nr, want := range map[uint32]uint32{5: yes.k, 6: no.k} {
				if got, _ := run(t, a.reversed, guestCall{nr: nr}); got != want {
					t.Errorf("%d, %d: call %d: %d, want %d", distance, yesAt, nr, got, want)
				}
			}
		}
	}
}

// A jump that does not fit in 8 bits is an error.
func TestJumpTooLong(t *testing.T) {
	for distance, fits := range map[int]bool{255: true, 256: false, 257: false} {
		yes, no := &node{k: 1}, &node{k: 2}
		a := assembler{reversed: make([]unix.SockFilter, distance), at: map[*node]int{yes: 0, no: distance}}
		in, err := a.comparison(&node{jump: unix.BPF_JEQ, yes: yes, no: no})
		if (err == nil) != fits || fits && int(in.Jt) != distance {
			t.Errorf("%d: %+v, %v", distance, in, err)
		}
	}
}
