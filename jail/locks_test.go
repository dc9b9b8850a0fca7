package jail

import "testing"

func TestLockOwner(t *testing.T) {
	for line, want := range map[string]int{
		"1: POSIX  ADVISORY  WRITE 1234 00:1a:5 0 EOF": 1234,
		"17: -> POSIX  ADVISORY  READ 77 fe:00:12 0 1": 77,
		"2: FLOCK  ADVISORY  WRITE 9 00:1a:5 0 EOF":    9,
		"3: OFDLCK ADVISORY  WRITE -1 00:1a:5 0 EOF":   0,
		"4: LEASE  ACTIVE    READ 12 00:1a:5 0 EOF":    12,
		"5: POSIX  ADVISORY  WRITE x 00:1a:5 0 EOF":    0,
		"6: POSIX":    0,
		"6: -> POSIX": 0,
		"":            0,
	} {
		if got := lockOwner([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func TestSlabMemory(t *testing.T) {
	if n, err := slabMemory(); err != nil || n < 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestLockWatchGrowth(t *testing.T) {
	w := lockWatch{}
	for i, look := range []struct {
		slab int64
		want bool
	}{
		{100 << 20, false},
		{107 << 20, false},
		{108 << 20, true},  // 8 MiB more than at first
		{115 << 20, false}, // counted since
		{90 << 20, false},
		{98 << 20, true}, // 8 MiB more than the least
	} {
		if got := w.grown(look.slab); got != look.want {
			t.Errorf("look %d: %t", i, got)
		}
	}
}
