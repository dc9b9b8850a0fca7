package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gaol/internal/wire"
)

// A call that times out gets its error at its deadline, whether its function was called or not.
func TestCallsLate(t *testing.T) {
	const limit = 10 * time.Second
	inBubble(t, Limits{Timeout: limit, Concurrent: 2}, func(t *testing.T, c *testCalls) {
		began := time.Now()
		for i := range 6 { // one per second
			if err := c.call(gateFunction, fmt.Sprintf("[%d]", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for i := range 6 {
			time.Sleep(time.Until(began.Add(limit + time.Duration(i)*time.Second - time.Millisecond)))
			if n := len(c.guest.answers(t)); n != i {
				t.Errorf("%d results just before the deadline of call %d", n, i)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if text := c.guest.answers(t)[uint32(i)+1]; !strings.Contains(text, CodeTimeout) {
				t.Errorf("call %d: %q", i, text)
			}
		}
		if len(c.queue) > 0 || len(c.pending) > 0 || c.bytes != 0 {
			t.Errorf("%d in the queue, %d pending", len(c.queue), len(c.pending))
		}
		close(c.callee.gate)
		synctest.Wait()
		if n := len(c.guest.answers(t)); n != 6 || len(c.callee.began) != 2 {
			t.Errorf("%d results, %q were called", n, c.callee.began)
		}
		if err := c.call(echoFunction, `[]`); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := c.guest.answers(t)[7]; got != `[]` {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// A result at the deadline is neither lost nor sent twice. A later one is discarded.
func TestCallsAtTheLimit(t *testing.T) {
	for _, after := range []time.Duration{time.Second - 1, time.Second, time.Second + 1} {
		inBubble(t, Limits{Timeout: time.Second}, func(t *testing.T, c *testCalls) {
			if err := c.call(gateFunction, `[]`); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(after)
			close(c.callee.gate)
			synctest.Wait()
			got := c.guest.answers(t)[1]
			if late := strings.Contains(got, CodeTimeout); late != (after >= time.Second) {
				t.Errorf("after %v: %s", after, got)
			}
		})
	}
}

// After End no call starts, and no result is sent.
func TestCallsEnd(t *testing.T) {
	inBubble(t, Limits{Concurrent: 2}, func(t *testing.T, c *testCalls) {
		for range 5 {
			if err := c.call(waitFunction, `[]`); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.call(echoFunction, `[]`); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		c.Stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("End took %v although the functions obey their contexts", took)
		}
		synctest.Wait()
		if err := c.call(echoFunction, `[]`); err != nil {
			t.Errorf("a call after End: %v", err)
		}
		c.expire() // a timer that fired just before
		c.Stop()
		time.Sleep(time.Hour)
		list, truncated := c.Records()
		if len(list) != 6 || truncated || len(c.callee.began) != 2 || len(c.guest.answers(t)) > 0 {
			t.Errorf("%+v are listed, %q were called", list, c.callee.began)
		}
		for _, call := range list {
			if call.Error != "the run ended first" {
				t.Errorf("%+v", call)
			}
		}
	})
}

// End waits briefly for functions that were just called, and not for others.
func TestCallsEndWaits(t *testing.T) {
	for _, tc := range []struct{ age, opens, want time.Duration }{
		{0, 50 * time.Millisecond, 50 * time.Millisecond},
		{0, time.Hour, grace},
		{150 * time.Millisecond, time.Hour, 50 * time.Millisecond},
		{time.Second, time.Hour, 0},
	} {
		inBubble(t, Limits{}, func(t *testing.T, c *testCalls) {
			if err := c.call(gateFunction, `[]`); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(tc.age)
			gate := c.callee.gate
			opened := time.AfterFunc(tc.opens, func() { close(gate) })
			began := time.Now()
			c.Stop()
			if took := time.Since(began); took != tc.want {
				t.Errorf("a call of %v that takes %v more: End took %v, want %v", tc.age, tc.opens, took, tc.want)
			}
			opened.Stop()
		})
	}
}

// The end of the run cancels its calls, too.
func TestCallsRunIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f, g := &callee{}, &guestSide{}
		c := New(ctx, f.functions(), withDefaults(Limits{Concurrent: 1}), NewWriter(g))
		for i := range 3 {
			if err := accept(c, wire.Call{ID: uint32(i), Function: waitFunction, Args: json.RawMessage(`[]`)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if err := accept(c, wire.Call{ID: 10, Function: echoFunction, Args: json.RawMessage(`[]`)}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(f.began) != 1 || len(g.answers(t)) > 0 {
			t.Errorf("%q were called, results: %v", f.began, g.answers(t))
		}
		c.Stop()
	})
}

func TestCallsListed(t *testing.T) {
	inBubble(t, Limits{}, func(t *testing.T, c *testCalls) {
		for range maxRecords + 1 {
			if err := c.call(echoFunction, `[1]`); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		list, truncated := c.Records()
		if len(list) != maxRecords || !truncated {
			t.Errorf("%d are listed, truncated: %v", len(list), truncated)
		}
		list[0].Name = "changed"
		if again, _ := c.Records(); again[0] != (Call{Name: "echo", Arguments: 3, Result: 3}) {
			t.Errorf("%+v", again[0])
		}
	})
}

// A refused call is counted and listed, and gets a result like others.
func TestCallsRefused(t *testing.T) {
	inBubble(t, Limits{Calls: 2}, func(t *testing.T, c *testCalls) {
		for i := range 3 {
			if err := accept(c, wire.Call{ID: uint32(i) + 1}, &Error{Message: wire.ErrDuplicateName.Error(), Code: CodeArguments}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		got := c.guest.answers(t)
		if !strings.Contains(got[1], CodeArguments) || !strings.Contains(got[3], CodeManyCalls) || len(c.callee.began) > 0 {
			t.Errorf("%v, %q were called", got, c.callee.began)
		}
		if list, _ := c.Records(); len(list) != 3 || !strings.Contains(list[0].Error, "two fields") {
			t.Errorf("%+v", list)
		}
	})
}

// The text of an error is bounded, and is valid whatever the host function returns.
func TestErrorText(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{errors.New("x"), `{"message":"x"}`},
		{&Error{Code: "E", Message: "x\xff\x00"}, `{"message":"x\ufffd\u0000","code":"E"}`},
		{fmt.Errorf("a: %w", errors.Join(errors.New("b"), &Error{Code: "E", Message: "c"})), `{"message":"a: b\nc","code":"E"}`},
	} {
		if got := string(ErrorText(tc.err)); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.err, got, tc.want)
		}
	}
	long := ErrorText(errors.New(strings.Repeat("ü", maxErrorText)))
	if len(long) > 2*maxErrorText || !json.Valid(long) {
		t.Errorf("%d bytes", len(long))
	}
}

// A function's context ends with its call, at its deadline and with the run.
func TestCallContext(t *testing.T) {
	inBubble(t, Limits{Timeout: time.Second}, func(t *testing.T, c *testCalls) {
		for _, function := range []uint32{echoFunction, waitFunction, waitFunction} {
			if err := c.call(function, `[]`); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		ctxs := c.callee.ctxs
		if at, ok := ctxs[1].Deadline(); !ok || time.Until(at) != time.Second || ctxs[0].Err() != context.Canceled || ctxs[1].Err() != nil {
			t.Errorf("deadline %v %v; after its call: %v, during it: %v", at, ok, ctxs[0].Err(), ctxs[1].Err())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if late := context.Cause(ctxs[1]); ctxs[1].Err() != context.DeadlineExceeded || late == nil || !strings.Contains(late.Error(), "longer than 1s") {
			t.Errorf("late: %v, %v", ctxs[1].Err(), late)
		}
		if err := c.call(waitFunction, `[]`); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.Stop()
		if err := c.callee.ctxs[3].Err(); err != context.Canceled {
			t.Errorf("after the end of the run: %v", err)
		}
	})
}

// Each call is observed once, whether it finishes before the observer starts, later, or
// never.
func TestObserve(t *testing.T) {
	begin := func(c *Dispatcher, id uint32) *pendingCall {
		p := &pendingCall{key: uint64(id)}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.add(p)
		return p
	}
	for name, when := range map[string]int{"from the start": 0, "later": 1, "at the end": 2, "after it": 3} {
		c := New(t.Context(), []Function{{}}, withDefaults(Limits{}), NewWriter(&guestSide{}))
		answered, unfinished := 0, 0
		observe := func(r Call) {
			if r.Error == "" {
				answered++
			} else {
				unfinished++
			}
		}
		var begun []*pendingCall
		for step := range 4 {
			if when == step {
				c.Observe(observe)
			}
			switch step {
			case 0:
				for id := range uint32(3) {
					begun = append(begun, begin(c, id))
				}
				c.answer(begun[1], []byte("1"), 0, nil)
			case 1:
				c.answer(begun[0], []byte("1"), 0, nil)
			case 2:
				c.Stop()
				c.Stop()
				c.answer(begun[2], []byte("1"), 0, nil) // too late
				if list, _ := c.Records(); len(list) != 3 || list[2].Error == "" {
					t.Errorf("%s: %+v", name, list)
				}
			}
		}
		if answered != 2 || unfinished != 1 {
			t.Errorf("%s: observed %d calls and %d unfinished ones", name, answered, unfinished)
		}
	}
}
