package harness

import (
	"bufio"
	"bytes"
	"os"
	"sync"
	"testing"
	"time"
)

// WaitFor polls until a condition holds, for a minute at most.
func WaitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// InTime calls try with increasing time limits, from least to about a minute, until try returns true. On a busy machine, a
// short limit may expire before the operation that it limits begins.
func InTime(least time.Duration, try func(limit time.Duration) (begun bool)) {
	for limit := least; !try(limit) && limit < time.Minute; limit *= 4 {
	}
}

// Settle measures until the result is at most most, for a minute, and returns the last
// result. The first measurement is late, because the host may not have read yet what a
// program has sent.
func Settle(most int64, measure func() int64) (n int64) {
	time.Sleep(100 * time.Millisecond)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if n = measure(); n <= most || time.Now().After(deadline) {
			return n
		}
	}
}

// Expect reads until a text has arrived, for a minute at most, and returns everything up to
// the end of the text.
func Expect(t testing.TB, r *bufio.Reader, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var mu sync.Mutex
	var all []byte
	done := make(chan error, 1)
	go func() {
		for {
			b, err := r.ReadByte()
			mu.Lock()
			if err == nil {
				all = append(all, b)
			}
			found := bytes.HasSuffix(all, []byte(text))
			mu.Unlock()
			if err != nil || found {
				done <- err
				return
			}
		}
	}()
	var err error
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		err = os.ErrDeadlineExceeded
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		t.Fatalf("no %q in the output, %v: %q", text, err, all)
	}
	return string(all)
}
