package jail

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A start that is killed at any moment leaves no process, not even a zombie: pid 1 could not
// end, and Close would wait for it.
func TestStartIsKilled(t *testing.T) {
	j := newJail(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const starts = 80
	began := time.Now()
	output(t, j, "true")
	whole := time.Since(began)
	killed := 0
	for i := range starts {
		ctx, cancel := context.WithTimeout(t.Context(), whole*time.Duration(i)/starts)
		p, err := j.Start(ctx, Command{
			Program: Program{Args: []string{"/bin/sh", "-c", "sleep 100"}, Dir: "/", Files: []*os.File{null, null, null}}, OpenFiles: 64,
		})
		cancel()
		if err != nil {
			killed++
			continue
		}
		p.Kill()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	if killed == 0 {
		t.Error("no start was killed: this test proves nothing")
	}
	if left := zombies(t); len(left) > 0 {
		t.Errorf("%d starts were killed and left %v", killed, left)
	}
}

// zombies returns the children of this process that have ended and are not reaped.
func zombies(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		var pid, parent int
		var name, state string
		_, _ = fmt.Sscan(string(text), &pid, &name, &state, &parent) // none of our names has blanks
		if state == "Z" && parent == os.Getpid() {
			found = append(found, name)
		}
	}
	return found
}
