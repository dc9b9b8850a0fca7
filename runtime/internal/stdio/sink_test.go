package stdio

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines are the same however the stream is cut into chunks.
func TestLines(t *testing.T) {
	const text = "one\n\ntwo\nmuch too long\nrest"
	want := []string{"one", "", "two", "much", "rest"}
	for size := 1; size <= len(text); size++ {
		var got []string
		l := NewLines(0, func(line string) { got = append(got, line) })
		for at := 0; at < len(text); at += size {
			l.Write([]byte(text[at:min(at+size, len(text))]))
		}
		l.Flush()
		l.Flush()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("in chunks of %d (-want +got)\n%s", size, diff)
		}
	}
}

// A line without an end holds no more than its beginning.
func TestLinesBounded(t *testing.T) {
	l := NewLines(1, func(string) {})
	for range 1000 {
		l.Write([]byte(strings.Repeat("x", 1000)))
	}
	if len(l.rest) != 8 || cap(l.rest) > 64 {
		t.Errorf("holds %d bytes, capacity %d", len(l.rest), cap(l.rest))
	}
}

func TestCapture(t *testing.T) {
	full, passed := 0, ""
	c := &Capture{Limit: 3, OnLimit: func() { full++ }, OnOutput: func(b []byte) { passed += string(b) }}
	for _, step := range []struct {
		write, kept string
		truncated   bool
		full        int
	}{{"ab", "ab", false, 0}, {"c", "abc", false, 0}, {"de", "abc", true, 1}, {"f", "abc", true, 2}} {
		c.Write([]byte(step.write))
		if string(c.Kept) != step.kept || c.Truncated != step.truncated || full != step.full {
			t.Errorf("after %q: %q, truncated %v, %d calls", step.write, c.Kept, c.Truncated, full)
		}
	}
	if passed != "abcdef" {
		t.Errorf("passed on %q", passed)
	}
}
