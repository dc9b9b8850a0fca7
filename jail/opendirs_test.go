package jail

import (
	"os"
	"testing"
)

func TestMostOfOneDir(t *testing.T) {
	dir := t.TempDir()
	before := mostOfOneDir([]int{os.Getpid()})
	for range before + 3 {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if n := mostOfOneDir([]int{os.Getpid(), 1 << 30}); n != before+3 {
		t.Errorf("%d, want %d", n, before+3)
	}
}
