package snippets

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// Callers are served in order, and a canceled caller frees its place.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := make(queue, 1)
		if err := q.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		errGone := errors.New("gone")
		var order []int
		var cancels []context.CancelCauseFunc
		for i := range 6 {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancels = append(cancels, cancel)
			go func() {
				if err := q.enter(ctx); err != nil {
					if !errors.Is(err, errGone) {
						t.Error(err)
					}
					return
				}
				order = append(order, i)
				q.leave()
			}()
			synctest.Wait() // it waits
		}
		cancels[0](errGone)
		cancels[3](errGone)
		synctest.Wait()
		q.leave()
		synctest.Wait()
		if want := []int{1, 2, 4, 5}; !slices.Equal(order, want) {
			t.Errorf("served %v, want %v", order, want)
		}
	})
}

func TestQueueCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := make(queue, 1).enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled caller: %v", err)
	}
}
