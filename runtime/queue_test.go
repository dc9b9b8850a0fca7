package runtime

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 2)
		var mu sync.Mutex // guards order: two run in parallel
		var order []int
		for i := range 6 {
			go func() {
				if !q.enter(t.Context()) {
					t.Error("not admitted")
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Duration(i+1) * time.Second) // so that one leaves at a time
				q.leave()
			}()
			synctest.Wait()
		}
		mu.Lock()
		if len(order) != 2 {
			t.Errorf("%v were admitted at once", order)
		}
		mu.Unlock()
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		for i, got := range order {
			if got != i {
				t.Errorf("admitted in the order %v", order)
			}
		}
		if len(order) != 6 || len(q) != 0 {
			t.Errorf("%v were admitted, %d did not leave", order, len(q))
		}
	})
}

func TestQueueCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		q.enter(t.Context())
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if q.enter(short) {
			t.Error("admitted to a full queue with a canceled context")
		}
		q.leave()
		if !q.enter(t.Context()) {
			t.Error("a canceled caller holds a place")
		}
	})
}

// A slow start delays others only briefly, and releases its place once.
func TestQueueLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		q.enter(t.Context())
		first := q.leaveAfter(time.Second)
		began := time.Now()
		q.enter(t.Context())
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited for %v", waited)
		}
		second := q.leaveAfter(time.Second)
		first()
		if len(q) != 1 {
			t.Error("a late caller released the place of another")
		}
		second()
		second()
		time.Sleep(time.Hour)
		if len(q) != 0 {
			t.Errorf("%d did not leave", len(q))
		}
	})
}
