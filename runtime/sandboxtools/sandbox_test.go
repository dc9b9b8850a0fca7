package sandboxtools

import (
	"strings"
	"testing"
	"time"
)

// A sandbox that is used, or was just now, does not end, also if its timer has fired.
func TestExpire(t *testing.T) {
	b := newBox(t, Options{IdleLimit: time.Minute})
	long := time.Now().Add(-time.Hour)
	for name, s := range map[string]*sandbox{
		"a call":   {state: live, calls: 1, used: long},
		"just now": {state: live, used: time.Now()},
		"making":   {state: making, used: long},
		"ending":   {state: ending, used: long},
	} {
		before := s.state
		if b.expire(s); s.state != before {
			t.Errorf("%s: it ended", name)
		}
	}
}

// A file that has grown since its size was asked for is no longer read for that.
func TestReadUpTo(t *testing.T) {
	for in, want := range map[string]bool{"": true, "abc": true, "abcd": true, "abcde": false, strings.Repeat("x", 1000): false} {
		data, whole, err := readUpTo(strings.NewReader(in), 4)
		if err != nil || whole != want || string(data) != in[:min(len(in), 4)] {
			t.Errorf("%.10q: %q, %v, %v", in, data, whole, err)
		}
	}
}
