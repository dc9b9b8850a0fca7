package seccomp

import (
	"math/rand/v2"
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

func TestLimits(t *testing.T) {
	chain := func(length int) ([]unix.SockFilter, error) {
		p := newProgram()
		n := p.action(unix.SECCOMP_RET_ALLOW)
		for k := range length {
			n = p.test(unix.BPF_JEQ, uint32(k), p.action(unix.SECCOMP_RET_KILL_PROCESS), n)
		}
		p.load(callNumber, n)
		return p.finish()
	}
	p, err := chain(4000) // and copies of the "kill" return
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
	if _, err := chain(unix.BPF_MAXINSNS); err == nil {
		t.Error("made more instructions than the kernel accepts")
	}
}

// Both branches are almost too far away, or one of them is.
func TestLongestJumps(t *testing.T) {
	for distance := 250; distance < 260; distance++ {
		for between := range 12 {
			for _, swap := range []bool{false, true} {
				p := newProgram()
				fill := func(n int) {
					for range n {
						p.push(unix.SockFilter{Code: opReturn, K: 9})
					}
				}
				yes := p.action(1)
				fill(between)
				no := p.load(callArch, p.test(unix.BPF_JEQ, 7, p.action(9), p.action(2))) // not a return
				fill(distance - 1 - between)
				if swap {
					yes, no = no, yes
				}
				p.load(callNumber, p.test(unix.BPF_JEQ, 5, yes, no))
				program, err := p.finish()
				if err != nil {
					t.Fatal(err)
				}
				for _, nr := range []uint32{5, 6} {
					want := uint32(2)
					if (nr == 5) != swap {
						want = 1
					}
					if got, _ := run(t, program, guestCall{nr: nr}); got != want {
						t.Errorf("%d, %d, %t: call %d: %d, want %d", distance, between, swap, nr, got, want)
					}
				}
			}
		}
	}
}
