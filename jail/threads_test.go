package jail

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// A live run needs no thread of the host: Go aborts a process that has 10,000.
func TestRunsCostNoThreads(t *testing.T) {
	const runs, most = 300, 60
	j := newJail(t)
	before := threads(t)
	for range runs {
		_, read := start(t, j, "sleep 100")
		defer read()
	}
	more := threads(t) - before
	t.Logf("%d live runs, %d more threads", runs, more)
	if more > most {
		t.Errorf("want at most %d", most)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nThreads:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
