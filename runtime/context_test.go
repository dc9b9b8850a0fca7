package runtime

import (
	"errors"
	"testing"
)

// A process that closes its channel as it ends, and is slow to, has ended by itself all the
// same.
func TestContextSlowEnd(t *testing.T) {
	exited := &ExitError{3}
	for _, tc := range []struct {
		res  *Result
		want string
	}{
		{&Result{ExitCode: 3}, exited.Error()},
		{&Result{Cause: CauseMemory, Signal: killedSignal}, "it used up its memory"},
		{&Result{Cause: CauseCanceled, Signal: killedSignal}, errSilent.Error()},
		{nil, errSilent.Error()},
	} {
		rt := &NodeRuntime{contexts: make(queue, 1), closing: make(chan struct{})}
		rt.contexts <- struct{}{}
		c := &Context{rt: rt, done: make(chan struct{}), why: errSilent}
		c.over(tc.res, nil)
		if err := c.Err(); !errors.Is(err, ErrContextEnded) || err.Error() != ErrContextEnded.Error()+": "+tc.want {
			t.Errorf("%+v: %v, want %s", tc.res, err, tc.want)
		}
		if told := c.whyText() != ""; told != (tc.want == errSilent.Error()) {
			t.Errorf("%+v: %q is told of it", tc.res, c.whyText())
		}
	}
}
