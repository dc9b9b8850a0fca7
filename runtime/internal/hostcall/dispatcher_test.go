package hostcall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gaol/internal/wire"
)

// guestSide records the frames that are sent to the guest.
type guestSide struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (g *guestSide) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes.Write(b)
}

func (g *guestSide) Close() error { return nil }

// answers returns the results so far, by call number.
func (g *guestSide) answers(t *testing.T) map[uint32]string {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	got := map[uint32]string{}
	r := wire.NewReader(bytes.NewReader(g.bytes.Bytes()), func(wire.Kind) int64 { return 1 << 20 })
	for {
		_, body, err := r.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		call := uint32(body[3]) | uint32(body[2])<<8 | uint32(body[1])<<16 | uint32(body[0])<<24
		if got[call] != "" {
			t.Errorf("call %d has two results", call)
		}
		got[call] = string(body[5:])
	}
}

// callee has host functions for the tests, by number.
type callee struct {
	began []string // arguments
	gate  chan struct{}
	ctxs  []context.Context
	mu    sync.Mutex
}

const (
	echoFunction = iota
	gateFunction // waits for the gate and ignores its context
	waitFunction // waits for its context
	goexitFunction
	panicFunction
	errorFunction
)

func (f *callee) functions() []Function {
	of := func(name string, call func(context.Context, json.RawMessage) (any, error)) Function {
		return Function{Path: []string{name}, name: name, Call: func(ctx context.Context, args json.RawMessage) (any, error) {
			f.mu.Lock()
			f.began = append(f.began, string(args))
			f.ctxs = append(f.ctxs, ctx)
			f.mu.Unlock()
			return call(ctx, args)
		}}
	}
	return []Function{
		of("echo", func(_ context.Context, args json.RawMessage) (any, error) { return args, nil }),
		of("gate", func(_ context.Context, args json.RawMessage) (any, error) { <-f.gate; return args, nil }),
		of("wait", func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}),
		of("goexit", func(context.Context, json.RawMessage) (any, error) { goruntime.Goexit(); return nil, nil }),
		of("panic", func(context.Context, json.RawMessage) (any, error) { panic("secret") }),
		of("error", func(context.Context, json.RawMessage) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", &Error{Code: "EX", Message: "inner"})
		}),
	}
}

// withDefaults fills in limits for the tests.
func withDefaults(l Limits) Limits {
	return Limits{
		Calls: cmp.Or(l.Calls, 100_000), Concurrent: cmp.Or(l.Concurrent, 16), Arguments: cmp.Or(l.Arguments, 1<<20),
		Result: cmp.Or(l.Result, 4<<20), Timeout: cmp.Or(l.Timeout, 30*time.Second),
	}
}

// testCalls calls functions in a synctest bubble.
type testCalls struct {
	*Dispatcher
	guest  guestSide
	callee callee
	next   uint32
}

func inBubble(t *testing.T, limits Limits, f func(*testing.T, *testCalls)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &testCalls{callee: callee{gate: make(chan struct{})}}
		c.Dispatcher = New(t.Context(), c.callee.functions(), withDefaults(limits), NewWriter(&c.guest))
		f(t, c)
		c.Stop()
		select {
		case <-c.callee.gate:
		default:
			close(c.callee.gate)
		}
		synctest.Wait() // synctest reports goroutines that remain
	})
}

// call sends the next call.
func (c *testCalls) call(function uint32, args string) error {
	c.next++
	return accept(c, wire.Call{ID: c.next, Function: function, Args: json.RawMessage(args)}, nil)
}

func TestCallsAnswers(t *testing.T) {
	inBubble(t, Limits{}, func(t *testing.T, c *testCalls) {
		wants := []struct{ answer, err string }{
			echoFunction:   {`["x"]`, ""},
			gateFunction:   {`["x"]`, ""},
			waitFunction:   {`{"message":"the host function took longer than 30s","code":"ERR_CALL_TIMEOUT"}`, "the host function took longer than 30s"},
			goexitFunction: {`{"message":"the host function failed","code":"ERR_HOST_PANIC"}`, "the host function failed"},
			panicFunction:  {`{"message":"the host function failed","code":"ERR_HOST_PANIC"}`, "the host function failed"},
			errorFunction:  {`{"message":"wrapped: inner","code":"EX"}`, "wrapped: inner"},
		}
		for function := range wants {
			if err := c.call(uint32(function), `["x"]`); err != nil {
				t.Fatal(err)
			}
		}
		close(c.callee.gate)
		time.Sleep(time.Minute)
		synctest.Wait()
		got, list := c.guest.answers(t), first(c.Records())
		for function, want := range wants {
			call := list[function]
			if got[uint32(function)+1] != want.answer || call.Error != want.err || call.Name != c.functions[function].Name() || call.Arguments != 5 {
				t.Errorf("function %d: %s, %+v", function, got[uint32(function)+1], call)
			}
			if ok := want.err == ""; ok != (call.Result == 5) {
				t.Errorf("function %d: %+v", function, call)
			}
		}
		if len(c.pending) > 0 || c.bytes != 0 || c.running != 0 {
			t.Errorf("%d pending, %d bytes, %d running", len(c.pending), c.bytes, c.running)
		}
	})
}

func first[A, B any](a A, _ B) A { return a }

func TestCallsRefuseProtocol(t *testing.T) {
	inBubble(t, Limits{}, func(t *testing.T, c *testCalls) {
		for _, function := range []uint32{6, 1 << 31, 1<<32 - 1} {
			if err := c.call(function, `[]`); !errors.Is(err, wire.ErrFrame) {
				t.Errorf("function %d: %v", function, err)
			}
		}
		call := wire.Call{ID: 9, Function: gateFunction, Args: json.RawMessage(`[]`)}
		if err := accept(c, call, nil); err != nil {
			t.Fatal(err)
		}
		if err := accept(c, call, nil); !errors.Is(err, wire.ErrFrame) {
			t.Errorf("a duplicate number: %v", err)
		}
		close(c.callee.gate)
		synctest.Wait()
		if err := accept(c, call, nil); err != nil {
			t.Errorf("a number that is reused after its result: %v", err)
		}
	})
}

// At most Concurrent functions run together. The others are called in order of arrival.
func TestCallsConcurrent(t *testing.T) {
	inBubble(t, Limits{Concurrent: 3}, func(t *testing.T, c *testCalls) {
		for i := range 10 {
			if err := c.call(gateFunction, fmt.Sprintf("[%d]", i)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if want := []string{"[0]", "[1]", "[2]"}; !slices.Equal(c.callee.began, want) {
			t.Errorf("started %q, want %q", c.callee.began, want)
		}
		for i := range 7 {
			c.callee.gate <- struct{}{}
			synctest.Wait()
			if n := len(c.callee.began); n != 4+i || c.callee.began[3+i] != fmt.Sprintf("[%d]", 3+i) {
				t.Errorf("started %q", c.callee.began)
			}
		}
		close(c.callee.gate)
		synctest.Wait()
		if n := len(c.guest.answers(t)); n != 10 || c.workers != 0 {
			t.Errorf("%d results, %d workers remain", n, c.workers)
		}
	})
}

// A call over a limit gets an error and is not performed.
func TestCallsLimits(t *testing.T) {
	const many = `"code":"ERR_TOO_MANY_CALLS"`
	for _, tc := range []struct {
		name   string
		limits Limits
		args   string
		calls  int
		begin  int // number of admitted calls
	}{
		{"calls of a run", Limits{Calls: 7}, `[]`, 20, 7},
		{"at once", Limits{}, `[]`, MaxPending + 5, MaxPending},
		{"bytes", Limits{Arguments: 1 << 20}, `[` + strings.Repeat(" ", 1<<20-2) + `]`, 40, 34},
		{"bytes, where one has more", Limits{Arguments: 50 << 20}, `[` + strings.Repeat(" ", 50<<20-2) + `]`, 5, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, tc.limits, func(t *testing.T, c *testCalls) {
				for range tc.calls {
					if err := c.call(gateFunction, tc.args); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				refused := c.guest.answers(t)
				close(c.callee.gate)
				synctest.Wait()
				if len(refused) != tc.calls-tc.begin || len(c.callee.began) != tc.begin {
					t.Errorf("%d refused, %d performed, want %d", len(refused), len(c.callee.began), tc.begin)
				}
				for call, text := range refused {
					if !strings.Contains(text, many) || int(call) <= tc.begin {
						t.Fatalf("call %d: %s", call, text)
					}
				}
			})
		})
	}
}

// A guest that does not read its results violates the protocol; a guest that makes many calls does
// not.
func TestCallsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &callee{}
		p := newSlowPipe()
		c := New(t.Context(), f.functions(), withDefaults(Limits{}), NewWriter(p))
		n := 0
		var err error
		for ; err == nil && n < 100_000; n++ {
			err = accept(c, wire.Call{ID: uint32(n), Function: waitFunction, Args: json.RawMessage(`[]`)}, nil)
		}
		if !errors.Is(err, wire.ErrFrame) || n < 2*MaxPending || n > 10*MaxPending {
			t.Errorf("after %d calls: %v", n, err)
		}
		c.Stop()
		close(p.read)
	})
}

// accept accepts a call, and performs it in another goroutine.
func accept(d interface {
	Accept(wire.Call, error) (func(), error)
}, call wire.Call, refused error) error {
	work, err := d.Accept(call, refused)
	if work != nil {
		go work()
	}
	return err
}
