package jail

import (
	"os"
	"testing"
)

func TestOpenDirs(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, memory := openDirs([]int{os.Getpid()})
	for range before + 3 {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	want := memory + int64(before+3)*info.Size()*dirMemory
	if n, m := openDirs([]int{os.Getpid(), 1 << 30}); n != before+3 || m != want {
		t.Errorf("%d and %d bytes, want %d and %d", n, m, before+3, want)
	}
}
