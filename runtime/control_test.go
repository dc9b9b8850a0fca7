package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"gaol/internal/wire"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/stdio"
)

// callee has host functions for the tests.
type callee struct {
	gate  chan struct{}
	began chan struct{} // receives an element for each call of gate, unless it is full
}

const (
	echoFunction = iota
	gateFunction // waits for the gate and ignores its context
	goexitFunction
	panicFunction
	waitFunction // waits for its context
)

func (f *callee) functions() []hostcall.Function {
	b, err := Options{}.newBindings(map[string]any{
		"echo": Function{Call: func(_ context.Context, args json.RawMessage) (any, error) { return args, nil }},
		"gate": Function{Call: func(_ context.Context, args json.RawMessage) (any, error) {
			select {
			case f.began <- struct{}{}:
			default:
			}
			<-f.gate
			return args, nil
		}},
		"goexit": Function{Call: func(context.Context, json.RawMessage) (any, error) { goruntime.Goexit(); return nil, nil }},
		"panic":  Function{Call: func(context.Context, json.RawMessage) (any, error) { panic("secret") }},
		"wait": Function{Call: func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}},
	})
	if err != nil {
		panic(err)
	}
	return b.Functions
}

// fakeGuest is the other end of a control channel.
type fakeGuest struct {
	send    *os.File
	receive *os.File
	control *control
	pumped  chan struct{}
}

// newFakeGuest returns a guest without a jail, and starts to read its frames.
func newFakeGuest(t testing.TB, limit int64, functions []hostcall.Function) *fakeGuest {
	t.Helper()
	return newFakeGuestWithin(t, limit, functions, CallLimits{Arguments: 1000})
}

func newFakeGuestWithin(t testing.TB, limit int64, functions []hostcall.Function, limits CallLimits) *fakeGuest {
	t.Helper()
	from, send, err := os.Pipe()
	receive, to, err2 := os.Pipe()
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	g := &fakeGuest{send: send, receive: receive, pumped: make(chan struct{})}
	g.control = &control{in: stdio.NewReader(from), report: &cell{maxValue: limit}, room: func() {}, done: func() { close(g.pumped) }}
	if functions == nil {
		to.Close()
	} else {
		if err := fill(&limits, true); err != nil {
			t.Fatal(err)
		}
		g.control.out = hostcall.NewWriter(to)
		g.control.calls = hostcall.New(t.Context(), functions, limits, g.control.out)
	}
	go g.control.run(wire.NewReader(g.control.in, g.control.maxFrame))
	t.Cleanup(func() {
		send.Close()
		g.control.calls.Stop()
		<-g.pumped
		receive.Close()
	})
	return g
}

func (g *fakeGuest) write(t testing.TB, frames ...[]byte) {
	t.Helper()
	for _, f := range frames {
		if _, err := g.send.Write(f); err != nil {
			t.Fatal(err)
		}
	}
}

// end closes the guest's side and returns the host's result.
func (g *fakeGuest) end() *Result {
	g.send.Close()
	<-g.pumped
	g.control.calls.Stop()
	p := &Process{main: g.control.report.(*cell), calls: g.control.calls}
	res := &Result{}
	p.addReport(res)
	return res
}

func valueFrame(text string) []byte { return wire.Append(nil, wire.KindValue, []byte(text)) }

func callFrame(id, function uint32, args string) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, id), function)
	return wire.Append(nil, wire.KindCall, head, []byte(args))
}

// The last value before the first malformed frame is the result.
func TestControlValues(t *testing.T) {
	for _, tc := range []struct {
		name   string
		frames [][]byte
		want   string
	}{
		{"none", nil, ""},
		{"the last", [][]byte{valueFrame("1"), valueFrame(`{"a":[null]}`)}, `{"a":[null]}`},
		{"null", [][]byte{valueFrame("1"), valueFrame("null")}, "null"},
		{"malformed JSON", [][]byte{valueFrame("1"), valueFrame("{"), valueFrame("2")}, "1"},
		{"too long", [][]byte{valueFrame("1"), valueFrame(strings.Repeat("1", 101)), valueFrame("2")}, "1"},
		{"a call without functions", [][]byte{valueFrame("1"), callFrame(1, 0, "[]"), valueFrame("2")}, "1"},
		{"a log", [][]byte{valueFrame("1"), wire.Append(nil, wire.KindLog, []byte("\x02x")), valueFrame("2")}, "1"},
		{"cut off", [][]byte{valueFrame("1"), valueFrame("23")[:6]}, "1"},
	} {
		g := newFakeGuest(t, 100, nil)
		for _, f := range tc.frames {
			_, _ = g.send.Write(f) // EPIPE after a frame that ends the channel
		}
		if res := g.end(); string(res.Value) != tc.want || res.Calls != nil {
			t.Errorf("%s: %+v, want %s", tc.name, res, tc.want)
		}
	}
}

func TestControlCalls(t *testing.T) {
	f := &callee{gate: make(chan struct{})}
	g := newFakeGuest(t, 100, f.functions())
	g.write(t, callFrame(5, gateFunction, `["x"]`), callFrame(6, echoFunction, `[{"a":1,"a":1}]`), callFrame(7, echoFunction, `[7]`))
	r := wire.NewReader(g.receive, func(wire.Kind) int64 { return 1000 })
	got := map[uint32]string{}
	for range 3 {
		kind, body, err := r.Next()
		if err != nil || kind != wire.KindAnswer {
			t.Fatalf("kind %d, %v", kind, err)
		}
		got[binary.BigEndian.Uint32(body)] = string(body[5:])
		if len(got) == 2 { // reply to the first call last
			close(f.gate)
		}
	}
	if got[5] != `["x"]` || got[7] != `[7]` || !strings.Contains(got[6], CodeArguments) {
		t.Errorf("%v", got)
	}
	res := g.end()
	if len(res.Calls) != 3 || res.Calls[0].Name != "gate" || res.Calls[1].Error == "" || res.Calls[2].Error != "" {
		t.Errorf("%+v", res.Calls)
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("after the guest has closed: %v", err)
	}
}

// The channel is read while the goroutine that has read a call performs it, and by one goroutine afterwards.
func TestControlReadsOn(t *testing.T) {
	f := &callee{gate: make(chan struct{}), began: make(chan struct{}, 2)}
	g := newFakeGuest(t, 100, f.functions())
	r := wire.NewReader(g.receive, func(wire.Kind) int64 { return 1000 })
	answer := func() uint32 {
		t.Helper()
		kind, body, err := r.Next()
		if err != nil || kind != wire.KindAnswer {
			t.Fatalf("kind %d, %v", kind, err)
		}
		return binary.BigEndian.Uint32(body)
	}
	for id := range uint32(2) {
		g.write(t, callFrame(id, gateFunction, `[]`))
		<-f.began
	}
	g.write(t, callFrame(2, echoFunction, `[]`))
	if id := answer(); id != 2 {
		t.Errorf("answer %d", id)
	}
	close(f.gate)
	if sum := answer() + answer(); sum != 1 {
		t.Errorf("answers with the sum %d", sum)
	}
	for id := uint32(3); id < 500; id++ {
		g.write(t, callFrame(id, echoFunction, `[]`))
		if got := answer(); got != id {
			t.Fatalf("answer %d, want %d", got, id)
		}
	}
	if res := g.end(); len(res.Calls) != 500 {
		t.Errorf("%d calls", len(res.Calls))
	}
}

// A malformed frame closes both directions, while functions still run.
func TestControlBroken(t *testing.T) {
	f := &callee{gate: make(chan struct{})}
	g := newFakeGuest(t, 100, f.functions())
	g.write(t, callFrame(1, waitFunction, `[]`), []byte{0, 0, 0, 0, 0})
	if rest, err := io.ReadAll(g.receive); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	<-g.pumped
	if _, err := g.send.Write([]byte{1}); err == nil {
		t.Error("the guest can still write")
	}
	if res := g.end(); len(res.Calls) != 1 || res.Calls[0].Error == "" {
		t.Errorf("%+v", res.Calls)
	}
}

// Whatever a guest sends, functions get JSON of limited size, the host reads to the end or to
// the first malformed frame, and all goroutines return.
func FuzzControl(f *testing.F) {
	f.Add([]byte{}, uint8(1))
	f.Add(append(callFrame(1, 0, `[1]`), callFrame(2, 4, `[{"a":1,"a":2}]`)...), uint8(3))
	f.Add(append(valueFrame("1"), callFrame(1, 1, `["ü"]`)...), uint8(5))
	f.Add(append(callFrame(1, 3, `[]`), callFrame(1, 2, `[]`)...), uint8(200))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 3, 0}, uint8(2))
	f.Add(append(callFrame(1, goexitFunction, `[]`), callFrame(2, waitFunction, `[]`)...), uint8(90))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint8) {
		var mu sync.Mutex
		var wrong []string
		look := func(_ context.Context, args json.RawMessage) (any, error) {
			if len(args) > 1000 || !utf8.Valid(args) || json.Unmarshal(args, new([]json.RawMessage)) != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, string(args))
			}
			return args, nil
		}
		functions := (&callee{}).functions()
		for i := range functions {
			if i != waitFunction && i != goexitFunction && i != panicFunction {
				functions[i].Call = look
			}
		}
		before := goleak.IgnoreCurrent()
		g := newFakeGuest(t, 100, functions)
		go func() { _, _ = io.Copy(io.Discard, g.receive) }()
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			if _, err := g.send.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
		res := g.end()
		if len(res.Value) > 100 || len(res.Value) > 0 && !json.Valid(res.Value) {
			t.Errorf("value %q", res.Value)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, args := range wrong {
			t.Errorf("a function was called with %q", args)
		}
		if err := goleak.Find(before, goleak.IgnoreTopFunction("gaol/runtime.FuzzControl.func1.2")); err != nil {
			t.Error(err)
		}
	})
}

// A hundred thousand calls get a hundred thousand results, with 256 in progress at a time, as
// the guest's JavaScript limits them.
func TestControlManyCalls(t *testing.T) {
	const n = 100_000
	g := newFakeGuest(t, 100, (&callee{}).functions()[:1])
	inFlight := make(chan struct{}, 256)
	go func() {
		for i := range uint32(n) {
			inFlight <- struct{}{}
			if _, err := g.send.Write(callFrame(i, echoFunction, fmt.Sprintf("[%d]", i))); err != nil {
				return
			}
		}
	}()
	seen := make([]bool, n)
	r := wire.NewReader(g.receive, func(wire.Kind) int64 { return 1000 })
	for range n {
		_, body, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		id := binary.BigEndian.Uint32(body)
		if answer := string(body[5:]); seen[id] || answer != fmt.Sprintf("[%d]", id) {
			t.Fatalf("call %d: %s", id, answer)
		}
		seen[id] = true
		<-inFlight
	}
}

func BenchmarkControlCall(b *testing.B) {
	g := newFakeGuestWithin(b, 100, (&callee{}).functions()[:1], CallLimits{Calls: 1 << 40})
	frame, answer := callFrame(1, echoFunction, `[1,2]`), make([]byte, wire.AnswerSize+5)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.send.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(g.receive, answer); err != nil {
			b.Fatal(err)
		}
	}
}

// The end of the channel is an error only if the guest violates the protocol.
func TestControlClose(t *testing.T) {
	for _, tc := range []struct{ err, want error }{{io.EOF, nil}, {io.ErrUnexpectedEOF, nil}, {wire.ErrFrame, wire.ErrFrame}} {
		cells, closed := testCells(t, nil)
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := &control{in: stdio.NewReader(from), report: cells}
		c.close(tc.err)
		to.Close()
		if got := <-closed; got != tc.want {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
}
