package quota

import (
	goruntime "runtime"
	"testing"
	"time"
)

// Memory that large requests have held is returned to the system soon after they have ended, and not each time.
func TestReturnMemory(t *testing.T) {
	a := NewServer(large, large, nil).Account("a")
	collections := func() uint32 {
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	before := collections()
	request := func(bytes int64) {
		r, err := a.Reserve(Limits{Concurrent: 1, Bodies: bytes})
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	isReturning := func() bool {
		a.server.mu.Lock()
		defer a.server.mu.Unlock()
		return a.server.returning
	}
	request(muchReleased / 2)
	request(muchReleased / 2)
	if isReturning() {
		t.Error("memory is returned after little has been released")
	}
	r, err := a.Reserve(Limits{Concurrent: 1, Bodies: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Hold(-1); err != nil || !isReturning() {
		t.Errorf("%v; memory is not returned", err)
	}
	request(muchReleased)
	for collections() == before { // until the test's time limit
		time.Sleep(10 * time.Millisecond)
	}
}
