package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// A slow start delays others only briefly, and releases its place once.
func TestQueueLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := semaphore.NewWeighted(1)
		first := acquired(t, q)
		began := time.Now()
		second := acquired(t, q)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited for %v", waited)
		}
		first()
		if q.TryAcquire(1) {
			t.Error("a late caller released the place of another")
		}
		second()
		second()
		time.Sleep(time.Hour)
		if !q.TryAcquire(1) {
			t.Error("the place was not released")
		}
	})
}

// acquired waits for a place, which it returns after a second.
func acquired(t *testing.T, q *semaphore.Weighted) (release func()) {
	t.Helper()
	if err := q.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return releaseAfter(q, time.Second)
}
