package runtime

import "testing"

func TestOldSpaceMiB(t *testing.T) {
	for memory, want := range map[int64][2]int64{
		48: {16, 2}, 64: {18, 2}, 96: {44, 4}, 128: {64, 8}, 192: {127, 8}, 256: {168, 16}, 512: {376, 32}, 1024: {792, 64}, 8192: {7960, 64},
	} {
		old := oldSpaceMiB(memory << 20)
		if got := [2]int64{old, semiSpaceMiB(old)}; got != want {
			t.Errorf("%d MiB: old space and semi-space of %d MiB, want %d", memory, got, want)
		}
	}
	for memory := int64(80); memory < 4096; memory++ {
		old, next := oldSpaceMiB(memory<<20), oldSpaceMiB((memory+1)<<20)
		if total := 40 + old + 3*semiSpaceMiB(old); total > memory || next < old {
			t.Errorf("%d MiB: takes %d MiB; the old space has %d MiB, and %d MiB with 1 MiB more", memory, total, old, next)
		}
	}
}
