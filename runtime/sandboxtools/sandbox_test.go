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
		"a call":   {id: "a", calls: 1, lastUsed: longAgo},
		"just now": {id: "b", lastUsed: time.Now()},
		"closing":  {id: "c", lastUsed: longAgo},
	} {
		b.sandboxes[s.id] = s
		if name == "closing" {
			b.sandboxes[s.id] = nil
		}
		before := b.sandboxes[s.id]
		if b.expire(s); b.sandboxes[s.id] != before {
			t.Errorf("%s: expired", name)
		}
		delete(b.sandboxes, s.id)
	}
}
