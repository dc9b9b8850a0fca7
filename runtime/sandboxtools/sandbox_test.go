package sandboxtools

import (
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
