package hostcall

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Calls of Do share the limits and the list of those on the control channel.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(t.Context(), nil, withDefaults(Limits{Calls: 5, Arguments: 10, Concurrent: 1, Timeout: time.Second}), nil)
		ok := func(context.Context) (int, error) { return 3, nil }
		codes := func(err error) string {
			if own, isOwn := errors.AsType[*Error](err); isOwn {
				return own.Code
			}
			return ""
		}
		if err := d.Do("a", 10, ok); err != nil {
			t.Error(err)
		}
		if err := d.Do("b", 11, nil); codes(err) != CodeArguments {
			t.Error(err)
		}
		if err := d.Do("c", 0, func(context.Context) (int, error) { panic("a secret") }); codes(err) != CodePanic {
			t.Error(err)
		}
		late := make(chan struct{})
		if err := d.Do("d", 0, func(context.Context) (int, error) { <-late; return 0, nil }); codes(err) != CodeTimeout {
			t.Error(err)
		}
		close(late)
		go func() {
			synctest.Wait()
			d.Stop()
		}()
		if err := d.Do("e", 0, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }); !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
		if err := d.Do("f", 0, ok); !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
		list, truncated := d.Records()
		if len(list) != 5 || truncated || list[0].Result != 3 || list[0].Arguments != 10 || list[4].Error != Unanswered {
			t.Errorf("%+v", list)
		}
	})
}
