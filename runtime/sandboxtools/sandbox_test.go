package sandboxtools

import (
	"strings"
	"testing"
	"time"
)

// A sandbox in use, or used recently, does not expire even if its timer has fired.
func TestExpire(t *testing.T) {
	b := newTestToolbox(t, Options{IdleLimit: time.Minute})
	longAgo := time.Now().Add(-time.Hour)
	for name, s := range map[string]*sandbox{
		"a call":   {state: live, calls: 1, lastUsed: longAgo},
		"just now": {state: live, lastUsed: time.Now()},
		"creating": {state: creating, lastUsed: longAgo},
		"closing":  {state: closing, lastUsed: longAgo},
	} {
		before := s.state
		if b.expire(s); s.state != before {
			t.Errorf("%s: expired", name)
		}
	}
}

// A file that grows after Stat is not read beyond the limit.
func TestReadUpTo(t *testing.T) {
	for in, want := range map[string]bool{"": true, "abc": true, "abcd": true, "abcde": false, strings.Repeat("x", 1000): false} {
		data, complete, err := readUpTo(strings.NewReader(in), 4)
		if err != nil || complete != want || string(data) != in[:min(len(in), 4)] {
			t.Errorf("%.10q: %q, %v, %v", in, data, complete, err)
		}
	}
}
